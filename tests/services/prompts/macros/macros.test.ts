import { expect, test } from "vitest";
import { Macros, type MacroScope } from "../../../../services/prompts/macros/macros.ts";
import { createSeededRandom } from "../../../../services/prompts/participants.ts";

const NOON = Date.UTC(2026, 10, 22, 12, 5);

function openMacros(more: Partial<MacroScope> = {}): Macros {
  return new Macros({
    char: "Ada",
    user: "Sam",
    fields: { description: "{{char}} is kind to {{user}}", persona: "I am {{persona}}{{user}}", scenario: "" },
    clock: { nowMs: NOON, timeZone: "Asia/Tokyo", idleMs: 3 * 60 * 60 * 1000 },
    random: createSeededRandom("c1"),
    chat: { lastMessage: "Bye", lastUserMessage: "Hello", lastCharMessage: "Bye", model: "m" },
    ...more,
  });
}
const expand = (text: string, more?: Partial<MacroScope>) => openMacros(more).expand(text, { location: "p" });

test.each([
  ["{{char}} and {{USER}}, {{ char }}", "Ada and Sam, Ada"],
  ["<USER> <bot> <Char> <b>", "Sam Ada Ada <b>"],
  ["{{{user}}} {{{{char}}}}", "{Sam} {{Ada}}"],
  ["{{unknown}} {{if x}}a{{/if}} {{", "{{unknown}} {{if x}}a{{/if}} {{"],
  ["{{unknown::{{char}}}}", "{{unknown::Ada}}"],
  ["a{{// not for the model {{char}} }}b{{noop}}", "ab"],
  ["{{comment: a remark}}{{hidden_key: fox}}x", "x"],
  ["{{reverse:abc {{user}}}}", "maS cba"],
  ["a{{newline}}b", "a\nb"],
  ["a\n\n{{trim}}\n\nb", "ab"],
  ["{{description}}", "Ada is kind to Sam"],
  ["{{persona}}", "I am Sam"],
  ["[{{scenario}}]", "[]"],
  ["{{group}} {{charIfNotGroup}}", "Ada Ada"],
  ["{{lastMessage}} {{lastUserMessage}} {{input}} {{model}}", "Bye Hello Hello m"],
  ["{{setvar::mood::glad}}{{getvar::mood}}{{getvar::none}}", "glad"],
  ["{{setvar::n::2}}{{addvar::n::3}}{{incvar::n}} {{getvar::n}}", "6 6"],
  ["{{original}}", "{{original}}"],
])("expands %j to %j", (text, expanded) => {
  expect(expand(text)).toBe(expanded);
});

test("shows times in the client's time zone", () => {
  expect(expand("{{time}} | {{date}} | {{weekday}} | {{isotime}} | {{isodate}} | {{idle_duration}} | {{time_UTC-3}}"))
    .toBe("9:05 PM | November 22, 2026 | Sunday | 21:05 | 2026-11-22 | 3 hours | 9:05 AM");
  expect(expand("{{isodate}} {{isotime}}", { clock: { nowMs: NOON, timeZone: "Pacific/Kiritimati" } }))
    .toBe("2026-11-23 02:05");
});

test("keeps random choices per location, and varies them between locations and chats", () => {
  const text = "{{random:a,b,c,d,e,f,g,h}}{{pick::i::j::k::l}}{{roll:d1000}}";
  const at = (place: string, seed: string) =>
    openMacros({ random: createSeededRandom(seed) }).expand(text, { location: place });
  expect(at("p", "c1")).toBe(at("p", "c1"));
  expect(new Set([at("p", "c1"), at("q", "c1"), at("p", "c2"), at("q", "c2")]).size).toBe(4);
  expect(at("p", "c1")).toMatch(/^[a-h][i-l]\d{1,4}$/);
});

test("makes independent choices, and every value occurs", () => {
  const seen = new Set<string>();
  for (let n = 0; n < 60; n++) {
    seen.add(expand("{{random:1,2}}{{random:1,2}}", { random: createSeededRandom(`c${n}`) }));
  }
  expect([...seen].sort()).toEqual(["11", "12", "21", "22"]);
});

test("arguments may contain escaped commas, colons and other macros", () => {
  expect(expand("{{random:one\\, two}}")).toBe("one, two");
  expect(expand("{{random::{{user}}, {{char}}}}")).toBe("Sam, Ada");
  expect(expand("{{pick::{{random::x::x}}::x}}")).toBe("x");
  expect(Number(expand("{{roll:3d6+10}}"))).toBeGreaterThanOrEqual(13);
  expect(expand("{{roll:many}}")).toBe("{{roll:many}}");
});

test("inserts the original text once, and only if there is one", () => {
  const macros = openMacros();
  expect(macros.expand("{{original}} More. {{original}}", { location: "p", original: "Be kind." })).toBe(
    "Be kind. More. ",
  );
});

test("doesn't scan expanded text again, and keeps special characters in names", () => {
  expect(expand("{{char}}", { char: "$& {{user}} $1" })).toBe("$& {{user}} $1");
});

test("stops fields that contain themselves, and endless nesting", () => {
  expect(expand("{{description}}", { fields: { description: "a{{personality}}", personality: "b{{description}}" } }))
    .toBe("ab");
  const deep = "{{reverse:".repeat(2000) + "x" + "}}".repeat(2000);
  expect(expand(deep)).toContain("x");
  const unmatched = "{{ ".repeat(50_000);
  expect(expand(unmatched)).toBe(unmatched);
});
