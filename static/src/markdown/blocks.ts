/** Markdown that grows: blocks that are finished stay as they are, only the last one is read again. */
import { Lexer, type Token } from "marked";
import { MarkdownRenderer, type MathsToHtml, withoutMarks } from "./render.ts";

/** One block to show. Code is no HTML, so that it needs no cleaning and can have buttons. */
export type Block =
  | { kind: "html"; html: string }
  | { kind: "table"; html: string }
  | { kind: "code"; language: string; text: string; isOpen: boolean };

/** A paragraph that may yet turn out to be the next item of the list before it: "2", "2.". */
const MAYBE_LIST_ITEM = /^ {0,3}(?:\d{1,9}[.)]?|[-+*])\s*$/;

/** The blocks of one message while its text grows. */
export class GrowingMarkdown {
  #renderer = new MarkdownRenderer();
  #maths: MathsToHtml | undefined;
  #text = "";
  #settled: Block[] = [];
  #settledLength = 0;
  #links: Record<string, { href: string | null; title: string | null | undefined }> = {};
  #shown: Block[] = [];
  #isFinal = false;

  /**
   * Gives the blocks of a text. Cheap when it is the text before with more behind it.
   *
   * @param isFinal No more will come: everything is read once more as a whole, since a definition at the end may give a
   * meaning to a link at the start.
   * @param maths What makes formulas of their source, once it is loaded.
   */
  update(text: string, isFinal: boolean, maths?: MathsToHtml): readonly Block[] {
    const normal = withoutMarks(text).replace(/\r\n?/g, "\n");
    const isSameMaths = maths === this.#maths || !this.#renderer.hasMaths;
    if (normal === this.#text && isFinal === this.#isFinal && isSameMaths) return this.#shown;
    const canGrow = !isFinal && !this.#isFinal && isSameMaths && normal.startsWith(this.#text);
    if (!canGrow) this.#reset(maths);
    this.#text = normal;
    this.#isFinal = isFinal;
    this.#read();
    return this.#shown;
  }

  /** True when the text holds formulas. */
  get hasMaths(): boolean {
    return this.#renderer.hasMaths;
  }

  #reset(maths: MathsToHtml | undefined): void {
    this.#settled = [];
    this.#settledLength = 0;
    this.#links = {};
    this.#maths = maths;
    this.#renderer = new MarkdownRenderer(maths);
  }

  #read(): void {
    const rest = this.#text.slice(this.#settledLength);
    const lexer = new Lexer(this.#renderer.options);
    Object.assign(lexer.tokens.links, this.#links);
    const tokens = lexer.lex(rest);
    Object.assign(this.#links, lexer.tokens.links);

    const keep = this.#isFinal ? tokens.length : countSettled(tokens, rest);
    for (const token of tokens.slice(0, keep)) {
      this.#settled.push(...this.#blockOf(token, false));
      this.#settledLength += token.raw.length;
    }
    const headings = this.#renderer.save();
    const tail = tokens.slice(keep).flatMap((token) => this.#blockOf(token, token === tokens.at(-1)));
    this.#renderer.restore(headings);
    this.#shown = [...this.#settled, ...tail];
  }

  #blockOf(token: Token, isOpen: boolean): Block[] {
    if (token.type === "space" || token.type === "def") return [];
    if (token.type === "code") return [{ kind: "code", language: languageOf(token.lang), text: token.text, isOpen }];
    const html = this.#renderer.html(token);
    if (html.trim() === "") return [];
    return [{ kind: token.type === "table" ? "table" : "html", html }];
  }
}

/** Gives how many of the first tokens cannot change any more, whatever follows. */
function countSettled(tokens: readonly Token[], source: string): number {
  let count = tokens.length - 1;
  while (count > 0 && tokens[count]!.type === "space") count--;
  const last = tokens[count];
  if (last && MAYBE_LIST_ITEM.test(last.raw)) {
    count--;
    while (count > 0 && tokens[count]!.type === "space") count--;
  }
  if (count <= 0) return 0;
  // The lexer changes some sources (tabs); then lengths are no measure, and reading all again is the safe way.
  const raw = tokens.slice(0, count).map((token) => token.raw).join("");
  return source.startsWith(raw) ? count : 0;
}

function languageOf(info: unknown): string {
  return typeof info === "string" ? info.trim().split(/\s/)[0]!.slice(0, 40) : "";
}
