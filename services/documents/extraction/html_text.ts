/**
 * Extracts the text of HTML and EPUB files, and the main text of linked pages with Readability.
 *
 * HTML is converted to blocks of text without building a document, so memory and time are proportional to its length,
 * no matter how deeply it's nested. Scripts, styles and hidden elements have no text; nothing is fetched.
 */
import { Parser } from "htmlparser2";
import {
  decodeText,
  ExtractionFault,
  type ExtractionInput,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom/worker";
import { Archive, readXmlTags } from "./xml_archive.ts";

/** Elements whose text is skipped. */
const SKIPPED = new Set([
  ...["script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object", "embed"],
  ...["select", "textarea", "canvas", "audio", "video", "map"],
]);

/** Elements that start and end a block. */
const BLOCKS = new Set([
  ...["address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt"],
  ...["fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html"],
  ...["li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"],
]);

/** The text of an HTML file. */
interface HtmlText {
  title: string;
  blocks: TextBlock[];
  /** Maximum nesting of elements. */
  depth: number;
}

/** Converts HTML. @param options.isXml XHTML of an EPUB: empty elements may be closed anywhere. */
function convertHtml(html: string, { isXml = false } = {}): HtmlText {
  const blocks: TextBlock[] = [];
  let text = "";
  let title = "";
  let heading: number | undefined;
  /** Nesting depth of skipped elements. */
  let skipped = 0;
  let isTitle = false;
  let preformatted = 0;
  let depth = 0;
  let deepest = 0;
  let isRowStart = true;
  const endBlock = () => {
    const clean = preformatted > 0 ? text.replace(/^\n+|\s+$/g, "") : text.replace(/[ \t]*\n[ \t]*/g, "\n").trim();
    if (clean !== "") blocks.push({ text: clean, ...(heading !== undefined && { heading }) });
    text = "";
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      deepest = Math.max(deepest, ++depth);
      if (skipped > 0) {
        if (SKIPPED.has(name)) skipped++;
        if (name === "title") isTitle = skipped === 1;
        return;
      }
      if (SKIPPED.has(name)) return void skipped++;
      if (name === "title") return void (isTitle = true);
      if (name === "br") return void (text += "\n");
      if (name === "td" || name === "th") {
        if (!isRowStart) text += " | ";
        isRowStart = false;
        return;
      }
      if (name === "img" && attributes.alt) text += ` ${attributes.alt} `;
      if (!BLOCKS.has(name)) return;
      endBlock();
      if (name === "tr") isRowStart = true;
      if (name === "pre") preformatted++;
      if (name === "li") text = "- ";
      if (/^h[1-6]$/.test(name)) heading = Number(name[1]);
    },
    ontext(data) {
      if (isTitle) title += data;
      else if (skipped === 0) text += preformatted > 0 ? data : collapseSpace(data, text);
    },
    onclosetag(name) {
      depth--;
      if (name === "title") return void (isTitle = false);
      if (SKIPPED.has(name)) return void (skipped = Math.max(0, skipped - 1));
      if (skipped > 0 || !BLOCKS.has(name)) return;
      if (text === "- ") text = "";
      endBlock();
      if (name === "pre") preformatted = Math.max(0, preformatted - 1);
      if (/^h[1-6]$/.test(name)) heading = undefined;
    },
  }, { decodeEntities: true, xmlMode: isXml, lowerCaseTags: true });
  parser.write(html);
  parser.end();
  endBlock();
  return { title: title.replace(/\s+/g, " ").trim(), blocks, depth: deepest };
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
  const html = decodeText(input.bytes, findCharset(input.bytes));
  const whole = convertHtml(html);
  const main = input.url === undefined ? undefined : findMainText(html, whole);
  const { title, blocks } = main ?? whole;
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  for (const section of toSections(blocks)) await sink.add(section);
}

function findMainText(html: string, whole: HtmlText): HtmlText | undefined {
  if (whole.depth > MAX_DEPTH || html.length > MAX_READABLE_LENGTH) return undefined;
  try {
    const { document } = parseHTML(html);
    const article = new Readability(document as unknown as Document, { charThreshold: MIN_MAIN_TEXT }).parse();
    if (!article?.content || (article.textContent ?? "").trim().length < MIN_MAIN_TEXT) return undefined;
    const { blocks, depth } = convertHtml(article.content);
    return { title: article.title?.trim() || whole.title, blocks, depth };
  } catch {
    return undefined; // The text of the whole page can be used.
  }
}

/**
 * Finds the declared charset.
 *
 * @see https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding
 */
function findCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1024));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w:-]{2,40})/i.exec(head)?.[1];
}

/** Font obfuscation isn't encryption of text. @see https://www.w3.org/TR/epub-33/#sec-font-obfuscation */
const FONT_ALGORITHMS = /^http:\/\/(www\.idpf\.org\/2008\/embedding|ns\.adobe\.com\/pdf\/enc#RC)$/;

/** The relevant parts of the package document. */
interface Package {
  title: string;
  /** Paths of the text files, in order. */
  spine: string[];
}

/**
 * Extracts an EPUB file in the order of the spine. Each of its files starts a section.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`
 */
export async function extractEpub({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  const archive = await Archive.open(bytes, limits);
  await refuseEncryption(archive);
  const packagePath = findRootFile(await readXml(archive, "META-INF/container.xml"));
  const { title, spine } = parsePackage(await readXml(archive, packagePath), packagePath);
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  let found = 0;
  for (const path of spine) {
    const content = await archive.read(path);
    if (content === undefined) continue; // A missing chapter doesn't prevent reading the others.
    found++;
    const [first, ...rest] = convertHtml(decodeText(content), { isXml: true }).blocks;
    if (first === undefined) continue;
    const blocks: TextBlock[] = [{ ...first, isChapter: true }, ...rest];
    for (const section of toSections(blocks)) await sink.add(section);
  }
  if (found === 0) throw new ExtractionFault("damaged", "Can't read the book: it has no readable chapters");
}

async function readXml(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  if (bytes === undefined) {
    throw new ExtractionFault("damaged", `Can't read the book: it has no "${path.slice(0, 200)}"`);
  }
  return decodeText(bytes);
}

async function refuseEncryption(archive: Archive): Promise<void> {
  const bytes = await archive.read("META-INF/encryption.xml");
  if (bytes === undefined) return;
  readXmlTags(decodeText(bytes), {
    open(name, { algorithm = "" }) {
      if (name !== "encryptionmethod" || FONT_ALGORITHMS.test(algorithm)) return;
      throw new ExtractionFault("encrypted", "Can't read the book: it's protected by DRM");
    },
  });
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
  const hrefs = new Map<string, string>();
  const order: string[] = [];
  let title = "";
  readXmlTags(xml, {
    open(name, { id, href, idref }) {
      if (name === "item" && id !== undefined && href !== undefined) hrefs.set(id, href);
      if (name === "itemref" && idref !== undefined) order.push(idref);
    },
    text(text, name) {
      if (name === "title") title += text;
    },
  });
  const folder = packagePath.includes("/") ? packagePath.slice(0, packagePath.lastIndexOf("/") + 1) : "";
  const spine = order.map((id) => hrefs.get(id)).filter((href) => href !== undefined)
    .map((href) => resolvePath(folder, href));
  return { title: title.replace(/\s+/g, " ").trim().slice(0, 300), spine };
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
