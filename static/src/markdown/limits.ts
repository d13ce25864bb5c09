/**
 * Limits of rendering one text.
 *
 * Strangers write messages and cards, so every step whose cost can outgrow the text checks one of these limits first. A
 * text over a limit is shown as plain text.
 */

/** Time for one message, all its blocks and formulas together, in milliseconds. */
export const MESSAGE_MS = 200;

/** Time for one update of a growing message, in milliseconds. After one that exceeds it, updates are unformatted. */
export const GROWING_MS = 100;

/** Levels of Markdown nesting. Parsers recurse, so this also limits the stack. */
export const MAX_DEPTH = 1000;

/**
 * Longest paragraph, heading, list item or cell, in UTF-16 code units. The inline grammar is quadratic in the worst
 * case.
 */
export const MAX_INLINE_LENGTH = 100_000;

/** Longest line of asterisks that is a rule, in UTF-16 code units. A longer one is text. */
export const MAX_RULE_LENGTH = 1000;

/** Longest text, in UTF-16 code units. */
export const MAX_TEXT_LENGTH = 2_000_000;

/** Most tags of one message before sanitizing. */
export const MAX_TAGS = 100_000;

/**
 * Most tags of one block, times those that come from HTML in the text, if it isn't well-formed. Parsers do much work
 * for each tag that others leave open: they search all open elements, and open formatting elements again in each
 * following block, so 100 kB can become 50 million elements.
 *
 * @see https://html.spec.whatwg.org/multipage/parsing.html#reconstruct-the-active-formatting-elements
 */
export const MAX_TAG_PRODUCT = 200_000;

/** Deepest nesting of well-formed HTML. Browsers flatten deeper nesting anyway. */
export const MAX_HTML_DEPTH = 500;

/** Most columns of a table. Browsers lay out wide tables in quadratic time. */
export const MAX_COLUMNS = 500;

/** Most attempts to render a message that ran out of time. */
export const MAX_TRIES = 10;

/** Why a text was not rendered. */
export type LimitReason = "time" | "depth" | "length" | "tags" | "columns";

/** Thrown if a limit is exceeded. The text is then shown as plain text. */
export class RenderLimitError extends Error {
  constructor(readonly reason: LimitReason) {
    super(`Can't render the text: it is over the limit of ${reason}`);
    this.name = "RenderLimitError";
  }
}

/** The remaining time for one text. */
export class RenderBudget {
  readonly #now: () => number;
  readonly #deadline: number;

  /** @param now A clock in milliseconds; tests pass their own. */
  constructor(ms: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#deadline = now() + ms;
  }

  /** Remaining milliseconds, never below zero. */
  get leftMs(): number {
    return Math.max(0, this.#deadline - this.#now());
  }

  /** @throws {RenderLimitError} `time` if no time is left. */
  check(): void {
    if (this.#now() > this.#deadline) throw new RenderLimitError("time");
  }
}

/** A budget without a limit. */
export const UNLIMITED = new RenderBudget(Infinity);
