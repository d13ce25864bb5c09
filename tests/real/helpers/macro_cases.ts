/** Random texts with macros, as trees, so that a difference can be made smaller. */
import type { Random } from "../../fuzz/random.ts";

/** A text, or a macro: its parts are texts and further macros. */
export type MacroNode = string | MacroNode[];

const WORDS = [
  "a",
  "fox",
  "0",
  "false",
  " ",
  "\n",
  "\n  indented\n",
  "10",
  "<USER>",
  "x, y",
  ":",
  "-",
  "日本",
  "007",
  "=",
];
const NAMES = ["a", "b", "my-var", "list"];
const VALUES = ["1", "0", "-2.50", "text", "", "off", "[1]", '{"k":"v"}', " spaced ", "3"];
const PLAIN = [
  ...["char", "user", "group", "notChar", "groupNotMuted", "noop", "trim", "newline", "space", "original"],
  ...["description", "personality", "charScenario", "persona", "mesExamples", "mesExamplesRaw", "charPrompt"],
  ...["charInstruction", "charVersion", "creatorNotes", "charFirstMessage", "charDepthPrompt", "input", "lastMessage"],
  ...["lastUserMessage", "lastCharMessage", "lastMessageId", "allChatRange", "exampleSeparator", "isMobile", "unknown"],
  ...[
    "CHAR",
    " user ",
    "!user",
    "#char",
    "maxPrompt",
    "maxContextTokens",
    "maxResponse",
    "instructInput",
    "idleDuration",
  ],
];
const OPERATORS = ["", "++", "--", "=", "+=", "-=", "||", "||=", "??", "??=", "==", "!=", ">", ">=", "<", "<="];

/** Makes a random text. @param depth How deep macros may be nested. */
export function makeMacroText(random: Random, depth = 4): MacroNode[] {
  return random.list(1 + random.below(4), () => makeNode(random, depth));
}

/** Returns the text of a tree. */
export function toMacroText(node: MacroNode): string {
  return typeof node === "string" ? node : node.map(toMacroText).join("");
}

/** Returns smaller trees, the smallest first: parts of it, and without one part or with a smaller one. */
export function* listSmaller(nodes: readonly MacroNode[]): Generator<MacroNode[], void, undefined> {
  for (const node of nodes) if (typeof node !== "string") yield [...node];
  for (let n = 0; n < nodes.length; n++) {
    if (nodes.length > 1) yield nodes.filter((_, index) => index !== n);
    const node = nodes[n]!;
    if (typeof node === "string") continue;
    for (const smaller of listSmaller(node)) yield nodes.map((each, index) => index === n ? smaller : each);
  }
}

function makeNode(random: Random, depth: number): MacroNode {
  if (depth === 0 || random.chance(0.3)) return random.pick(WORDS);
  const inner = () => makeMacroText(random, depth - 1);
  const name = random.pick(NAMES);
  const value = (): MacroNode => random.chance(0.6) ? random.pick(VALUES) : inner();
  const scope = random.pick(["", "", "global"]);
  switch (random.below(14)) {
    case 0:
    case 1:
      return `{{${random.pick(PLAIN)}}}`;
    case 2: {
      const condition = random.pick<() => MacroNode>([
        () =>
          random.pick(["1", "0", "off", "description", "!personality", "user", ".a", "!.b", "$a", "nothing", "! 1"]),
        () => [makeVariable(random, value)],
        // Never an empty one: such a condition stays as written, with SillyTavern's mark for `{{else}}` in it.
        () => [random.pick(["{{noop}}", "{{getvar::a}}"]), ...inner()],
      ])();
      const otherwise: MacroNode = random.chance(0.5) ? ["{{else}}", inner()] : "";
      return [random.pick(["{{if ", "{{#if ", "{{if  "]), condition, "}}", inner(), otherwise, "{{/if}}"];
    }
    case 3:
      return ["{{if::", value(), "::", inner(), "}}"];
    case 4:
      return [`{{set${scope}var::${name}::`, value(), "}}"];
    case 5:
      return [`{{${random.pick(["", "#"])}setvar::${name}}}`, inner(), "{{/setvar}}"];
    case 6:
      return [`{{add${scope}var::${name}::`, value(), "}}"];
    case 7:
      return `{{${random.pick(["get", "inc", "dec", "has", "delete"])}${scope}var${
        random.pick(["::", " ", ":"])
      }${name}}}`;
    case 8:
    case 9:
      return makeVariable(random, value);
    case 10:
      return [random.pick(["{{reverse::", "{{trim::", "{{comment::", "{{banned ", "{{// "]), inner(), "}}"];
    case 11: {
      const block = random.pick(["reverse", "trim", "comment", "//", "char"]);
      return [`{{${block}}}`, inner(), `{{/${block}}}`];
    }
    case 12:
      return random.pick<() => MacroNode>([
        () => `{{${random.pick(["space", "newline", "greeting"])}::${random.pick(["0", "1", "2", "x", "-1"])}}}`,
        () => [`{{setvarkey::${name}::${random.pick(["0", "k"])}::`, value(), "}}"],
        () => `{{getvarkey::${name}::${random.pick(["0", "k"])}}}`,
        () => `{{timeDiff::2026-01-0${1 + random.below(9)}::2026-0${1 + random.below(9)}-01}}`,
        () => `{{roll::${random.pick(["1", "d1", "3d1+2", "x", "1d1-4", ""])}}}`,
      ])();
    default:
      return ["{{", random.pick(["unknown", "char", "newline", "random"]), random.pick(["::", " ", ":"]), "z", "}}"];
  }
}

function makeVariable(random: Random, value: () => MacroNode): MacroNode {
  const operator = random.pick(OPERATORS);
  const gap = random.pick(["", " "]);
  const head = `{{${random.pick([".", ".", "$"])}${random.pick(NAMES)}${gap}${operator}${gap}`;
  return operator === "" || operator === "++" || operator === "--" ? `${head}}}` : [head, value(), "}}"];
}
