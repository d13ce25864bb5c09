/**
 * Extracts the text of HTML and EPUB files, and the main text of linked pages with Readability.
 *
 * HTML is converted to blocks of text without building a document, so memory and time are proportional to its length,
 * no matter how deeply it's nested. Scripts, styles and hidden elements have no text; nothing is fetched.
 */
import { Parser } from "htmlparser2";
import { getOwn } from "../../json/type_guards.ts";
import { Equation, formatSubscript, formatSuperscript } from "./equations.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  formatLink,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import { decodeInput, decodePart, findXmlEncoding } from "./plain_text.ts";
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom/worker";
import { Archive, readXmlTags } from "./xml_archive.ts";

/** Elements whose text is skipped. */
const SKIPPED = new Set([
  ...["script", "style", "template", "noscript", "iframe", "object", "embed", "rp"],
  ...["select", "canvas", "audio", "video", "map"],
]);

/** Elements of SVG with text. */
const SVG_TEXT = new Set(["text", "desc", "foreignobject"]);

/** Elements that start and end a block. */
const BLOCKS = new Set([
  ...["address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt"],
  ...["fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html"],
  ...["li", "main", "nav", "ol", "p", "pre", "section", "summary", "svg", "table", "tbody", "text", "tfoot", "thead"],
  ...["tr", "ul"],
]);

/** Types of form fields whose value is text that a person wrote. */
const VALUE_TYPES = /^(text|email|tel|url|number|date|time|month|week|datetime-local|search)$/i;

/** What a page contains besides text. */
type HtmlLosses = Partial<Record<"image" | "media" | "embedded" | "script" | "link", number>>;

const LOSSES: Readonly<Record<string, keyof HtmlLosses>> = {
  img: "image",
  image: "image",
  audio: "media",
  video: "media",
  iframe: "embedded",
  object: "embedded",
  embed: "embedded",
  script: "script",
};

/** The text of an HTML file. */
export interface HtmlText {
  title: string;
  blocks: TextBlock[];
  /** Maximum nesting of elements. */
  depth: number;
  losses: HtmlLosses;
}

/**
 * Converts HTML.
 *
 * @param options.isXml XHTML or SVG: any element may close itself.
 * @param options.isPage A page of a website: the addresses of its many links are only counted.
 */
export function convertHtml(html: string, { isXml = false, isPage = false } = {}): HtmlText {
  const converter = new HtmlConverter(isPage);
  const parser = new Parser({
    onopentag: (name, attributes) => converter.open(toLocalName(name), attributes),
    ontext: (data) => converter.text(data),
    onclosetag: (name) => converter.close(toLocalName(name)),
  }, {
    decodeEntities: true,
    lowerCaseTags: true,
    // Names of entities are those of HTML, which XML mode doesn't know.
    xmlMode: false,
    recognizeSelfClosing: isXml,
    recognizeCDATA: isXml,
  });
  parser.write(withoutDoctype(html));
  parser.end();
  return converter.end();
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

/** Removes the document type: its internal subset has characters that look like the end of a tag. */
function withoutDoctype(html: string): string {
  const start = /^[^<]{0,100}(?:<\?[^>]*>\s*|<!--[^]*?-->\s*)*<!doctype\b/i.exec(html)?.[0].length;
  if (start === undefined) return html;
  let quote = "";
  let depth = 0;
  for (let at = start; at < html.length; at++) {
    const character = html[at]!;
    if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (character === "[") depth++;
    else if (character === "]") depth--;
    else if (character === ">" && depth <= 0) return html.slice(at + 1);
  }
  return html;
}

/** Collects blocks from tags. */
class HtmlConverter {
  readonly #blocks: TextBlock[] = [];
  readonly #losses: HtmlLosses = {};
  /** Open lists: the number of the next item, or undefined for bullets. */
  readonly #lists: (number | undefined)[] = [];
  /** Where raised and lowered texts of the block start. */
  #scripts: number[] = [];
  /** Open links: where their text starts in the block, and the number of blocks before them. */
  readonly #links: { address: string; start: number; blocks: number }[] = [];
  #text = "";
  #title: string | undefined;
  #heading: number | undefined;
  /** Nesting depth of skipped elements. */
  #skipped = 0;
  /** Nesting depth inside SVG, and inside its elements with text. */
  #svg = 0;
  #svgText = 0;
  #equation: { content: Equation; depth: number } | undefined;
  #isTitle = false;
  #preformatted = 0;
  #depth = 0;
  #deepest = 0;
  #isRowStart = true;

  constructor(readonly isPage: boolean) {}

  open(name: string, attributes: Record<string, string>): void {
    this.#deepest = Math.max(this.#deepest, ++this.#depth);
    if (this.#equation !== undefined) {
      this.#equation.depth++;
      return this.#equation.content.open(name, attributes);
    }
    const loss = getOwn(LOSSES, name);
    if (loss !== undefined) this.#note(loss);
    if (this.#skipped > 0) {
      if (SKIPPED.has(name)) this.#skipped++;
      return;
    }
    if (SKIPPED.has(name)) return void this.#skipped++;
    if (name === "title") {
      // The first one is the title of the page; SVG has others.
      this.#isTitle = true;
      if (this.#title === undefined && this.#svg === 0) this.#title = "";
      else this.#skipped++;
      return;
    }
    if (name === "math") return void (this.#equation = { content: new Equation(), depth: 1 });
    if (name === "svg") this.#svg++;
    if (this.#svg > 0 && SVG_TEXT.has(name)) this.#svgText++;
    if (name === "br") return void (this.#text += "\n");
    if (name === "sup" || name === "sub") return void this.#scripts.push(this.#text.length);
    if (name === "rt") return void (this.#text += "(");
    if (name === "a") {
      const address = attributes.href ?? attributes["xlink:href"] ?? "";
      return void this.#links.push({ address, start: this.#text.length, blocks: this.#blocks.length });
    }
    if (name === "td" || name === "th") {
      if (!this.#isRowStart) this.#text += " | ";
      this.#isRowStart = false;
      return;
    }
    if (name === "input" && VALUE_TYPES.test(attributes.type ?? "text") && attributes.value) {
      this.#text += `${/\s$/.test(this.#text) ? "" : " "}${attributes.value} `;
    }
    if (name === "img" && attributes.alt) this.#text += ` ${attributes.alt} `;
    if (!BLOCKS.has(name)) return;
    this.#endBlock();
    if (name === "tr") this.#isRowStart = true;
    if (name === "pre") this.#preformatted++;
    if (name === "ul" || name === "ol") {
      this.#lists.push(name === "ul" ? undefined : Math.trunc(Number(attributes.start ?? 1)) || 0);
    }
    if (name === "li") this.#text = this.#startItem(attributes.value);
    if (/^h[1-6]$/.test(name)) this.#heading = Number(name[1]);
  }

  text(data: string): void {
    if (this.#equation !== undefined) return this.#equation.content.text(data);
    if (this.#isTitle && this.#skipped === 0) this.#title += data;
    else if (this.#skipped === 0 && (this.#svg === 0 || this.#svgText > 0)) {
      this.#text += this.#preformatted > 0 ? data : collapseSpace(data, this.#text);
    }
  }

  close(name: string): void {
    this.#depth--;
    if (this.#equation !== undefined) {
      if (--this.#equation.depth > 0) return this.#equation.content.close();
      const space = this.#text === "" || /[\s(]$/.test(this.#text) ? "" : " ";
      this.#text += space + this.#equation.content.result;
      this.#equation = undefined;
      return;
    }
    if (name === "title") {
      if (this.#isTitle && this.#skipped > 0) this.#skipped--;
      this.#isTitle = false;
      return;
    }
    if (SKIPPED.has(name)) return void (this.#skipped = Math.max(0, this.#skipped - 1));
    if (this.#skipped > 0) return;
    if (this.#svg > 0 && SVG_TEXT.has(name)) this.#svgText--;
    if (name === "svg") this.#svg--;
    if (name === "sup" || name === "sub") {
      const start = this.#scripts.pop();
      if (start === undefined) return;
      const content = this.#text.slice(start);
      this.#text = this.#text.slice(0, start) + (name === "sup" ? formatSuperscript : formatSubscript)(content);
      return;
    }
    if (name === "rt") return void (this.#text = `${this.#text.trimEnd()})`);
    if (name === "a") return this.#endLink();
    if (!BLOCKS.has(name)) return;
    if (/^(- |\d+\. )$/.test(this.#text)) this.#text = "";
    this.#endBlock();
    if (name === "ul" || name === "ol") this.#lists.pop();
    if (name === "pre") this.#preformatted = Math.max(0, this.#preformatted - 1);
    if (/^h[1-6]$/.test(name)) this.#heading = undefined;
  }

  end(): HtmlText {
    while (this.#links.length > 0) this.#endLink();
    this.#endBlock();
    return {
      title: (this.#title ?? "").replace(/\s+/g, " ").trim(),
      blocks: this.#blocks,
      depth: this.#deepest,
      losses: this.#losses,
    };
  }

  #note(loss: keyof HtmlLosses): void {
    this.#losses[loss] = (this.#losses[loss] ?? 0) + 1;
  }

  #endLink(): void {
    const link = this.#links.pop();
    if (link === undefined) return;
    const sink = { note: () => this.#note("link") };
    const text = this.#text.slice(link.start);
    // A link can have blocks of its own. Its address follows the last one.
    const block = text.trim() === "" && this.#blocks.length > link.blocks ? this.#blocks.at(-1) : undefined;
    const linked = formatLink(block?.text ?? text, link.address, sink);
    if (this.isPage) {
      if (linked !== (block?.text ?? text)) this.#note("link");
    } else if (block !== undefined) block.text = linked;
    else this.#text = this.#text.slice(0, link.start) + linked;
  }

  #startItem(value = ""): string {
    const number = this.#lists.at(-1) === undefined
      ? undefined
      : /^\s*-?\d{1,9}\s*$/.test(value)
      ? Number(value)
      : this.#lists.at(-1);
    if (number === undefined) return "- ";
    this.#lists[this.#lists.length - 1] = number + 1;
    return `${number}. `;
  }

  #endBlock(): void {
    const text = this.#text;
    const clean = this.#preformatted > 0
      ? text.replace(/^\n+|\s+$/g, "")
      : text.replace(/[ \t]*\n[ \t]*/g, "\n").trim();
    const heading = this.#heading;
    if (clean !== "") this.#blocks.push({ text: clean, ...(heading !== undefined && { heading }) });
    this.#text = "";
    this.#scripts = [];
    for (const link of this.#links) link.start = 0;
  }
}

/** Adds what a page contains besides text to the ledger. */
export function noteLosses({ losses }: HtmlText, sink: PageSink): void {
  for (const [kind, count] of Object.entries(losses)) sink.note(kind as keyof HtmlLosses, { count });
}

/** Collapses white space like browsers do, even across elements. */
function collapseSpace(data: string, before: string): string {
  const line = data.replace(/[\s\u200b]+/g, " ");
  return line.startsWith(" ") && (before === "" || /\s$/.test(before)) ? line.slice(1) : line;
}

/** Maximum depth for Readability, which is recursive. Pages nested deeper are used as a whole. */
const MAX_DEPTH = 400;
/** Maximum length for Readability, which takes seconds on longer pages. These are rarely articles. */
const MAX_READABLE_LENGTH = 4 * 1024 * 1024;
/** Minimum length of the main text. If it's shorter, the whole page is used. */
const MIN_MAIN_TEXT = 200;

/** Extracts an HTML file. For a link, only its main text if there is one. */
export async function extractHtml(input: ExtractionInput, sink: PageSink): Promise<void> {
  const html = decodeInput(input, sink, [findXmlEncoding(input.bytes), findMetaCharset(input.bytes)]);
  const whole = convertHtml(html, { isXml: /^\s*<\?xml\b/.test(html), isPage: input.url !== undefined });
  const main = input.url === undefined ? undefined : findMainText(html, whole);
  const { title, blocks } = main ?? whole;
  noteLosses(main ?? whole, sink);
  if (main !== undefined) sink.note("outside", { count: countCharacters(whole) - countCharacters(main) });
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  for (const section of toSections(blocks)) await sink.add(section);
}

/** Number of characters of the text. */
export function countCharacters({ blocks }: HtmlText): number {
  return blocks.reduce((sum, { text }) => sum + text.length, 0);
}

function findMainText(html: string, whole: HtmlText): HtmlText | undefined {
  if (whole.depth > MAX_DEPTH || html.length > MAX_READABLE_LENGTH) return undefined;
  try {
    const { document } = parseHTML(html);
    const article = new Readability(document as unknown as Document, { charThreshold: MIN_MAIN_TEXT }).parse();
    if (!article?.content || (article.textContent ?? "").trim().length < MIN_MAIN_TEXT) return undefined;
    const main = convertHtml(article.content, { isPage: true });
    return { ...main, title: article.title?.trim() || whole.title };
  } catch {
    return undefined; // The text of the whole page can be used.
  }
}

/** Length of the part in which a charset is declared. Browsers stop after 1024 bytes, but pages are saved with more. */
const CHARSET_BYTES = 256 * 1024;

/**
 * Finds the declared charset.
 *
 * @see https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding
 */
export function findMetaCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, CHARSET_BYTES));
  return /<meta\b[^>]{0,200}charset\s*=\s*["']?([\w:-]{2,40})/i.exec(head)?.[1];
}

/** Font obfuscation isn't encryption of text. @see https://www.w3.org/TR/epub-33/#sec-font-obfuscation */
const FONT_ALGORITHMS = /^http:\/\/(www\.idpf\.org\/2008\/embedding|ns\.adobe\.com\/pdf\/enc#RC)$/;

/** The relevant parts of the package document. */
interface Package {
  title: string;
  /** The text files, in order. */
  spine: { path: string; type: string }[];
  /** Texts that aren't in the spine, besides the navigation. */
  others: string[];
  /** IDs in the spine that nothing has. */
  missing: string[];
}

/**
 * Extracts an EPUB file in the order of the spine. Each of its files starts a section.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`
 */
export async function extractEpub({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  const archive = await Archive.open(bytes, limits);
  await refuseEncryption(archive);
  const packagePath = await findPackage(archive);
  const { title, spine, others, missing } = parsePackage(await readXml(archive, packagePath), packagePath);
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  let found = 0;
  for (const { path, type } of spine) {
    const content = await archive.read(path);
    if (content === undefined) {
      sink.note("missing", { example: path });
      continue; // A missing chapter doesn't prevent reading the others.
    }
    if (!/^(application\/(xhtml\+xml|x-dtbook\+xml|xml)|text\/.*|image\/svg\+xml|)$/i.test(type)) {
      sink.note(type.startsWith("image/") ? "image" : "unknown", { example: path });
      continue;
    }
    found++;
    const chapter = convertHtml(decodePart(content), { isXml: true });
    noteLosses(chapter, sink);
    const [first, ...rest] = chapter.blocks;
    if (first === undefined) continue;
    const blocks: TextBlock[] = [{ ...first, isChapter: true }, ...rest];
    for (const section of toSections(blocks)) await sink.add(section);
  }
  for (const path of others) sink.note("embedded", { example: path });
  for (const id of missing) sink.note("missing", { example: id });
  if (found === 0) throw new ExtractionFault("damaged", "Can't read the book: it has no readable chapters");
}

async function readXml(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  if (bytes === undefined) {
    throw new ExtractionFault("damaged", `Can't read the book: it has no "${path.slice(0, 200)}"`);
  }
  return decodePart(bytes);
}

async function refuseEncryption(archive: Archive): Promise<void> {
  const bytes = await archive.read("META-INF/encryption.xml");
  if (bytes === undefined) return;
  readXmlTags(decodePart(bytes), {
    open(name, { algorithm = "" }) {
      if (name !== "encryptionmethod" || FONT_ALGORITHMS.test(algorithm)) return;
      throw new ExtractionFault("encrypted", "Can't read the book: it's protected by DRM");
    },
  });
}

/** Returns the path of the package document; without a container, that of any. */
async function findPackage(archive: Archive): Promise<string> {
  const other = [...archive.entries.keys()].find((path) => /\.opf$/i.test(path));
  if (other !== undefined && await archive.read("META-INF/container.xml") === undefined) return other;
  return findRootFile(await readXml(archive, "META-INF/container.xml"));
}

function findRootFile(xml: string): string {
  let path: string | undefined;
  readXmlTags(xml, {
    open(name, attributes) {
      if (name === "rootfile") path ??= attributes["full-path"];
    },
  });
  if (path === undefined) throw new ExtractionFault("damaged", "Can't read the book: it has no table of contents");
  return path;
}

function parsePackage(xml: string, packagePath: string): Package {
  const items = new Map<string, { href: string; type: string; isNavigation: boolean }>();
  const order: string[] = [];
  const titles: string[] = [];
  readXmlTags(xml, {
    open(name, { id, href, idref, "media-type": type = "", properties = "" }) {
      const isNavigation = /\bnav\b/.test(properties);
      if (name === "item" && id !== undefined && href !== undefined) items.set(id, { href, type, isNavigation });
      if (name === "itemref" && idref !== undefined) order.push(idref);
      if (name === "title") titles.push("");
    },
    text(text, name) {
      if (name === "title") titles.push(titles.pop() + text);
    },
  });
  const folder = packagePath.includes("/") ? packagePath.slice(0, packagePath.lastIndexOf("/") + 1) : "";
  const spine = order.map((id) => items.get(id)).filter((item) => item !== undefined)
    .map(({ href, type }) => ({ path: resolvePath(folder, href), type }));
  const title = titles.map((text) => text.replace(/\s+/g, " ").trim()).find((text) => text !== "") ?? "";
  const others = Array.from(items).filter(([id, { type, isNavigation }]) =>
    /^application\/xhtml\+xml$/i.test(type) && !isNavigation && !order.includes(id)
  ).map(([, { href }]) => resolvePath(folder, href));
  return { title: title.slice(0, 300), spine, others, missing: order.filter((id) => !items.has(id)) };
}

/** Resolves a path. Paths are only looked up in the archive, so `..` is harmless. */
function resolvePath(folder: string, href: string): string {
  const [path = ""] = href.split("#");
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // Used as written
  }
  const parts: string[] = [];
  for (const part of `${folder}${decoded}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}
