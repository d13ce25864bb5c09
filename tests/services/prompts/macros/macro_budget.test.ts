import { expect, test } from "vitest";
import { COSTLY_STEPS, MACRO_LIMITS, MacroBudget } from "../../../../services/prompts/macros/macro_budget.ts";
import { type MacroContext, Macros, type MacroScope } from "../../../../services/prompts/macros/macros.ts";
import { parseMacros } from "../../../../services/prompts/macros/macro_text.ts";
import { createSeededRandom, expandGreetings } from "../../../../services/prompts/participants.ts";
import { BRACES, DOUBLING, LEVELS, LONG_NAME, NESTED_BRACES } from "../../../helpers/files/macro_attacks.ts";

const SCOPE: MacroScope = {
  char: "Ada",
  user: "Sam",
  clock: { nowMs: 0 },
  random: createSeededRandom("c1"),
  chat: {},
  fields: { description: "{{char}} counts.", summary: "" },
};

/** Macros with their own budget. */
function open(more: Partial<MacroScope> = {}, limits: Partial<typeof MACRO_LIMITS> = {}) {
  const budget = new MacroBudget({ ...MACRO_LIMITS, ...limits });
  const macros = new Macros({ ...SCOPE, ...more }, budget);
  return { budget, macros, expand: (text: string, field = "p") => macros.expand(text, { location: field }) };
}

test.each<[string, string, Partial<MacroScope>, string]>([
  ["doubles a variable", DOUBLING, {}, "variables"],
  ["grows a variable bit by bit", "{{addvar::a::xxxxxxxxxxxxxxxx}}".repeat(20_000), {}, "bytes"],
  [
    "sets thousands of variables",
    Array.from({ length: 5_000 }, (_, n) => `{{setvar::v${n}::1}}`).join(""),
    {},
    "variables",
  ],
  ["names a field of fields", "{{description}}".repeat(100), {
    fields: {
      description: LEVELS.description,
      personality: LEVELS.personality,
      scenario: LEVELS.scenario,
      mesexamples: LEVELS.mes_example,
      charprompt: "x",
    },
  }, "steps"],
  ["nests 1.5 MB of braces", NESTED_BRACES, {}, "steps"],
  ["holds more macros than steps", "{{char}}".repeat(150_000), {}, "steps"],
  ["holds more tags than steps", "<user>".repeat(200_000), {}, "steps"],
  ["repeats a long name", "{{char}}".repeat(1_000), { char: LONG_NAME }, "bytes"],
  ["repeats a long name by tags", "<bot>".repeat(1_000), { char: LONG_NAME }, "bytes"],
  ["repeats the last message", "{{lastMessage}}".repeat(1_000), { chat: { lastMessage: LONG_NAME } }, "bytes"],
  ["repeats a long field", "{{description}}".repeat(1_000), { fields: { description: LONG_NAME } }, "bytes"],
  [
    "reverses a long text",
    `{{reverse:${"{{description}}".repeat(3)}}}`,
    { fields: { description: LONG_NAME } },
    "bytes",
  ],
  ["nests macros without end", "{{reverse:".repeat(2_000) + "x" + "}}".repeat(2_000), {}, "depth"],
  ["rolls millions of dice", "{{roll:999d999999999}}".repeat(5_000), {}, "steps"],
  ["draws from thousands of lists", "{{random:a,b}}".repeat(20_000), {}, "steps"],
  ["draws from a list of a million", `{{random:${"a,".repeat(500_000)}}}`, {}, "steps"],
  ["draws from a long list again and again", `{{random:${"a".repeat(50_000)},b}}`.repeat(100), {}, "bytes"],
  ["throws a million dice", "{{roll:1000000d6}}", {}, "steps"],
  ["inserts a billion spaces", "{{space::1000000000}}", {}, "bytes"],
  ["repeats a long block", `{{setvar::a}}${LONG_NAME}{{/setvar}}`.repeat(10), {}, "bytes"],
  ["nests conditions without end", "{{if 1}}".repeat(2_000) + "x" + "{{/if}}".repeat(2_000), {}, "depth"],
  ["tests a long text again and again", `{{if ${"a".repeat(50_000)}}}x{{/if}}`.repeat(100), {}, "bytes"],
  [
    "adds to a list again and again",
    "{{setvar::l::[]}}" + "{{addvar::l::xxxxxxxxxxxxxxxx}}".repeat(20_000),
    {},
    "bytes",
  ],
  ["asks for the time again and again", "{{time_UTC+1}}".repeat(20_000), {}, "steps"],
])("leaves a text that %s as written", { tags: ["F01"] }, (_, text, scope, reason) => {
  const { budget, expand } = open(scope);
  expect(expand(text, "description")).toBe(text);
  expect(budget.notExpanded).toEqual([{ field: "description", reason }]);
  expect(budget.used).toEqual({ steps: 0, bytes: 0 });
  expect(budget.done.steps).toBeLessThanOrEqual(MACRO_LIMITS.steps);
  expect(budget.done.bytes).toBeLessThanOrEqual(MACRO_LIMITS.bytes);
  expect(expand("{{char}} counts with {{user}}", "note")).toContain("counts with Sam");
});

test("unmatched braces cost no steps and stay as written", { tags: ["F01"] }, () => {
  const { budget, expand } = open();
  expect(expand(BRACES)).toBe(BRACES);
  expect(expand(`${BRACES}{{char}}`)).toBe(`${BRACES}Ada`);
  expect(budget.done).toEqual({ steps: 1, bytes: 3 });
});

test(
  "a text is parsed once however deeply its macros are nested, and only as far as the steps allow",
  { tags: ["F01"] },
  () => {
    // Parsing each level again would take quadratic time: 7 * 10^10 characters for 50,000 levels.
    const nested = "{{a:".repeat(50_000) + "x" + "}}".repeat(50_000);
    let depth = 0;
    for (let macros = parseMacros(nested, 100_000)!.macros; macros.length > 0; macros = macros[0]!.inner) depth++;
    expect(depth).toBe(50_000);
    expect(parseMacros("{{a}}".repeat(101), 100)).toBeUndefined();
    expect(parseMacros("{{a}}".repeat(100), 100)?.macros.length).toBe(100);
  },
);

test("removes line breaks around {{trim}} in one pass", { tags: ["F01"] }, () => {
  const { expand } = open();
  // A pattern that restarts at each of a million line breaks would take 5 * 10^11 steps.
  expect(expand(`a${"\n".repeat(1_000_000)}b{{trim}}${"\r\n".repeat(10)}c`)).toBe(`a${"\n".repeat(1_000_000)}bc`);
  expect(expand("a\n{{trim}}\n{{trim}}\nb{{trim}}")).toBe("ab");
});

test("parses dice in one pass", { tags: ["F01"] }, () => {
  expect(open().expand(`{{roll:5${" ".repeat(500_000)}x}}`)).toBe("");
});

test("enforces each limit exactly", () => {
  const reasonOf = (text: string, limits: Partial<typeof MACRO_LIMITS>) => {
    const { budget, expand } = open({}, limits);
    expand(text);
    return budget.notExpanded[0]?.reason;
  };
  expect(reasonOf("{{char}}".repeat(10), { steps: 10 })).toBeUndefined();
  expect(reasonOf("{{char}}".repeat(11), { steps: 10 })).toBe("steps");
  expect(reasonOf("{{random:a,b}}", { steps: COSTLY_STEPS })).toBeUndefined();
  expect(reasonOf("{{random:a,b}}", { steps: COSTLY_STEPS - 1 })).toBe("steps");
  expect(reasonOf("{{char}}{{user}}", { bytes: 6 })).toBeUndefined();
  expect(reasonOf("{{char}}{{user}}", { bytes: 5 })).toBe("bytes");
  expect(reasonOf("{{reverse:{{reverse:x}}}}", { depth: 2 })).toBeUndefined();
  expect(reasonOf("{{reverse:{{reverse:x}}}}", { depth: 1 })).toBe("depth");
  expect(reasonOf("{{setvar::a::1}}{{setvar::a::2}}{{setvar::b::1}}", { variables: 2 })).toBeUndefined();
  expect(reasonOf("{{setvar::a::1}}{{setvar::b::1}}{{setvar::c::1}}", { variables: 2 })).toBe("variables");
  // The space that marks a local name counts, too.
  expect(reasonOf("{{setvar::a::ü}}{{setvar::a::xy}}", { variableBytes: 4 })).toBeUndefined();
  expect(reasonOf("{{setvar::a::xyz}}", { variableBytes: 4 })).toBe("variables");
});

test("a field over budget changes no variable", () => {
  const { macros, budget, expand } = open({}, { steps: 10 });
  expand("{{setvar::mood::glad}}{{setvar::n::1}}");
  const place: MacroContext = { location: "d", field: "description", source: "card" };
  macros.expand(
    "{{setvar::mood::sad}}{{incvar::n}}{{setvar::new::1}}{{setvar::mood::worse}}" + "{{char}}".repeat(8),
    place,
  );
  expect(expand("{{getvar::mood}} {{getvar::n}} [{{getvar::new}}]")).toBe("glad 1 []");
  expect(budget.notExpanded).toEqual([{ field: "description", source: "card", reason: "steps" }]);
});

test("frees the space of rolled back variables", () => {
  const { expand, budget } = open({}, { variables: 2, variableBytes: 20 });
  for (let n = 0; n < 5; n++) expand("{{setvar::a::12345678}}{{setvar::b::12345678}}{{setvar::c::1}}", "over");
  expect(expand("{{setvar::a::1234567}}{{setvar::b::1234567}}{{getvar::a}}{{getvar::b}}")).toBe("12345671234567");
  expect(budget.notExpanded).toEqual([{ field: "over", reason: "variables" }]);
});

test("variables of a message aren't visible to others", () => {
  const { macros } = open();
  const own = (text: string) => macros.expand(text, { location: "m", hasOwnVariables: true });
  expect(own("{{setvar::a::1}}{{getvar::a}}")).toBe("1");
  expect(own("[{{getvar::a}}]")).toBe("[]");
});

test(
  "hostile fields don't affect the macros of others; if there are too many, the work still ends",
  { tags: ["F01"] },
  () => {
    const { budget, expand } = open({}, { steps: 1_000 });
    const hostile = "{{reverse:{{char}}}}".repeat(600);
    for (let n = 0; n < 3; n++) expand(hostile, `hostile ${n}`);
    expect(expand("{{char}}")).toBe("Ada");
    for (let n = 0; n < 1_000; n++) expect(expand(hostile, `hostile ${n}`)).toBe(hostile);
    expect(budget.done.steps).toBeLessThanOrEqual(4_000);
    expect(budget.notExpanded.length).toBe(1_000);
  },
);

test("fills a format with an already expanded field", () => {
  const { macros } = open({ fields: { scenario: "{{incvar::n}}" } });
  const expanded = macros.expand("{{incvar::n}}", { location: "scenario", self: "scenario" });
  expect(macros.expand("[{{scenario}} {{scenario}}]", { location: "f", expanded: { scenario: expanded } })).toBe(
    "[1 1]",
  );
  expect(macros.tryExpand("{{scenario}}".repeat(100_001), { location: "f", expanded: { scenario: "" } }))
    .toBeUndefined();
});

test("greetings share one budget, and one over budget stays as written", { tags: ["F01"] }, () => {
  const [first, second, third] = expandGreetings(
    [` ${DOUBLING} `, "{{user}}, I am <BOT>.", "{{char}}".repeat(1_000)],
    { char: LONG_NAME.slice(0, 100_000), user: "Sam" },
    { seed: "s", nowMs: 0 },
  );
  expect(first).toBe(DOUBLING);
  expect(second).toBe(`Sam, I am ${LONG_NAME.slice(0, 100_000)}.`);
  expect(third).toBe("{{char}}".repeat(1_000));
});

test("random numbers are reproducible for a key and its details", () => {
  const random = createSeededRandom("chat");
  expect(random("place", "0\nroll:6")).toBe(random("place\n0\nroll:6"));
  expect(random("place", "1\nroll:6")).not.toBe(random("place", "0\nroll:6"));
});
