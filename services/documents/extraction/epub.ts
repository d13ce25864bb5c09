/** Text of EPUB files, in the order of the spine. Each of its files starts a section. */
import { Archive, readXmlTags } from "./archive.ts";
import { ExtractionFault, type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { convertHtml } from "./html_text.ts";
import { decodeText } from "./text_files.ts";

/** Font obfuscation isn't encryption of text. @see https://www.w3.org/TR/epub-33/#sec-font-obfuscation */
const FONT_ALGORITHMS = /^http:\/\/(www\.idpf\.org\/2008\/embedding|ns\.adobe\.com\/pdf\/enc#RC)$/;

/** The package document, as far as it matters. */
interface Package {
  title: string;
  /** Paths of the text files, in order. */
  spine: string[];
}

/** Reads an EPUB file. @throws {ExtractionFault} `encrypted`, `damaged`, `too_large` */
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
