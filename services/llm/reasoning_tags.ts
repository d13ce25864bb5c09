/** The tags with which families of models mark reasoning in their text (docs/protocols/llm.md, "Reasoning"). */

/** The tags of one family of models. Case is ignored. */
export interface TagFamily {
  /** Tags before reasoning. */
  opens: readonly string[];
  /** Tags after reasoning. */
  closes: readonly string[];
  /** Tags around the answer, which are removed. */
  markers: readonly string[];
  /** Whether a tag may contain spaces: `< think >`. */
  isLoose?: boolean;
}

const NAMES = ["think", "thinking", "thought", "reasoning"];
const HARMONY_FINAL = ["<|channel|>final<|message|>", "<|start|>assistant<|channel|>final<|message|>"];

/** All families. */
export const TAG_FAMILIES: readonly TagFamily[] = [
  // Qwen, DeepSeek, GLM, Gemini's OpenAI endpoint, and fine-tunes
  {
    opens: NAMES.map((name) => `<${name}>`),
    closes: NAMES.map((name) => `</${name}>`),
    markers: [],
    isLoose: true,
  },
  // Magistral
  { opens: ["[THINK]"], closes: ["[/THINK]"], markers: [], isLoose: true },
  // Gemma 4
  { opens: ["<|channel>thought"], closes: ["<channel|>"], markers: [] },
  // gpt-oss, https://cookbook.openai.com/articles/openai-harmony
  {
    opens: ["<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>analysis<|message|>"],
    closes: ["<|end|>", "<|return|>", ...HARMONY_FINAL],
    markers: [
      ...HARMONY_FINAL,
      // Text for the user before a tool call
      "<|channel|>commentary<|message|>",
      "<|start|>assistant<|channel|>commentary<|message|>",
      "<|start|>assistant",
      "<|end|>",
      "<|return|>",
    ],
  },
  // ByteDance Seed
  { opens: ["<seed:think>"], closes: ["</seed:think>"], markers: [], isLoose: true },
  // Kimi
  { opens: ["◁think▷"], closes: ["◁/think▷"], markers: [], isLoose: true },
  // Cohere Command
  {
    opens: ["<|START_THINKING|>"],
    closes: ["<|END_THINKING|>", "<|START_RESPONSE|>"],
    markers: ["<|START_RESPONSE|>", "<|END_RESPONSE|>"],
  },
  // Apertus
  { opens: ["<|inner_prefix|>"], closes: ["<|inner_suffix|>"], markers: [] },
];

/** A tag in a text. */
export interface FoundTag {
  family: TagFamily;
  kind: "open" | "close" | "marker";
  start: number;
  /** Position after the tag. Undefined if the text ends within what may become a tag. */
  end?: number;
}

/** Kinds of tags to look for. */
export type TagKinds = readonly FoundTag["kind"][];

const TAGS_OF = { open: "opens", close: "closes", marker: "markers" } as const;
/** Characters with which tags start. */
const FIRST = /[<[◁]/g;
/** Maximum number of spaces in a tag. */
const MAX_SPACES = 8;

/**
 * Finds the first tag of some families in a text.
 *
 * @param isExpected Returns whether a tag may be at a position. Default: anywhere.
 */
export function findTag(
  text: string,
  families: readonly TagFamily[],
  kinds: TagKinds,
  { from = 0, isExpected = () => true }: { from?: number; isExpected?(at: number): boolean } = {},
): FoundTag | undefined {
  FIRST.lastIndex = from;
  for (let match = FIRST.exec(text); match !== null; match = FIRST.exec(text)) {
    const found = findTagAt(text, match.index, families, kinds);
    if (found !== undefined && isExpected(found.start)) return found;
    FIRST.lastIndex = match.index + 1;
  }
  return undefined;
}

/** Finds the tag that starts at a position: the longest one, as one may be the start of another. */
export function findTagAt(
  text: string,
  start: number,
  families: readonly TagFamily[],
  kinds: TagKinds,
): FoundTag | undefined {
  let longest: FoundTag | undefined;
  for (const family of families) {
    for (const kind of kinds) {
      for (const tag of family[TAGS_OF[kind]]) {
        const end = matchTag(text, start, tag, family.isLoose);
        if (end === "partial") return { family, kind, start };
        if (end !== undefined && end > (longest?.end ?? 0)) longest = { family, kind, start, end };
      }
    }
  }
  return longest;
}

/** Returns the position after a tag, "partial" if the text ends within it, or undefined. */
function matchTag(text: string, start: number, tag: string, isLoose = false): number | "partial" | undefined {
  let at = start;
  let spaces = 0;
  for (let n = 0; n < tag.length;) {
    if (at >= text.length) return "partial";
    const [char, wanted] = [text[at]!, tag[n]!];
    if (char === wanted || char.toLowerCase() === wanted.toLowerCase()) {
      at++;
      n++;
      continue;
    }
    const isGap = n > 0 && (/[<[◁/]/.test(tag[n - 1]!) || /[>\]▷/]/.test(wanted));
    if (!isLoose || !isGap || char !== " " || ++spaces > MAX_SPACES) return undefined;
    at++;
  }
  return at;
}

/** Reports whether a position is inside a code block or inline code. */
export function isCode(text: string, at: number): boolean {
  const before = text.slice(0, at);
  const isInBlock = before.split("```").length % 2 === 0;
  return isInBlock || before.slice(before.lastIndexOf("\n") + 1).split("`").length % 2 === 0;
}
