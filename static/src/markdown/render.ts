/** Markdown to inert DOM nodes: marked, then remote media become links, then DOMPurify, then formulas. */
import DOMPurify from "dompurify";
import { getSanitizerPolicy, parseInertHtml } from "../trusted_types.ts";
import { Marked, type MarkedOptions, Parser, type RendererObject, type Token, type Tokens } from "marked";
import {
  checkToken,
  clockExtension,
  MAX_COLUMNS,
  MAX_HTML_DEPTH,
  MAX_TAG_PRODUCT,
  MAX_TAGS,
  type RenderBudget,
  RenderLimitError,
  UNLIMITED,
} from "./limits.ts";
import { footnoteExtension, mathExtension, type MathToken } from "./extensions.ts";
import { ALLOWED_TAGS, escapeText } from "./html_tags.ts";
import { htmlExtension } from "./html_tokens.ts";
import { setDirections } from "./direction.ts";
import { delimiterExtension } from "./emphasis.ts";
import { tokenizerExtension } from "./tokenizers.ts";
import { texts } from "../texts/texts.ts";

/**
 * Returns a formula as sanitized MathML. `source` means: show its source; `late`: likewise, but another attempt may
 * have more time. `budget` is the message's remaining time.
 */
export type MathToNode = (tex: string, isDisplay: boolean, budget: RenderBudget) => Node | "source" | "late";

/** No `class`, `style` or `id`: a model's text must not imitate parts of the page. */
const ALLOWED_ATTRIBUTES = ["href", "title", "lang", "dir", "start", "align", "colspan", "rowspan", "open"];

/** Allowed link targets. A relative link would lead into our own page. */
const ALLOWED_LINKS = /^(?:https?:\/\/|mailto:)/i;

/** Elements that load something by themselves. */
const MEDIA = "img, picture, video, audio, source, track, embed, object, iframe, image, input[type=image i]";

/** One block as unsanitized HTML. */
export interface RawBlock {
  /** Identifies blocks of one renderer that look the same. */
  readonly key: string;
  readonly html: string;
  /** Number of its tags that come from HTML in the text. */
  readonly foreignCount: number;
  readonly formulas: readonly MathToken[];
}

/** A formula and its placeholder element. */
export interface FormulaPlaceholder {
  readonly element: Element;
  readonly token: MathToken;
}

/** A block as nodes. */
export interface RenderedBlock {
  readonly fragment: DocumentFragment;
  readonly placeholders: readonly FormulaPlaceholder[];
}

/** How a text is rendered. */
interface RendererOptions {
  maths?: MathToNode;
  hasBreaks?: boolean;
  isGrowing?: () => boolean;
}

/** Renders the blocks of one text, with heading levels below those of the page. */
export class MarkdownRenderer {
  /** Depths of the headings that contain the next one. */
  #headings: number[] = [];
  readonly #marked: Marked;
  readonly #mark: string;
  /** Renders formulas; undefined until loaded. May be set until the first formula. */
  maths: MathToNode | undefined;
  #budget = UNLIMITED;
  #tagCount = 0;
  /** Formulas and HTML tags of the current block. */
  #formulas: MathToken[] = [];
  #foreignCount = 0;
  #hasMaths = false;
  /** Footnotes by label, with their numbers in order of their first mark. */
  readonly #notes = new Map<string, number | undefined>();

  /**
   * @param mark Marks the placeholders of formulas; see `randomMark`.
   * @param maths Undefined until loaded: formulas are shown as source.
   */
  /**
   * @param mark The random mark of placeholders.
   * @param hasBreaks A line break in a paragraph is a line break.
   * @param isGrowing Whether the text may go on.
   */
  constructor(mark: string, { maths, hasBreaks = false, isGrowing = () => false }: RendererOptions = {}) {
    this.#mark = mark;
    this.maths = maths;
    this.#marked = new Marked({ gfm: true, breaks: hasBreaks, async: false });
    this.#marked.use({ renderer: createRenderer((depth) => this.#levelOf(depth)) });
    this.#marked.use(htmlExtension((html) => this.#foreignCount += countMatches(html, /</g)));
    this.#marked.use(tokenizerExtension(isGrowing), delimiterExtension());
    this.#marked.use(mathExtension((token) => this.#createPlaceholder(token)));
    this.#marked.use(footnoteExtension((label) => this.#notes.has(label), (label) => this.#numberOf(label)));
    this.#marked.use(clockExtension(() => this.#budget.check()));
  }

  /** What a lexer needs to find what this renders. */
  get options(): MarkedOptions {
    return this.#marked.defaults;
  }

  /** True after the first formula. */
  get hasMaths(): boolean {
    return this.#hasMaths;
  }

  /** Sets the labels of the footnotes that the text defines. Others are text. */
  defineNotes(labels: readonly string[]): void {
    for (const label of labels) if (!this.#notes.has(label)) this.#notes.set(label, undefined);
  }

  /** Sets the budget of the next blocks. */
  start(budget: RenderBudget): void {
    this.#budget = budget;
    this.#tagCount = 0;
  }

  /**
   * Renders a token to HTML, for `render` to sanitize.
   *
   * @throws {RenderLimitError} if the block exceeds a limit.
   */
  html(token: Token): RawBlock {
    checkToken(token);
    this.#budget.check();
    this.#formulas = [];
    this.#foreignCount = 0;
    const html = Parser.parse([token], this.#marked.defaults);
    const formulas = this.#formulas;
    if (formulas.length > 0) this.#hasMaths = true;
    const key = formulas.length === 0 ? html : `${html}\n${formulas.map(({ raw }) => raw).join("\n")}`;
    return { key, html, formulas, foreignCount: this.#foreignCount };
  }

  /**
   * Creates the nodes of a block, with empty placeholders for its formulas. Sanitizing is the last step of the HTML;
   * formulas are sanitized separately and inserted as nodes, so nothing is ever concatenated into HTML text.
   *
   * @throws {RenderLimitError} if the block exceeds a limit.
   */
  render({ html, formulas, foreignCount }: RawBlock): RenderedBlock {
    this.#tagCount += checkTags(html, foreignCount);
    if (this.#tagCount > MAX_TAGS) throw new RenderLimitError("tags");
    const fragment = sanitize(html, this.#budget);
    checkLayout(fragment);
    this.#markElements(fragment);
    setDirections(fragment, this.#budget);
    if (formulas.length === 0) return { fragment, placeholders: [] };
    const spans = new Map<string, Element>();
    for (const span of fragment.querySelectorAll<HTMLElement>("span[title]")) spans.set(span.title, span);
    const placeholders = formulas.flatMap((token, index) => {
      const element = spans.get(this.#mark + index);
      return element ? [{ element, token }] : [];
    });
    return { fragment, placeholders };
  }

  /** Gives task list items and footnotes their classes, which no text of a message can have. */
  #markElements(fragment: DocumentFragment): void {
    for (const item of fragment.querySelectorAll("li")) {
      const first = item.firstChild?.nodeType === Node.TEXT_NODE ? item.firstChild : item.querySelector(":scope > p");
      if (/^\s*[☐☑] /.test(first?.textContent?.slice(0, 10) ?? "")) item.className = "task";
    }
    if (this.#notes.size === 0) return;
    for (const note of fragment.querySelectorAll<HTMLElement>(`[title^="${this.#mark}note"]`)) {
      const number = note.title.slice(this.#mark.length + "note".length);
      note.removeAttribute("title");
      const button = createElement("button", number) as HTMLButtonElement;
      button.type = "button";
      button.className = "footnote-mark";
      button.setAttribute("aria-label", texts.chat.footnote(number));
      if (note.localName === "div") note.className = "footnote";
      else note.textContent = "";
      note.prepend(button);
    }
  }

  /** Returns the placeholder of a footnote's mark or text. */
  #numberOf(label: string): string {
    const numbers = [...this.#notes.values()].filter((number) => number !== undefined);
    const number = this.#notes.get(label) ?? numbers.length + 1;
    this.#notes.set(label, number);
    return `${this.#mark}note${number}`;
  }

  /** Inserts a formula or its source. @returns Where to insert it in another attempt, if there was no time. */
  placeFormula({ element, token }: FormulaPlaceholder): FormulaPlaceholder | undefined {
    const node = this.maths?.(token.text, token.isDisplay, this.#budget) ?? "source";
    if (typeof node === "string") {
      const source = createElement("code", token.raw.trim());
      const isFinal = this.maths !== undefined && node === "source";
      element.replaceWith(isFinal ? createFormulaSource(source) : source);
      return node === "late" ? { element: source, token } : undefined;
    }
    if (!token.isDisplay) element.replaceWith(node);
    else {
      const box = createElement("span");
      box.className = "formula";
      box.tabIndex = 0;
      box.append(node);
      element.replaceWith(box);
    }
    return undefined;
  }

  /** Returns the state that the next block depends on, for `restore`. */
  save(): readonly number[] {
    return [...this.#headings];
  }

  /** Forgets the headings since `save`. */
  restore(headings: readonly number[]): void {
    this.#headings = [...headings];
  }

  /** An element that sanitizing keeps. Other text can't imitate it, since the mark is random. */
  #createPlaceholder(token: MathToken): string {
    return `<span title="${this.#mark}${this.#formulas.push(token) - 1}"></span>`;
  }

  /** Returns the level of a heading of this depth and records it. */
  #levelOf(depth: number): number {
    while (this.#headings.length > 0 && this.#headings.at(-1)! >= depth) this.#headings.pop();
    this.#headings.push(depth);
    return Math.min(6, TOP_LEVEL + this.#headings.length - 1);
  }
}

/** Returns the mark of formula placeholders: 128 random bits, so that a text can't contain it. */
export function randomMark(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}-`;
}

/** Level of a message's first heading: below the one that names its speaker. */
const TOP_LEVEL = 3;

function createRenderer(levelOf: (depth: number) => number): RendererObject {
  return {
    heading({ tokens, depth }: Tokens.Heading) {
      const level = levelOf(depth);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    // Markdown labels become links like any other element that loads something.
    image({ href, text, tokens }: Tokens.Image) {
      return `<img src="${escapeText(href)}" alt="${escapeText(tokens ? toText(tokens) : text)}">`;
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  };
}

/** Returns the text of inline tokens. */
function toText(tokens: readonly Token[]): string {
  return tokens.map((token) => {
    if ("tokens" in token && token.tokens) return toText(token.tokens);
    return token.type === "html" ? "" : token.type === "text" || token.type === "codespan" ? token.text : token.raw;
  }).join("");
}

/** Counts the tags of a block before an HTML parser creates elements. @throws {RenderLimitError} `tags` */
function checkTags(html: string, foreignCount: number): number {
  const count = countMatches(html, /</g);
  if (count > MAX_TAGS || (count * foreignCount > MAX_TAG_PRODUCT && !isWellFormed(html))) {
    throw new RenderLimitError("tags");
  }
  return count;
}

/** A tag whose end all parsers agree on, or a `<` that is something else. */
const TAG =
  /<(?:(\/?)([a-z][a-z0-9]*)(?:\s+[a-z_][\w:.-]*(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'=<>`]+))?)*\s*\/?>)?/gi;
/** Elements without content. */
const VOID_TAGS = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
/** Elements whose content parsers read in another way. */
const SPECIAL_TAGS = new Set(
  "script style textarea title xmp iframe noembed noframes noscript plaintext template select svg math".split(" "),
);

/** True if each tag is closed by its own end tag and nothing could be read in two ways: parsers take linear time for that. */
function isWellFormed(html: string): boolean {
  const open: string[] = [];
  for (const [, slash, tag] of html.matchAll(TAG)) {
    const name = tag?.toLowerCase();
    if (name === undefined || SPECIAL_TAGS.has(name)) return false;
    if (VOID_TAGS.has(name)) continue;
    if (!slash) open.push(name);
    else if (open.pop() !== name) return false;
    if (open.length > MAX_HTML_DEPTH) return false;
  }
  return open.length === 0;
}

function countMatches(text: string, pattern: RegExp): number {
  let count = 0;
  for (const _ of text.matchAll(pattern)) count++;
  return count;
}

/** Refuses what browsers lay out in more than linear time. @throws {RenderLimitError} `columns` or `depth` */
function checkLayout(fragment: DocumentFragment): void {
  for (const row of fragment.querySelectorAll("tr")) {
    let count = 0;
    for (const cell of row.cells) count += cell.colSpan;
    if (count > MAX_COLUMNS) throw new RenderLimitError("columns");
  }
  if (fragment.querySelector("ruby ruby ruby ruby")) throw new RenderLimitError("depth");
}

/** Removes everything from HTML that isn't allowed, and sends its links to a new tab that knows nothing of this one. */
function sanitize(html: string, budget: RenderBudget): DocumentFragment {
  const inert = parseInertHtml(html);
  budget.check();
  mediaToLinks(inert.body);
  const content = inert.createDocumentFragment();
  while (inert.body.firstChild) content.append(inert.body.firstChild);
  purifier ??= createPurifier();
  running = budget;
  try {
    return purifier.sanitize(content, { RETURN_DOM_FRAGMENT: true });
  } finally {
    running = undefined;
  }
}

let purifier: ReturnType<typeof DOMPurify> | undefined;
/** What the sanitizing that is going on may take. */
let running: RenderBudget | undefined;

function createPurifier() {
  const own = DOMPurify(globalThis.window);
  // Set once: for a short block, reading it takes longer than sanitizing.
  own.setConfig({
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOWED_URI_REGEXP: ALLOWED_LINKS,
    // Values of other attributes would have to be links.
    ADD_URI_SAFE_ATTR: ["align", "dir", "lang", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
    TRUSTED_TYPES_POLICY: getSanitizerPolicy() as never,
  });
  own.addHook("beforeSanitizeElements", () => running?.check());
  own.addHook("afterSanitizeAttributes", (node) => {
    if (node.nodeName !== "A") return;
    // DOMPurify lets empty attributes pass, and an empty address is that of our own page.
    if (node.getAttribute("href") === "") node.removeAttribute("href");
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  });
  return own;
}

/** Replaces what would load by a link to it, inside of a document that is inert. */
function mediaToLinks(body: HTMLElement): void {
  for (const element of body.querySelectorAll(MEDIA)) {
    const address = getUrl(element);
    const link = address === undefined ? [] : [createMediaLink(address, element.getAttribute("alt") ?? "")];
    // What is inside (sources, fallback text) goes with it, except the picture a `picture` is about.
    const inner = element.localName === "picture" ? [...element.children] : [];
    element.replaceWith(...link, ...inner);
  }
}

function getUrl(element: Element): string | undefined {
  for (const name of ["src", "data", "href", "poster"]) {
    const value = element.getAttribute(name);
    if (value) return value;
  }
  return element.getAttribute("srcset")?.trim().split(/\s/)[0];
}

function createMediaLink(address: string, text: string): HTMLElement {
  const url = /^\s*\/\//.test(address) ? `https:${address.trim()}` : address.trim();
  const label = text.trim() === "" ? getHost(url) : text.trim();
  if (!ALLOWED_LINKS.test(url)) return createElement("span", label);
  const link = createElement("a", `↗ ${label}`);
  link.setAttribute("href", url);
  link.title = url;
  return link;
}

function getHost(url: string): string {
  try {
    return new URL(url).host || "image";
  } catch {
    return "image";
  }
}

/** The source of a formula that can't be rendered, with a button to copy it. The view of the message handles it. */
function createFormulaSource(source: HTMLElement): HTMLElement {
  const box = createElement("span");
  box.className = "formula-source";
  const button = createElement("button") as HTMLButtonElement;
  button.type = "button";
  button.className = "formula-copy";
  button.title = texts.chat.copyFormula;
  button.setAttribute("aria-label", texts.chat.copyFormula);
  box.append(source, button);
  return box;
}

function createElement(name: string, text = ""): HTMLElement {
  const element = globalThis.window.document.createElement(name);
  element.textContent = text;
  return element;
}
