/** Macros of cards, presets, lorebooks and notes, which expand each other. */
import { MACRO_LIMITS, MacroBudget } from "../../../services/prompts/macros/macro_budget.ts";
import { type MacroField, Macros, type MacroScope } from "../../../services/prompts/macros/macros.ts";
import { createSeededRandom } from "../../../services/prompts/participants.ts";
import { BRACES, DOUBLING, LEVELS, LONG_NAME, NESTED_BRACES } from "../../helpers/files/macro_attacks.ts";
import { mutateText, tokenText } from "../mutations.ts";
import type { Random } from "../random.ts";
import { claim, claimSame, nextStretch, target } from "../target.ts";

/** What one prompt is made of. */
interface Texts {
  /** Expanded one after another with one budget. */
  texts: string[];
  fields: Partial<Record<MacroField, string>>;
  char: string;
}

const FIELDS: MacroField[] = [
  ...["persona", "description", "personality", "scenario", "mesexamples", "charprompt"] as const,
  ...["charjailbreak", "charversion", "chardepthprompt", "creatornotes", "summary"] as const,
];
const TOKENS = [
  ...["{{char}}", "{{user}}", "{{group}}", "<USER>", "<BOT>", "{{original}}", "{{trim}}", "{{newline}}", "{{// note}}"],
  ...["{{setvar::a::x}}", "{{getvar::a}}", "{{addvar::a::yy}}", "{{incvar::n}}", "{{setglobalvar::a::{{getvar::a}}z}}"],
  ...["{{setvar::a::{{getvar::a}}{{getvar::a}}}}", "{{random::a::b}}", "{{random:a,b\\,c}}", "{{pick::{{char}}::b}}"],
  ...["{{roll:2d6+1}}", "{{roll:999d999999999}}", "{{reverse:abc}}", "{{time}}", "{{time_UTC+2}}", "{{idle_duration}}"],
  ...["{{lastMessage}}", "{{model}}", "{{constructor}}", "{{__proto__}}", "{{unknown {{char}}}}", "{{hidden_key:x}}"],
  ...[
    "{{if .a}}",
    "{{if !description}}",
    "{{else}}",
    "{{/if}}",
    "{{trim}}",
    "{{/trim}}",
    "{{setvar::b}}",
    "{{/setvar}}",
  ],
  ...[
    "{{.a = {{user}}}}",
    "{{.n++}}",
    "{{$a ||= x}}",
    "{{.n > 2}}",
    "{{setvarkey::o::k::v}}",
    "{{space::3}}",
    "{{//}}",
  ],
  ...["{{datetimeformat::LLLL}}", "{{timeDiff::2026-01-01::2026-02-01}}", "{{time::UTC+2}}", "{{///}}", "{{/unknown}}"],
  ...FIELDS.map((field) => `{{${field}}}`),
  ...[
    "{{",
    "}}",
    "{",
    "}",
    "{{{",
    "}}}",
    "::",
    ":",
    ",",
    "\\,",
    "\n",
    "\r\n",
    " ",
    "word",
    "日本",
    "🦊",
    "\ud800",
    "\0trim\0",
  ],
];
const PAIRS: [string, string][] = [
  ...["{{reverse:", "{{random::", "{{setvar::a::", "{{a:", "{{", "{{//"].map((open): [string, string] => [open, "}}"]),
];
/** Samples from cards in use. */
const SAMPLES = [
  "{{char}} met {{user}} at {{time}}. {{random::It rains.::It's dry.}} {{roll:d20}}",
  "{{setvar::mood::calm}}\n{{trim}}\n{{char}} is {{getvar::mood}}. {{// a note}}",
  "<START>\n{{user}}: Hi\n{{char}}: Hi!",
];

function someText(random: Random): string {
  return random.chance(0.3) ? mutateText(random, random.pick(SAMPLES), TOKENS) : tokenText(random, TOKENS, PAIRS);
}

function expandAll({ texts, fields, char }: Texts) {
  const scope: MacroScope = {
    char,
    user: "Sam",
    clock: { nowMs: 1_700_000_000_000, timeZone: "UTC", idleMs: 5_000 },
    fields,
    random: createSeededRandom("c1"),
    chat: { lastMessage: "{{char}} said", lastUserMessage: "Hi", model: "m" },
  };
  const budget = new MacroBudget();
  const macros = new Macros(scope, budget);
  const expanded = texts.map((text, n) => macros.expand(text, { location: `p${n}`, original: "{{char}}" }));
  return { expanded, notExpanded: budget.notExpanded, used: budget.used, done: budget.done };
}

const alone = (text: string): Texts => ({ texts: [text], fields: {}, char: "Ada" });

export const MACROS = target<Texts>({
  name: "macros",
  generate(random) {
    const fields = Object.fromEntries(
      random.list(random.below(FIELDS.length + 1), (n) => [FIELDS[n]!, someText(random)]),
    );
    return {
      texts: random.list(1 + random.below(4), () => someText(random)),
      fields,
      char: random.chance(0.9) ? "Ada" : someText(random),
    };
  },
  async run(input) {
    const result = expandAll(input);
    await nextStretch();
    claimSame(expandAll(input), result, "The same texts expand differently");
    const { expanded, notExpanded, used, done } = result;
    claim(used.steps <= MACRO_LIMITS.steps && used.bytes <= MACRO_LIMITS.bytes, () => "The budget was exceeded");
    claim(done.steps <= 4 * MACRO_LIMITS.steps && done.bytes <= 4 * MACRO_LIMITS.bytes, () => "Too much was forgiven");
    for (const { field, macro } of notExpanded) {
      if (macro !== undefined) continue; // Only this macro stays as written.
      const n = Number(field.slice(1));
      claimSame(expanded[n], input.texts[n], "A text over budget doesn't stay as written");
    }
    const plain = input.texts.reduce((sum, text) => sum + text.length, 0);
    const length = expanded.reduce((sum, text) => sum + text.length, 0);
    claim(length <= plain + MACRO_LIMITS.bytes, () => `${plain} characters became ${length}`);
  },
  cases: {
    "a variable doubled 24 times": () => alone(DOUBLING),
    "fields that name each other 100 times, four levels deep": () => ({
      texts: Object.values(LEVELS),
      fields: {
        description: LEVELS.description,
        personality: LEVELS.personality,
        scenario: LEVELS.scenario,
        mesexamples: LEVELS.mes_example,
        charprompt: LEVELS.system_prompt,
      },
      char: "Ada",
    }),
    "1.5 MB of open braces": () => alone(BRACES),
    "1.5 MB of braces inside each other": () => alone(NESTED_BRACES),
    "a name of 1 MB": () => ({ texts: ["{{char}}".repeat(1_000), "<BOT>".repeat(1_000)], fields: {}, char: LONG_NAME }),
    "dice without end": () => alone("{{roll:999d999999999}}".repeat(5_000)),
    "a million line breaks around trims": () => alone(`${"\n".repeat(500_000)}{{trim}}${"\n".repeat(500_000)}`),
    "a list of a million": () => alone(`{{random:${"a,".repeat(500_000)}}}`),
    "names as long as their text": () => alone(`{{${"a".repeat(1_000_000)}}}`),
    "white space before a name": () => alone(`{{${" ".repeat(100_000)}`.repeat(10)),
    "white space in many macros": () => alone(`{{${" ".repeat(50)}`.repeat(20_000) + "}}".repeat(20_000)),
  },
});
