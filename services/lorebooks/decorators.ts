/** V3's decorators: lines `@@name value` at the head of an entry's content that say when it fires and where it goes. */

/** What the decorators of one entry ask for. What none of them says is absent. */
export interface Decorators {
  /** Messages of the character there have to be. */
  activateOnlyAfter?: number;
  /** Fires only where the count of the character's messages is a multiple of it. */
  activateOnlyEvery?: number;
  keepActivateAfterMatch?: true;
  dontActivateAfterMatch?: true;
  depth?: number;
  /** Depth counted from the first message. */
  reverseDepth?: number;
  role?: "system" | "user" | "assistant";
  scanDepth?: number;
  /** Fires only where this greeting began the chat; 0 is the first message of the card. */
  isGreeting?: number;
  position?: "before_char" | "after_char";
  ignoreOnMaxContext?: true;
  additionalKeys?: string[];
  excludeKeys?: string[];
  activate?: true;
  dontActivate?: true;
  disableUiPrompt?: UiPrompt;
}

/** A prompt of the owner's that a decorator can switch off. */
export type UiPrompt = "system_prompt" | "post_history_instructions";

/** An entry's content taken apart. */
export interface DecoratedContent {
  decorators: Decorators;
  /** What is left to send. */
  text: string;
}

/** How one decorator is read; `undefined` where its value says nothing here. */
type Reader = (value: string) => Partial<Decorators> | undefined;

/** V3 asks for at least five fallbacks in a row. */
const MAX_LINES = 200;

/**
 * Those that mean something in a chat. The others of the specification (`instruct_depth`, `reverse_instruct_depth`,
 * `instruct_scan_depth` count the tokens of a text without messages, `is_user_icon` needs icons of cards that take the
 * place of personas) count as unknown, so that their fallbacks hold.
 */
const READERS = new Map<string, Reader>(Object.entries<Reader>({
  activate_only_after: number((activateOnlyAfter) => ({ activateOnlyAfter })),
  activate_only_every: number((activateOnlyEvery) => activateOnlyEvery > 0 ? { activateOnlyEvery } : undefined),
  keep_activate_after_match: () => ({ keepActivateAfterMatch: true }),
  dont_activate_after_match: () => ({ dontActivateAfterMatch: true }),
  depth: number((depth) => ({ depth })),
  reverse_depth: number((reverseDepth) => ({ reverseDepth })),
  role: (value) => value === "system" || value === "user" || value === "assistant" ? { role: value } : undefined,
  scan_depth: number((scanDepth) => ({ scanDepth })),
  is_greeting: number((isGreeting) => ({ isGreeting })),
  position: (value) =>
    value === "before_desc"
      ? { position: "before_char" }
      : value === "after_desc"
      ? { position: "after_char" }
      : undefined,
  ignore_on_max_context: () => ({ ignoreOnMaxContext: true }),
  additional_keys: list((additionalKeys) => ({ additionalKeys })),
  exclude_keys: list((excludeKeys) => ({ excludeKeys })),
  activate: () => ({ activate: true }),
  dont_activate: () => ({ dontActivate: true }),
  disable_ui_prompt: (value) =>
    value === "system_prompt" || value === "post_history_instructions" ? { disableUiPrompt: value } : undefined,
}));

/**
 * Takes the decorators off an entry's content. Every line of theirs goes, known or not: no model is to see one.
 *
 * Of two with the same name the first holds. `@@@name` stands in for the line above it where that one says nothing here.
 */
export function readDecorators(content: string): DecoratedContent {
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

function number(use: (value: number) => Partial<Decorators> | undefined): Reader {
  return (value) => /^-?\d{1,9}(\.\d{1,9})?$/.test(value) ? use(Math.max(0, Math.floor(Number(value)))) : undefined;
}

function list(use: (values: string[]) => Partial<Decorators>): Reader {
  return (value) => {
    const values = value.split(",").map((item) => item.trim()).filter((item) => item !== "");
    return values.length === 0 ? undefined : use(values);
  };
}
