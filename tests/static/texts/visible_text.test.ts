import { expect, test } from "vitest";
import { escapeHiddenInJson, isPlain, splitVisibly, toVisibleText } from "../../../static/src/texts/visible_text.ts";

test.each([
  ["a bidi override", "a\u202Eb", "a⟨U+202E⟩b"],
  ["tag characters", "q\u{E0041}\u{E007F}", "q⟨U+E0041⟩⟨U+E007F⟩"],
  ["invisible operators", "Rosa\u2062\u2064", "Rosa⟨U+2062⟩⟨U+2064⟩"],
  ["zero-width characters and soft hyphens", "a\u200Bb\u2060c\u00AD", "a⟨U+200B⟩b⟨U+2060⟩c⟨U+00AD⟩"],
  ["fillers and blanks", "\u3164\u2800\u034F", "⟨U+3164⟩⟨U+2800⟩⟨U+034F⟩"],
  ["variation selectors on letters", "a\uFE0Fb\u{E0101}", "a⟨U+FE0F⟩b⟨U+E0101⟩"],
  ["controls, but not line breaks", "a\u0007\r\n\tb\u0085", "a⟨U+0007⟩⟨U+000D⟩\n\tb⟨U+0085⟩"],
  ["lone surrogates, private use and separators", "\uD800x\uE000\u2028", "⟨U+D800⟩x⟨U+E000⟩⟨U+2028⟩"],
  ["joiners without an emoji", "x\u200Dy", "x⟨U+200D⟩y"],
])("names %s", { tags: ["J10"] }, (_, text, shown) => expect(toVisibleText(text)).toBe(shown));

test.each(["a\u202Eb", "q\u{E0041}", "👨\u200D👩", "\uD800", "plain Grüße 灯台"])(
  "JSON with %j is edited without hidden characters, and has the same value",
  { tags: ["J10"] },
  (text) => {
    const edited = escapeHiddenInJson(JSON.stringify({ text }));
    expect(isPlain(edited, { isStrict: true })).toBe(true);
    expect(JSON.parse(edited)).toEqual({ text });
  },
);

test("joiners of emoji and of scripts that need them stay, except where a call is approved", { tags: ["J10"] }, () => {
  for (const text of ["👨‍👩‍👧", "❤️ 1️⃣", "می‌خواهم", "क्‍ष"]) {
    expect(splitVisibly(text)).toEqual([{ kind: "text", text }]);
    expect(splitVisibly(text, { isStrict: true }).filter(({ kind }) => kind === "hidden")).not.toEqual([]);
  }
});

test.each([
  ["pаypal", ["Cyrl", "Latn"]], // Cyrillic а
  ["gοοgle", ["Grek", "Latn"]], // Greek ο
  ["аԱ", ["Armn", "Cyrl"]],
  ["カbд", ["Cyrl", "Kana", "Latn"]],
])("marks %s, which mixes %j", { tags: ["J10"] }, (word, scripts) => {
  expect(splitVisibly(`to ${word}.`)).toEqual([
    { kind: "text", text: "to " },
    { kind: "mixed", text: word, scripts },
    { kind: "text", text: "." },
  ]);
});

test.each([
  "Grüße naïve",
  "Parlorを使う グーグル",
  "한국어ABC",
  "漢ㄅㄆ",
  "Привет, world",
  "e\u0301",
  "ファイル2",
  "H₂O µm",
])(
  "doesn't mark %s",
  (text) => expect(splitVisibly(text)).toEqual([{ kind: "text", text }]),
);
