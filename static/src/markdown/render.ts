/** Markdown to HTML that can do nothing but be read: marked, then remote media become links, then DOMPurify as the last step. */
import DOMPurify from "dompurify";
import { Marked, type MarkedOptions, Parser, type RendererObject, type Token, type Tokens } from "marked";
import { mathsExtension, type MathsToken } from "./maths_tokens.ts";

/** Gives the cleaned MathML of a formula; undefined where it is none. */
export type MathsToHtml = (tex: string, isDisplay: boolean) => string | undefined;

/** Elements a reply may consist of. Everything else loses its tags, or its content too where that is no text. */
const ALLOWED_TAGS = (
  "p br hr h3 h4 h5 h6 ul ol li blockquote pre code em strong b i u s del ins sub sup kbd mark small q cite abbr " +
  "a table thead tbody tfoot tr th td caption dl dt dd details summary span div ruby rt rp wbr"
).split(" ");

/** No `class`, `style` or `id`: text of a model must not be able to look like a part of the page. */
const ALLOWED_ATTRIBUTES = ["href", "title", "lang", "dir", "start", "align", "colspan", "rowspan", "open"];

/** Links may lead to these only; a relative one would lead into our own page. */
const ALLOWED_LINKS = /^(?:https?:\/\/|mailto:)/i;

/** Elements that load something by themselves. */
const MEDIA = "img, picture, video, audio, source, track, embed, object, iframe, image, input[type=image i]";

/** Renders with headings that fit under those of the page. */
export class MarkdownRenderer {
  /** Depths of the headings that the next one stands under. */
  #headings: number[] = [];
  #marked: Marked;
  #maths: MathsToHtml | undefined;
  /** Formulas of the block that is being rendered. */
  #formulas: MathsToken[] = [];
  #hasMaths = false;

  /** @param maths Undefined until it is loaded: formulas are shown as their source. */
  constructor(maths?: MathsToHtml) {
    this.#maths = maths;
    this.#marked = new Marked({ gfm: true, breaks: false, async: false });
    this.#marked.use({ renderer: rendererWith((depth) => this.#levelOf(depth)) });
    this.#marked.use(mathsExtension((token) => `${MARK_BEGIN}${this.#formulas.push(token) - 1}${MARK_END}`));
  }

  /** What a lexer needs to find what this renders. */
  get options(): MarkedOptions {
    return this.#marked.defaults;
  }

  /** True once there was a formula. */
  get hasMaths(): boolean {
    return this.#hasMaths;
  }

  /** Gives the state that the next block depends on, to come back to with `restore`. */
  save(): readonly number[] {
    return [...this.#headings];
  }

  /** Forgets what was rendered since `save`. */
  restore(headings: readonly number[]): void {
    this.#headings = [...headings];
  }

  /** Renders one block. */
  html(token: Token): string {
    this.#formulas = [];
    const raw = Parser.parse([token], this.#marked.defaults);
    const html = sanitize(MAYBE_MEDIA.test(raw) ? mediaToLinks(raw) : raw);
    if (this.#formulas.length === 0) return html;
    this.#hasMaths = true;
    return html.replace(MARK, (_, index: string) => this.#formulaHtml(this.#formulas[Number(index)]));
  }

  /** Formulas come in behind the cleaning of the rest, by a cleaning of their own: MathML of a model's is none we show. */
  #formulaHtml(token: MathsToken | undefined): string {
    if (!token) return "";
    const html = this.#maths?.(token.text, token.isDisplay);
    if (html === undefined) return `<code>${escape(token.raw.trim())}</code>`;
    return token.isDisplay ? `<span class="formula" tabindex="0">${html}</span>` : html;
  }

  /** Gives the level of a heading of this depth, and remembers it for the next. */
  #levelOf(depth: number): number {
    while (this.#headings.length > 0 && this.#headings.at(-1)! >= depth) this.#headings.pop();
    this.#headings.push(depth);
    return Math.min(6, TOP_LEVEL + this.#headings.length - 1);
  }
}

/** Noncharacters (Unicode 16, section 23.7): text that is exchanged has none, and `withoutMarks` takes it out of what has. */
const MARK_BEGIN = "\uFDD0";
const MARK_END = "\uFDD1";
const MARK = /\uFDD0(\d+)\uFDD1/g;

/** Takes out of a text what would be taken for the place of a formula. */
export function withoutMarks(text: string): string {
  return text.replace(/[\uFDD0\uFDD1]/g, "");
}

/** Level of the first heading of a message: under the one that names its speaker. */
const TOP_LEVEL = 3;

function rendererWith(levelOf: (depth: number) => number): RendererObject {
  return {
    heading({ tokens, depth }: Tokens.Heading) {
      const level = levelOf(depth);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    image({ href, text }: Tokens.Image) {
      return mediaLink(href, text);
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  };
}

const MAYBE_MEDIA = /<\s*(?:img|picture|video|audio|source|track|embed|object|iframe|image|input|svg)\b/i;

/** Cleans HTML and sends its links to a new tab that knows nothing of this one. */
function sanitize(html: string): string {
  installLinkHook();
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOWED_URI_REGEXP: ALLOWED_LINKS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

let isHookInstalled = false;

function installLinkHook(): void {
  if (isHookInstalled) return;
  isHookInstalled = true;
  DOMPurify.addHook("afterSanitizeAttributes", (node) => {
    if (node.nodeName !== "A") return;
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  });
}

/** Replaces what would load by a link to it. The document it happens in is inert: nothing is fetched, nothing runs. */
function mediaToLinks(html: string): string {
  const inert = new DOMParser().parseFromString(html, "text/html");
  for (const element of inert.querySelectorAll(MEDIA)) {
    const address = addressOf(element);
    const template = inert.createElement("template");
    template.innerHTML = address === undefined ? "" : mediaLink(address, element.getAttribute("alt") ?? "");
    // What stands inside (sources, fallback text) goes with it, except the picture a `picture` is about.
    const inner = element.localName === "picture" ? [...element.children] : [];
    element.replaceWith(template.content, ...inner);
  }
  return inert.body.innerHTML;
}

function addressOf(element: Element): string | undefined {
  for (const name of ["src", "data", "href", "poster"]) {
    const value = element.getAttribute(name);
    if (value) return value;
  }
  return element.getAttribute("srcset")?.trim().split(/\s/)[0];
}

function mediaLink(address: string, text: string): string {
  const url = /^\s*\/\//.test(address) ? `https:${address.trim()}` : address.trim();
  const label = text.trim() === "" ? hostOf(url) : text.trim();
  return ALLOWED_LINKS.test(url)
    ? `<a href="${escape(url)}" title="${escape(url)}">↗ ${escape(label)}</a>`
    : `<span>${escape(label)}</span>`;
}

function hostOf(url: string): string {
  try {
    return new URL(url).host || "image";
  } catch {
    return "image";
  }
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
