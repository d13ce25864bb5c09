/** Growing Markdown: finished blocks stay, only the last one is parsed again. */
import type { Links, Token } from "marked";
import {
  BoundedLexer,
  GROWING_MS,
  MAX_TEXT_LENGTH,
  MAX_TRIES,
  MESSAGE_MS,
  RenderBudget,
  RenderLimitError,
  RETRY_PAUSES_MS,
} from "./limits.ts";
import { resolveHtml } from "./html_tokens.ts";
import { findFootnotes } from "./extensions.ts";
import { type FormulaPlaceholder, MarkdownRenderer, type MathToNode, randomMark } from "./render.ts";

/** One block of sanitized nodes. They are a master copy that views clone. */
export interface NodesBlock {
  kind: "nodes" | "table";
  /** Blocks of one text with the same key look the same. */
  key: string;
  fragment: DocumentFragment;
  /** Formulas that are not rendered yet. */
  placeholders: readonly FormulaPlaceholder[];
}

/** One block to show. Code is not HTML, so it needs no sanitizing and can have buttons. */
export type Block =
  | NodesBlock
  | { kind: "code"; language: string; text: string; isOpen: boolean }
  | { kind: "plain"; text: string };

/** A paragraph that may turn out to be the next item of the list before it: "2", "2.". */
const MAYBE_LIST_ITEM = /^ {0,3}(?:\d{1,9}[.)]?|[-+*])\s*$/;

/** Options; the defaults are those of the page. */
export interface GrowingOptions {
  /** A single line break is a line break, and not a space as in Markdown. */
  hasBreaks?: boolean;
  /** A clock in milliseconds. */
  now?: () => number;
}

/** The blocks of one growing message. */
export class GrowingMarkdown {
  readonly #now: (() => number) | undefined;
  /** One per text for all renderers, so that their blocks can be compared. */
  readonly #mark = randomMark();
  readonly #hasBreaks: boolean;
  #renderer: MarkdownRenderer;
  #maths: MathToNode | undefined;
  #text = "";
  #settled: Block[] = [];
  #settledLength = 0;
  #links: Links = Object.create(null);
  #shown: Block[] = [];
  #isFinal = false;
  #isPlain = false;
  /** After a failure, growing text isn't parsed again until it has this length, so that not every frame pays for it. */
  #retryLength = 0;
  /** Rendered blocks, reused if a new parse finds the same. */
  #known = new Map<string, NodesBlock>();
  /** Blocks of this parse that wait for their formulas. */
  #fresh = new Set<NodesBlock>();
  #tries = 0;
  /** Attempts in a row that got no further. */
  #vainTries = 0;
  /** Completed steps at the end of the last attempt; see `retryAfterMs`. */
  #progress = 0;
  #retryAfterMs: number | undefined;
  #isRetry = false;

  constructor({ now, hasBreaks = true }: GrowingOptions = {}) {
    this.#now = now;
    this.#hasBreaks = hasBreaks;
    this.#renderer = this.#createRenderer();
  }

  #createRenderer(): MarkdownRenderer {
    const { maths, hasBreaks } = { maths: this.#maths, hasBreaks: this.#hasBreaks };
    return new MarkdownRenderer(this.#mark, { maths, hasBreaks, isGrowing: () => !this.#isFinal });
  }

  /**
   * Returns the blocks of a text. Cheap if the text only grew at its end. Never throws: what can't be rendered within
   * the limits becomes a block of plain text.
   *
   * @param isFinal The text is complete: it is parsed once more as a whole, since a definition at the end may define a
   * link at the start.
   * @param maths Renders formulas; undefined until loaded.
   */
  update(text: string, isFinal: boolean, maths?: MathToNode): readonly Block[] {
    const normal = text.replace(/\r\n?/g, "\n");
    if (!this.#renderer.hasMaths) this.#maths = this.#renderer.maths = maths;
    const isSameMaths = maths === this.#maths;
    if (normal === this.#text && isFinal === this.#isFinal && isSameMaths) return this.#shown;
    const canGrow = !isFinal && !this.#isFinal && isSameMaths && normal.startsWith(this.#text);
    if (!canGrow) this.#reset(maths);
    this.#text = normal;
    this.#isFinal = isFinal;
    this.#tries = 0;
    if (normal.length < this.#retryLength) this.#shown = [...this.#settled, this.#plainRest()];
    else this.#tryToRead();
    return this.#shown;
  }

  /** True if the text contains formulas. */
  get hasMaths(): boolean {
    return this.#renderer.hasMaths;
  }

  /** True if the whole text is shown as plain text, since it exceeds a limit. */
  get isPlain(): boolean {
    return this.#isPlain;
  }

  /**
   * When to call `retry`, in milliseconds: rendering ran out of time and may succeed later, since rendered blocks stay
   * and the machine may have been busy. Undefined if it's complete or was tried often enough.
   */
  get retryAfterMs(): number | undefined {
    return this.#retryAfterMs;
  }

  /** Parses the text once more. Call it when idle; `update` then returns the result. */
  retry(): void {
    this.#reset(this.#maths);
    this.#isRetry = true;
    this.#tryToRead();
    this.#isRetry = false;
  }

  #reset(maths: MathToNode | undefined): void {
    this.#settled = [];
    this.#settledLength = 0;
    this.#retryLength = 0;
    this.#isPlain = false;
    this.#links = Object.create(null);
    // Formulas look different once they can be rendered, so these blocks are rendered again.
    if (maths !== this.#maths) this.#known.clear();
    this.#maths = maths;
    this.#renderer = this.#createRenderer();
  }

  #tryToRead(): void {
    // While a text grows, a later definition would change what is shown already.
    if (this.#isFinal) this.#renderer.defineNotes(findFootnotes(this.#text));
    const budget = new RenderBudget(this.#isFinal ? MESSAGE_MS : GROWING_MS, this.#now);
    this.#renderer.start(budget);
    this.#fresh.clear();
    let isInTime = true;
    try {
      this.#read();
      isInTime = this.#placeFormulas();
      this.#known = new Map(this.#shown.flatMap((block) => "key" in block ? [[block.key, block]] : []));
    } catch (error) {
      // A parser that recurses too deeply throws a RangeError. Anything else is a bug in this page or in a package.
      if (!(error instanceof RenderLimitError || error instanceof RangeError)) console.error(error);
      isInTime = !(error instanceof RenderLimitError && error.reason === "time");
      if (this.#isFinal) {
        this.#settled = [];
        this.#settledLength = 0;
        this.#isPlain = true;
      } else this.#retryLength = this.#settledLength + 2 * (this.#text.length - this.#settledLength);
      this.#shown = [...this.#settled, this.#plainRest()];
    }
    this.#noteTry(isInTime);
  }

  /** Decides whether another attempt may succeed. */
  #noteTry(isInTime: boolean): void {
    const waiting = [...this.#fresh].reduce((sum, block) => sum + block.placeholders.length, 0);
    // Formulas are rendered after all blocks, so waiting formulas mean more progress than a text that is still plain.
    const progress = this.#shown.at(-1)?.kind === "plain" ? this.#known.size - MAX_TEXT_LENGTH : -waiting;
    this.#tries++;
    this.#vainTries = this.#tries === 1 || progress > this.#progress ? 0 : this.#vainTries + 1;
    this.#retryAfterMs = isInTime || this.#tries >= MAX_TRIES ? undefined : RETRY_PAUSES_MS[this.#vainTries];
    this.#progress = progress;
  }

  #plainRest(): Block {
    return { kind: "plain", text: this.#text.slice(this.#settledLength) };
  }

  #read(): void {
    const rest = this.#text.slice(this.#settledLength);
    const lexer = new BoundedLexer(this.#renderer.options);
    Object.assign(lexer.tokens.links, this.#links);
    const found = lexer.lex(rest);
    const tokens = resolveHtml(found, this.#isFinal, (text) => lexer.inlineTokens(text));

    const keep = this.#isFinal ? tokens.length : countSettled(tokens, rest);
    for (const token of tokens.slice(0, keep)) {
      this.#settled.push(...this.#blockOf(token, false));
      this.#settledLength += token.raw.length;
      // Definitions in the rest may still change.
      if (token.raw.includes("]:")) this.#keepLinks(token, lexer.tokens.links);
    }
    const headings = this.#renderer.save();
    try {
      const tail = tokens.slice(keep).flatMap((token) => this.#blockOf(token, token === tokens.at(-1)));
      this.#shown = [...this.#settled, ...tail];
    } finally {
      this.#renderer.restore(headings);
    }
  }

  /** Keeps the definitions in a finished block for the blocks after it. */
  #keepLinks(token: Token, links: Links): void {
    if (token.type === "def") this.#links[token.tag] ??= links[token.tag]!;
    else if (token.type === "blockquote" || token.type === "list") Object.assign(this.#links, links);
  }

  #blockOf(token: Token, isOpen: boolean): Block[] {
    if (token.type === "space" || token.type === "def") return [];
    if (token.type === "code") return [{ kind: "code", language: getLanguage(token.lang), text: token.text, isOpen }];
    const raw = this.#renderer.html(token);
    const kind = token.type === "table" ? "table" : "nodes";
    const key = `${kind} ${raw.key}`;
    const known = this.#known.get(key);
    if (known) return [this.#again(known)];
    const { fragment, placeholders } = this.#renderer.render(raw);
    if (placeholders.length === 0 && !fragment.firstElementChild && fragment.textContent?.trim() === "") return [];
    const block: NodesBlock = { kind, key, fragment, placeholders };
    this.#known.set(key, block);
    if (placeholders.length > 0) this.#fresh.add(block);
    return [block];
  }

  /** Reuses a known block. Late formulas get another attempt if there is time or the text is complete. */
  #again(known: NodesBlock): NodesBlock {
    const isWanted = this.#isFinal || this.#isRetry;
    if (known.placeholders.length === 0 || !isWanted || this.#fresh.has(known)) return known;
    // A new fragment, so that the view sees the change. The elements move into it, so their placeholders stay valid.
    const fragment = known.fragment.ownerDocument.createDocumentFragment();
    while (known.fragment.firstChild) fragment.append(known.fragment.firstChild);
    const block = { ...known, fragment };
    this.#known.set(known.key, block);
    this.#fresh.add(block);
    return block;
  }

  /**
   * Renders formulas in the remaining time. The others are shown as source.
   *
   * @returns Whether there was time for all of them.
   */
  #placeFormulas(): boolean {
    for (const block of this.#fresh) {
      block.placeholders = block.placeholders.flatMap((placeholder) => this.#renderer.placeFormula(placeholder) ?? []);
    }
    return [...this.#fresh].every((block) => block.placeholders.length === 0);
  }
}

/** Returns how many of the first tokens no longer change, no matter what follows. */
function countSettled(tokens: readonly Token[], source: string): number {
  let count = tokens.length - 1;
  while (count > 0 && tokens[count]!.type === "space") count--;
  const last = tokens[count];
  if (last && MAYBE_LIST_ITEM.test(last.raw)) {
    count--;
    while (count > 0 && tokens[count]!.type === "space") count--;
  }
  if (count <= 0) return 0;
  // The lexer changes some sources (tabs). Lengths are then unreliable, so the whole text is parsed again.
  const raw = tokens.slice(0, count).map((token) => token.raw).join("");
  return source.startsWith(raw) ? count : 0;
}

function getLanguage(info: unknown): string {
  return typeof info === "string" ? info.trim().split(/\s/)[0]!.slice(0, 40) : "";
}
