import { expect, test } from "vitest";
import { MacroBudget } from "../../../../services/prompts/macros/macro_budget.ts";
import { Macros, type MacroScope } from "../../../../services/prompts/macros/macros.ts";
import { MACRO_NAMES } from "../../../../services/json/macro_names.ts";
import { createSeededRandom } from "../../../../services/prompts/participants.ts";

const NOON = Date.UTC(2026, 10, 22, 12, 5);

function openMacros(more: Partial<MacroScope> = {}): Macros {
  return new Macros({
    char: "Ada",
    user: "Sam",
    fields: { description: "{{char}} is kind to {{user}}", persona: "I am {{persona}}{{user}}", scenario: "" },
    greetings: ["Hi {{user}}", "Good day"],
    clock: { nowMs: NOON, timeZone: "Asia/Tokyo", idleMs: 3 * 60 * 60 * 1000 },
    random: createSeededRandom("c1"),
    chat: { lastMessage: "Bye", lastUserMessage: "Hello", lastCharMessage: "Bye", model: "m" },
    ...more,
  });
}
const expand = (text: string, more?: Partial<MacroScope>) => openMacros(more).expand(text, { location: "p" });

test.each([
  ["{{char}} and {{USER}}, {{ char }}", "Ada and Sam, Ada"],
  ["<USER> <bot> <Char> <GROUP> <b>", "Sam Ada Ada Ada <b>"],
  ["{{{user}}} {{{{char}}}}", "{Sam} {{Ada}}"],
  [
    "{{unknown}} {{unknown::{{char}}}} {{unknown}}{{user}}{{/unknown}} {{",
    "{{unknown}} {{unknown::Ada}} {{unknown}}Sam{{/unknown}} {{",
  ],
  ["{{ 1 {{user}} }} {{}}", "{{ 1 Sam }} {{}}"],
  ["a{{// not for the model {{char}} }}b{{noop}}", "ab"],
  ['{{comment: a remark}}{{hidden_key: fox}}{{banned "x"}}{{//}} a {{///}}x', "x"],
  ["{{reverse:abc {{user}}}}{{reverse}} ab {{/reverse}}", "maS cbaba"],
  ["a{{newline}}b{{newline::2}}c{{space}}d{{space::3}}e", "a\nb\n\nc d   e"],
  ["a\n\n{{trim}}\n\nb|{{trim}}  c {{/trim}}|{{#trim}} d {{/trim}}|", "ab|c| d |"],
  ["{{description}}{{charDescription}}", "Ada is kind to SamAda is kind to Sam"],
  ["{{persona}}", "I am Sam"],
  ["[{{scenario}}]", "[]"],
  ["{{greeting}} {{charFirstMessage::1}} {{greeting::7}}|", "Hi Sam Good day |"],
  ["{{group}} {{charIfNotGroup}} {{groupNotMuted}} {{notChar}}", "Ada Ada Ada Sam"],
  ["{{lastMessage}} {{lastUserMessage}} {{input}} {{model}}", "Bye Hello  m"],
  ["{{original}}", "{{original}}"],
  ["\\{\\{char\\}\\} \\{{{char}}\\}", "{{char}} {Ada}"],
  ["{{char::x}} {{user:}} {{space::x}} {{newline::-1}}", "{{char::x}} {{user:}} {{space::x}} {{newline::-1}}"],
  ["{{char}}x{{/char}} {{/if}}", "{{char}}x{{/char}} {{/if}}"],
])("expands %j to %j", (text, expanded) => {
  expect(expand(text)).toBe(expanded);
});

test.each([
  ["{{if description}}a{{else}}b{{/if}}{{if scenario}}c{{else}}d{{/if}}{{if !scenario}}e{{/if}}", "ade"],
  [
    "{{if 1}}a{{/if}}{{if 0}}b{{/if}}{{if off}}c{{/if}}{{if FALSE}}d{{/if}}{{if no}}e{{/if}}{{if {{space}}}}f{{/if}}",
    "aef",
  ],
  ["{{if 0}}{{if 0}}a{{else}}b{{/if}}{{else}}c{{if 1}}d{{else}}e{{/if}}{{/if}}", "cd"],
  ["{{if::1::a}}{{if::0::b{{else}}c}}{{IF 1}}d{{/If}}", "acd"],
  ["{{if 1}}\n  a\n    b\n  c\n{{/if}}|{{#if 1}}  a {{/if}}|", "a\n  b\nc|  a |"],
  ["{{setvar::v::1}}{{if .v}}a{{/if}}{{if $v}}b{{else}}c{{/if}}{{if {{.v == 1}}}}d{{/if}}", "acd"],
  ["{{if 0}}{{setvar::w::1}}{{else}}{{setvar::w::2}}{{/if}}{{.w}}{{else}}", "2"],
  ["{{if 0}}x{{IF 1}}a{{else}}b{{/IF}}{{else}}c{{/if}}", "c"],
  ["{{if 1}}a{{if 1}}b{{/if}}", "{{if 1}}ab"],
])("evaluates the conditions of %j to %j", (text, expanded) => {
  expect(expand(text)).toBe(expanded);
});

test.each([
  ["{{setvar::mood::glad}}{{getvar::mood}}{{getvar mood}}{{getvar:none}}", "gladglad"],
  ["{{setvar::n::2}}{{addvar::n::3}}{{incvar::n}} {{getvar::n}} {{decvar::n}}", "6 6 5"],
  ["{{setvar::n::007}}{{.n}} {{setvar::s::a}}{{addvar::s::b}}{{.s}} {{addvar::new::c}}{{.new}}", "7 ab c"],
  ["{{setvar::h}}\n  a {{user}}\n{{/setvar}}[{{.h}}]", "[a Sam]"],
  ["{{.a = 3}}{{.a += 4}}{{.a -= 2}}{{.a++}}{{.a--}} {{$a}}{{$a = {{user}} b}}{{$a}} {{.a}}", "65 Sam b 5"],
  ["{{.z || d}}{{.z ?? e}}{{.z ||= f}}{{.z ??= g}}{{.z || h}}", "defff"],
  [
    "{{.n = 5}}{{.n == 5}} {{.n != 5}} {{.n > 4}} {{.n >= 6}} {{.n < 6}} {{.n <= 4}} {{.n < x}}",
    "true false true false true false false",
  ],
  ["{{hasvar::x}}{{setvar::x::}}{{varexists::x}}{{deletevar::x}}{{hasvar::x}}", "falsetruefalse"],
  ["{{setvarkey::o::k::v}}{{getvar::o}}{{getvarkey::o::k}}{{setvarindex::l::1::b}}{{.l}}", '{"k":"v"}v[null,"b"]'],
  ["{{setvar::l::[1]}}{{addvar::l::2}}{{.l}}{{getvarkey::l::1}}{{getvarkey::l::__proto__}}", '[1,"2"]2'],
  ["{{setglobalvar::g::1}}{{incglobalvar::g}}{{getglobalvar::g}}{{getvar::g}}{{hasglobalvar::g}}", "22true"],
  ["{{.x ||= {{incvar::side}}}}{{.x ||= {{incvar::side}}}}{{.side}}", "111"],
])("reads and writes the variables of %j: %j", (text, expanded) => {
  expect(expand(text)).toBe(expanded);
});

test("the names by which ledgers find unknown macros are those of all macros", () => {
  const names = ["persona", "description", "personality", "scenario", "mesexamples", "charprompt", "charjailbreak"];
  const more = ["charversion", "chardepthprompt", "creatornotes", "summary"];
  const fields = Object.fromEntries([...names, ...more].map((name) => [name, ""]));
  expect(MACRO_NAMES).toEqual(openMacros({ fields }).listNames());
});

test("lists the characters of a group", () => {
  const group = [{ name: "Ada", isMuted: false }, { name: "Bob", isMuted: true }, { name: "Cat", isMuted: false }];
  expect(expand("{{group}}|{{groupNotMuted}}|{{notChar}}|<group>", { group })).toBe(
    "Ada, Bob, Cat|Ada, Cat|Bob, Cat|Ada, Bob, Cat",
  );
});

test("knows the size and the state of the chat", () => {
  const chat = { generation: "swipe", messageCount: 3, contextTokens: 8192, promptTokens: 7000 };
  expect(expand("{{lastMessageId}} {{allChatRange}} {{maxPrompt}} {{maxContextTokens}} {{maxResponse}}", { chat }))
    .toBe("2 0-2 7000 8192 1192");
  expect(expand("{{lastGenerationType}} {{isMobile}} {{chatStart}}", { chat })).toBe("swipe false ***");
});

test("formats example dialogues, or leaves them as written", () => {
  const fields = { mesexamples: "{{user}}: Hi\n<START>\n{{char}}: Ho" };
  expect(expand("{{mesExamples}}|{{mesExamplesRaw}}", { fields })).toBe(
    "<START>\nSam: Hi\n<START>\nAda: Ho\n|Sam: Hi\n<START>\nAda: Ho",
  );
});

test("names the macros that aren't expanded, each once, but not those of messages", () => {
  const budget = new MacroBudget();
  const macros = new Macros(
    { char: "Ada", user: "Sam", fields: {}, clock: { nowMs: 0 }, random: () => 0, chat: {} },
    budget,
  );
  const text = "{{upper::a}}{{Upper::b}}{{char::x}}{{lastExpression}}{{user}}{{ 1 }}";
  expect(macros.expand(text, { location: "l", field: "lorebook", source: "Mill" })).toBe(
    "{{upper::a}}{{Upper::b}}{{char::x}}Sam{{ 1 }}",
  );
  macros.expand(text, { location: "m", ignoresUnknown: true });
  const place = { field: "lorebook", source: "Mill" };
  expect(budget.notExpanded).toEqual([
    { ...place, reason: "unknown", macro: "upper" },
    { ...place, reason: "arguments", macro: "char" },
    { ...place, reason: "unknown", macro: "lastexpression" },
  ]);
});

test("shows times in the client's time zone", () => {
  expect(expand("{{time}} | {{date}} | {{weekday}} | {{isotime}} | {{isodate}} | {{idle_duration}} | {{time_UTC-3}}"))
    .toBe("9:05 PM | November 22, 2026 | Sunday | 21:05 | 2026-11-22 | 3 hours | 9:05 AM");
  expect(expand("{{isodate}} {{isotime}}", { clock: { nowMs: NOON, timeZone: "Pacific/Kiritimati" } }))
    .toBe("2026-11-23 02:05");
  // Offsets from 16 on are minutes, as in Moment.js.
  expect(expand("{{time::UTC+2}} {{time::UTC+90}} {{time::elsewhere}} {{time_utc+2}}"))
    .toBe("2:05 PM 1:35 PM 9:05 PM 9:05 PM");
});

test.each([
  ["YYYY-MM-DD HH:mm:ss", "2026-11-22 21:05:00"],
  ["[at] dddd Do MMMM h A \\D", "at Sunday 22nd November 9 PM D"],
  [
    "LT|LTS|L|LL|LLL|LLLL",
    "9:05 PM|9:05:00 PM|11/22/2026|November 22, 2026|November 22, 2026 9:05 PM|Sunday, November 22, 2026 9:05 PM",
  ],
  ["l ll ddd dd d e E MMM M YY Q Qo", "11/22/2026 Nov 22, 2026 Sun Su 0 0 7 Nov 11 26 4 4th"],
  ["w ww W WW gggg GGGG DDD DDDD DDDo", "48 48 47 47 2026 2026 326 326 326th"],
  ["H k hh a Hmm hmmss SSS Z ZZ X", "21 21 09 pm 2105 90500 000 +09:00 +0900 1795349100"],
])("formats the time as %j: %j", (format, expanded) => {
  expect(expand(`{{datetimeformat::${format}}}`)).toBe(expanded);
});

test.each([
  ["2026-01-02", "2026-01-01", "in a day"],
  ["2026-01-01 10:00", "2026-01-01T12:40:00", "3 hours ago"],
  ["2026-01-01T10:00:00Z", "2026-01-01T12:00:00+02:00", "a few seconds ago"],
  ["2026-01-01T19:00:00", "2026-01-01T10:02:00Z", "2 minutes ago"],
  ["2020-01-01", "2026-02-01", "6 years ago"],
  ["20260301", "2026-01-20", "in a month"],
  ["2026-02-30", "2026-01-01", "Invalid date"],
  ["soon", "2026-01-01", "Invalid date"],
])("describes the time from %j to %j: %j", (left, right, expanded) => {
  expect(expand(`{{timeDiff::${left}::${right}}}`)).toBe(expanded);
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
  expect(expand("{{random::{{user}}, {{char}}::{{user}}, {{char}}}}")).toBe("Sam, Ada");
  expect(["Sam", "Ada"]).toContain(expand("{{random::{{user}}, {{char}}}}"));
  expect(expand("{{setvar::l::x,x}}{{random:{{getvar::l}}}}{{random:y::y}}{{random}}{{pick::}}")).toBe("xy");
  expect(expand("{{pick::{{random::x::x}}::x}}")).toBe("x");
  expect(Number(expand("{{roll:3d6+10}}"))).toBeGreaterThanOrEqual(13);
  expect(expand("[{{roll:many}}{{roll:0}}{{roll:2d6 + 1}}] {{roll 1d1+2}}{{roll::1}}")).toBe("[] 31");
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

test("a field isn't empty for a condition inside of it", () => {
  const macros = openMacros({ fields: { description: "{{if description}}a{{else}}b{{/if}}", personality: "" } });
  const expandField = (text: string) => macros.expand(text, { location: "d", self: "description" });
  expect(expandField("{{if charDescription}}a{{else}}b{{/if}}{{if personality}}c{{/if}}")).toBe("a");
  expect(macros.expand("{{description}}", { location: "p" })).toBe("a");
});

test("stops fields that contain themselves, and endless nesting", () => {
  expect(expand("{{description}}", { fields: { description: "a{{personality}}", personality: "b{{description}}" } }))
    .toBe("ab");
  const deep = "{{reverse:".repeat(2000) + "x" + "}}".repeat(2000);
  expect(expand(deep)).toContain("x");
  const unmatched = "{{ ".repeat(50_000);
  expect(expand(unmatched)).toBe(unmatched);
});
