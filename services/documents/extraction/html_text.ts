/**
 * Text of HTML files, of EPUB files, and of linked pages, whose main text is found by Readability.
 *
 * HTML is converted to blocks of text without building a document: memory and time grow with the text, however deep it
 * is nested. Scripts, styles and hidden elements have no text; nothing is fetched.
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

/** Elements without text of their own. */
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

/** What the text of an HTML file is. */
interface HtmlText {
  title: string;
  blocks: TextBlock[];
  /** Deepest nesting of elements. */
  depth: number;
}

/** Converts HTML. @param options.isXml XHTML of an EPUB: empty elements may be closed anywhere. */
function convertHtml(html: string, { isXml = false } = {}): HtmlText {
  const blocks: TextBlock[] = [];
  let text = "";
  let title = "";
  let heading: number | undefined;
  /** Nesting of skipped elements. */
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
      else if (skipped === 0) text += preformatted > 0 ? data : collapse(data, text);
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

/** Collapses white space as browsers do, also across elements. */
function collapse(data: string, before: string): string {
  const line = data.replace(/[\s\u200b]+/g, " ");
  return line.startsWith(" ") && (before === "" || /\s$/.test(before)) ? line.slice(1) : line;
}

/** Readability recurses; pages nested deeper are used whole. */
const MAX_DEPTH = 400;
/** Readability takes seconds on longer pages, which are hardly articles. */
const MAX_READABLE_LENGTH = 4 * 1024 * 1024;
/** The shortest text that is worth more than the whole page. */
const MIN_MAIN_TEXT = 200;

/** Reads an HTML file. Of a link only the main text is used, if it has one. */
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
    return undefined; // the whole page still has its text
  }
}

/** @see https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding */
function findCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1024));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w:-]{2,40})/i.exec(head)?.[1];
}

/** Font obfuscation isn't encryption of text. @see https://www.w3.org/TR/epub-33/#sec-font-obfuscation */
const FONT_ALGORITHMS = /^http:\/\/(www\.idpf\.org\/2008\/embedding|ns\.adobe\.com\/pdf\/enc#RC)$/;

/** The package document, as far as it matters. */
interface Package {
  title: string;
  /** Paths of the text files, in order. */
  spine: string[];
}

/**
 * Reads an EPUB file in the order of the spine. Each of its files starts a section.
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
    if (content === undefined) continue; // a missing chapter doesn't hide the others
    found++;
    const [first, ...rest] = convertHtml(decodeText(content), { isXml: true }).blocks;
    if (first === undefined) continue;
    const blocks: TextBlock[] = [{ ...first, isChapter: true }, ...rest];
    for (const section of toSections(blocks)) await sink.add(section);
  }
  if (found === 0) throw new ExtractionFault("damaged", "The book has no chapters that can be read");
}

async function readXml(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  if (bytes === undefined) throw new ExtractionFault("damaged", `The book has no "${path.slice(0, 200)}"`);
  return decodeText(bytes);
}

async function refuseEncryption(archive: Archive): Promise<void> {
  const bytes = await archive.read("META-INF/encryption.xml");
  if (bytes === undefined) return;
  readXmlTags(decodeText(bytes), {
    open(name, { algorithm = "" }) {
      if (name !== "encryptionmethod" || FONT_ALGORITHMS.test(algorithm)) return;
      throw new ExtractionFault("encrypted", "The book is protected (DRM)");
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
  if (path === undefined) throw new ExtractionFault("damaged", "The book doesn't name its contents");
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

/** Names are only looked up in the archive, so `..` leads nowhere. */
function resolvePath(folder: string, href: string): string {
  const [path = ""] = href.split("#");
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // used as written
  }
  const parts: string[] = [];
  for (const part of `${folder}${decoded}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}
