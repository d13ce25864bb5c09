/**
 * What rendering one text may cost. Messages and cards are written by strangers, so every step that can grow out of
 * proportion to the text checks one of these limits first; a text over a limit is shown as plain text.
 */

/** Time for one message, in milliseconds. The same for all of its blocks and formulas together. */
export const MESSAGE_MS = 200;

/** Time for one update of a message that still grows. One that takes it all is followed by updates without formatting. */
export const GROWING_MS = 100;

/** Levels of nesting in the Markdown. Parsers recurse, so this also bounds the stack. */
export const MAX_DEPTH = 1000;

/** Longest paragraph, heading, list item or cell, in UTF-16 units. The inline grammar takes quadratic time in its worst case. */
export const MAX_INLINE_LENGTH = 100_000;

/** Longest line of asterisks that is a rule, in UTF-16 units; a longer one is text. */
export const MAX_RULE_LENGTH = 1000;

/** Longest text, in UTF-16 units. */
export const MAX_TEXT_LENGTH = 2_000_000;

/** Most tags of one message, before sanitizing. */
export const MAX_TAGS = 100_000;

/**
 * Most tags of one block, times those of them that are foreign HTML, where that isn't well-formed. Parsers do much work for
 * each tag that others leave open: they look through all open elements, and open formatting elements again in each block
 * that follows, so 100 kB can become 50 million elements.
 *
 * @see https://html.spec.whatwg.org/multipage/parsing.html#reconstruct-the-active-formatting-elements
 */
export const MAX_TAG_PRODUCT = 200_000;

/** Deepest nesting of well-formed HTML. Browsers put what is deeper beside it anyway. */
export const MAX_HTML_DEPTH = 500;

/** Most columns of a table. Browsers lay out wide tables in quadratic time. */
export const MAX_COLUMNS = 500;

/** Most tries to render a message that ran out of time. */
export const MAX_TRIES = 10;

/** Why a text was not rendered. */
export type LimitReason = "time" | "depth" | "length" | "tags" | "columns";

/** Thrown by whatever reaches a limit; the text is shown as plain text instead. */
export class RenderLimitError extends Error {
  constructor(readonly reason: LimitReason) {
    super(`Can't render the text: it is over the limit of ${reason}`);
    this.name = "RenderLimitError";
  }
}

/** The time that is left for one text. */
export class RenderBudget {
  readonly #now: () => number;
  readonly #deadline: number;

  /** @param now A clock in milliseconds; tests pass their own. */
  constructor(ms: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#deadline = now() + ms;
  }

  /** Milliseconds that are left, never below zero. */
  get leftMs(): number {
    return Math.max(0, this.#deadline - this.#now());
  }

  /** @throws {RenderLimitError} `time` when the budget is spent. */
  check(): void {
    if (this.#now() > this.#deadline) throw new RenderLimitError("time");
  }
}

/** A budget without a limit, for what is not measured. */
export const UNLIMITED = new RenderBudget(Infinity);
