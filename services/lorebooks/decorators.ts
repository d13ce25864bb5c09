/** V3 decorators: lines `@@name value` at the start of an entry's content that control its activation and position. */

/** The decorators of one entry. Absent ones aren't set. */
export interface Decorators {
  /** Minimum number of character messages. */
  activateOnlyAfter?: number;
  /** The number of character messages must be a multiple of this. */
  activateOnlyEvery?: number;
  keepActivateAfterMatch?: true;
  dontActivateAfterMatch?: true;
  depth?: number;
  /** Depth counted from the first message. */
  reverseDepth?: number;
  role?: "system" | "user" | "assistant";
  scanDepth?: number;
  /** Only active if this greeting started the chat; 0 is `first_mes`. */
  isGreeting?: number;
  position?: "before_char" | "after_char";
  ignoreOnMaxContext?: true;
  additionalKeys?: string[];
  excludeKeys?: string[];
  activate?: true;
  dontActivate?: true;
  disableUiPrompt?: UiPrompt;
}

/** A prompt that decorators can disable. */
export type UiPrompt = "system_prompt" | "post_history_instructions";

/** Content of an entry, split. */
export interface DecoratedContent {
  decorators: Decorators;
  /** The content without decorators. */
  text: string;
}

/** Parses the value of a decorator. @returns `undefined` if the value is invalid. */
type Reader = (value: string) => Partial<Decorators> | undefined;

/** V3 requires at least five fallbacks in a row. */
const MAX_LINES = 200;

/**
 * The decorators that apply to chats. Others are treated as unknown, so that their fallbacks apply: `instruct_depth`,
 * `reverse_instruct_depth` and `instruct_scan_depth` count tokens of a text without messages; `is_user_icon` needs
 * cards that replace personas.
 */
const READERS = new Map<string, Reader>(Object.entries<Reader>({
  activate_only_after: readNumber((activateOnlyAfter) => ({ activateOnlyAfter })),
  activate_only_every: readNumber((activateOnlyEvery) => activateOnlyEvery > 0 ? { activateOnlyEvery } : undefined),
  keep_activate_after_match: () => ({ keepActivateAfterMatch: true }),
  dont_activate_after_match: () => ({ dontActivateAfterMatch: true }),
  depth: readNumber((depth) => ({ depth })),
  reverse_depth: readNumber((reverseDepth) => ({ reverseDepth })),
  role: (value) => value === "system" || value === "user" || value === "assistant" ? { role: value } : undefined,
  scan_depth: readNumber((scanDepth) => ({ scanDepth })),
  is_greeting: readNumber((isGreeting) => ({ isGreeting })),
  position: (value) =>
    value === "before_desc"
      ? { position: "before_char" }
      : value === "after_desc"
      ? { position: "after_char" }
      : undefined,
  ignore_on_max_context: () => ({ ignoreOnMaxContext: true }),
  additional_keys: readList((additionalKeys) => ({ additionalKeys })),
  exclude_keys: readList((excludeKeys) => ({ excludeKeys })),
  activate: () => ({ activate: true }),
  dont_activate: () => ({ dontActivate: true }),
  disable_ui_prompt: (value) =>
    value === "system_prompt" || value === "post_history_instructions" ? { disableUiPrompt: value } : undefined,
}));

/**
 * Splits decorators from an entry's content. All decorator lines are removed, including unknown ones.
 *
 * The first of several with the same name wins. `@@@name` is a fallback that applies if the line above it is unknown or
 * invalid.
 */
export function parseDecorators(content: string): DecoratedContent {
  let decorators: Decorators = {};
  let text = content;
  let isSettled = true;
  for (let lines = 0; lines < MAX_LINES; lines++) {
    const match = /^\s*(@@@?)([A-Za-z_]+)[^\S\n]*([^\n]*)(?:\n|$)/.exec(text);
    if (match === null) break;
    text = text.slice(match[0].length);
    const isFallback = match[1] === "@@@";
    if (isFallback && isSettled) continue;
    const said = READERS.get(match[2]!.toLowerCase())?.(match[3]!.trim());
    isSettled = said !== undefined;
    if (said !== undefined) decorators = { ...said, ...decorators };
  }
  return { decorators, text: text === content ? content : text.replace(/^\s*\n/, "") };
}

function readNumber(use: (value: number) => Partial<Decorators> | undefined): Reader {
  return (value) => /^-?\d{1,9}(\.\d{1,9})?$/.test(value) ? use(Math.max(0, Math.floor(Number(value)))) : undefined;
}

function readList(use: (values: string[]) => Partial<Decorators>): Reader {
  return (value) => {
    const values = value.split(",").map((item) => item.trim()).filter((item) => item !== "");
    return values.length === 0 ? undefined : use(values);
  };
}
