import { expect, test } from "vitest";
import { applyPatternEdit } from "../../../services/import_export/python_pattern.ts";

const TEXT = "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n";

/** Results of Python 3.11 (`re.finditer` and `Match.expand`); `undefined` where it finds nothing or refuses. */
const CASES: [pattern: string, replacement: string, isMultiple: boolean, result: string | undefined][] = [
  [
    "foo",
    "qux",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nqux = bar(1, 2)  # Größe 12\nqux = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "foo",
    "qux",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nqux = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(?P<name>\\w+) = (\\w+)",
    "\\g<2> <- \\g<name>",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nbar <- foo(1, 2)  # Größe 12\nbaz <- foo[3]\n日本語 text_1\tend\n",
  ],
  [
    "(\\w+) = (\\w+)",
    "\\2=\\1",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nbar=foo(1, 2)  # Größe 12\nbaz=foo[3]\n日本語 text_1\tend\n",
  ],
  ["^foo.*$", "x", true, undefined],
  ["(?m)^foo.*$", "x", true, "Dear Mia,\nthe Café opens at 9:30.\n\nx\nx\n日本語 text_1\tend\n"],
  [
    "(?im)^FOO",
    "x\\n\\ty",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nx\n\ty = bar(1, 2)  # Größe 12\nx\n\ty = baz[3]\n日本語 text_1\tend\n",
  ],
  ["(?s)Dear.*foo", "gone", false, "gone = baz[3]\n日本語 text_1\tend\n"],
  ["Dear.*foo", "gone", false, undefined],
  [
    "\\bCaf\\w\\b",
    "bar",
    true,
    "Dear Mia,\nthe bar opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "\\d+",
    "<\\g<0>>",
    true,
    "Dear Mia,\nthe Café opens at <9>:<30>.\n\nfoo = bar(<1>, <2>)  # Größe <12>\nfoo = baz[<3>]\n日本語 text_<1>\tend\n",
  ],
  ["[^\\W\\d]+", "w", true, "w w,\nw w w w 9:30.\n\nw = w(1, 2)  # w 12\nw = w[3]\nw w1\tw\n"],
  ["[\\w.-]+", "w", true, "w w,\nw w w w w:w\n\nw = w(w, w)  # w w\nw = w[w]\nw w\tw\n"],
  [
    "[]()\\[]",
    "|",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar|1, 2|  # Größe 12\nfoo = baz|3|\n日本語 text_1\tend\n",
  ],
  [
    "baz\\[3\\]",
    "baz[4]",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[4]\n日本語 text_1\tend\n",
  ],
  [
    "end\\n\\Z",
    "fin",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tfin",
  ],
  [
    "end$",
    "fin",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tfin\n",
  ],
  [
    "(?<=at )\\d",
    "8",
    false,
    "Dear Mia,\nthe Café opens at 8:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(?P<q>o)(?P=q)",
    "00",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nf00 = bar(1, 2)  # Größe 12\nf00 = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(?i:DEAR) Mia",
    "Hi",
    false,
    "Hi,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "x*",
    "-",
    false,
    "-Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "a{1}",
    "A",
    true,
    "DeAr MiA,\nthe CAfé opens At 9:30.\n\nfoo = bAr(1, 2)  # Größe 12\nfoo = bAz[3]\n日本語 text_1\tend\n",
  ],
  ["{", "y", true, undefined],
  [
    "\\s{2,}",
    " ",
    true,
    "Dear Mia,\nthe Café opens at 9:30. foo = bar(1, 2) # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "\\.\\n\\n",
    ".\\n",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(?x) f o o  # the name\n \\ =",
    "g",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\ng bar(1, 2)  # Größe 12\ng baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(a)|(b)",
    "[\\1\\2]",
    true,
    "De[a]r Mi[a],\nthe C[a]fé opens [a]t 9:30.\n\nfoo = [b][a]r(1, 2)  # Größe 12\nfoo = [b][a]z[3]\n日本語 text_1\tend\n",
  ],
  [
    "Gr\\u00f6\\xdfe",
    "Size",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Size 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "日本語",
    "中文",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n中文 text_1\tend\n",
  ],
  ["\\q", "n", false, undefined],
  ["foo", "\\q", false, undefined],
  ["foo", "\\g<none>", false, undefined],
  [
    "foo",
    "a\\\\nb\\.",
    false,
    "Dear Mia,\nthe Café opens at 9:30.\n\na\\nb\\. = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  ["(", "n", false, undefined],
  ["nowhere", "n", false, undefined],
  [
    "\\w+?(?= = )",
    "v",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nv = bar(1, 2)  # Größe 12\nv = baz[3]\n日本語 text_1\tend\n",
  ],
  ["[a-c]+\\(1, ?2\\)", "call()", true, undefined],
  [
    "(?!foo)\\b\\w",
    "_",
    false,
    "_ear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  ["[\\s\\S]*end", "all", false, "all\n"],
  [
    "[^\\n]*\\n",
    "",
    false,
    "the Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "\\Afoo|\\ADear",
    "Z",
    false,
    "Z Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "(?#note)Mia",
    "Bo",
    false,
    "Dear Bo,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\tend\n",
  ],
  [
    "\\t",
    "\\t\\t",
    true,
    "Dear Mia,\nthe Café opens at 9:30.\n\nfoo = bar(1, 2)  # Größe 12\nfoo = baz[3]\n日本語 text_1\t\tend\n",
  ],
  [
    "[\\d\\-:]+",
    "#",
    true,
    "Dear Mia,\nthe Café opens at #.\n\nfoo = bar(#, #)  # Größe #\nfoo = baz[#]\n日本語 text_#\tend\n",
  ],
];

test.each(CASES)("applies the pattern %j with %j as Python does", (pattern, replacement, isMultiple, result) => {
  expect(applyPatternEdit(TEXT, { pattern, replacement, isMultiple })).toBe(result);
});

test.each([
  ["a possessive quantifier", "a++"],
  ["a condition", String.raw`(?P<y>\d)(?(y)\d|x)`],
  ["classes of ASCII", String.raw`(?a)\w+`],
  ["an atomic group", "(?>foo)"],
  ["the name of a character", String.raw`\N{BULLET}`],
])("leaves a text alone whose edit has %s", (_, pattern) => {
  expect(applyPatternEdit(TEXT, { pattern, replacement: "x", isMultiple: true })).toBeUndefined();
});
