import { crc32, deflateRawSync, deflateSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import type { DocumentPage, PageUnit } from "../../../../services/documents/document.ts";
import { ExtractionFault, sniffDocument } from "../../../../services/documents/extraction/extraction.ts";
import {
  extractDocument,
  READER_LIMITS,
  type ReaderLimits,
} from "../../../../services/documents/extraction/extractor.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { joinBytes } from "../../../../services/storage/atomic_file.ts";
import { createEntry, type PackedEntry, writeZip } from "../../../../services/storage/zip/zip_writer.ts";
import { printPdf, writePdf } from "../../../helpers/files/document_files.ts";

const FIXTURES = new URL("../../../fixtures/documents/", import.meta.url);
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");
const sandbox = new Sandbox();
afterAll(() => sandbox.close());
const MIB = 1024 * 1024;

interface Extracted {
  unit?: PageUnit;
  title?: string;
  pages: string[];
}

/** Extracts a file as the service does. @throws {ExtractionFault} */
async function extract(
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
  { url, signal = new AbortController().signal, ...limits }: Partial<ReaderLimits> & {
    url?: string;
    signal?: AbortSignal;
  } = {},
): Promise<Extracted> {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  const found: Extracted = { pages: [] };
  const pages: DocumentPage[] = [];
  await extractDocument(sandbox, {
    content: ReadableStream.from([bytes]),
    sizeBytes: bytes.length,
    name,
    contentType: sniffDocument(bytes.subarray(0, 4096), name)!,
    url,
    signal,
    begin: (about) => Object.assign(found, about),
    store: async (batch) => void await Promise.resolve(pages.push(...batch)),
  }, { ...READER_LIMITS, ...limits });
  expect(pages.map(({ n }) => n)).toEqual(pages.map((_, index) => index + 1));
  found.pages = pages.map(({ text }) => text);
  return found;
}

/** Returns the code of the failure; "read" if there is none. */
async function codeOf(extracting: Promise<Extracted>): Promise<string> {
  try {
    await extracting;
    return "read";
  } catch (error) {
    if (error instanceof ExtractionFault) return error.code;
    throw error;
  }
}

const zipOf = async (files: Iterable<PackedEntry>) =>
  joinBytes(await Array.fromAsync(writeZip(files, { isLarge: false })));
const textEntry = (path: string, text: string) => createEntry(path, encoder.encode(text));

const CONTENT_TYPES = textEntry(
  "[Content_Types].xml",
  `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
  <Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
);
const RELATIONS = textEntry(
  "_rels/.rels",
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"
  Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
);
const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const docxOf = (body: string, head = "") =>
  zipOf([
    CONTENT_TYPES,
    RELATIONS,
    textEntry(
      "word/document.xml",
      `<?xml version="1.0"?>${head}<w:document ${W}><w:body>${body}</w:body></w:document>`,
    ),
  ]);

const CONTAINER = textEntry(
  "META-INF/container.xml",
  '<container><rootfiles><rootfile full-path="p/book.opf"/></rootfiles></container>',
);
const epubOf = (chapters: Record<string, string>, extra: PackedEntry[] = []) =>
  zipOf([
    textEntry("mimetype", "application/epub+zip"),
    CONTAINER,
    textEntry(
      "p/book.opf",
      `<package><metadata><dc:title>T</dc:title></metadata><manifest>${
        Object.keys(chapters).map((path, n) => `<item id="i${n}" href="${path}"/>`).join("")
      }</manifest><spine>${Object.keys(chapters).map((_, n) => `<itemref idref="i${n}"/>`).join("")}</spine></package>`,
    ),
    ...Object.entries(chapters).map(([path, text]) => textEntry(`p/${path}`, text)),
    ...extra,
  ]);

test("reads the pages of a PDF printed by a browser, including several scripts", async () => {
  const { unit, pages } = await extract(
    "a.pdf",
    await printPdf([
      "<h1>First</h1><p>Alpha beta.</p><p>Gamma delta.</p>",
      "<p>Grüße aus Köln, naïve café.</p>",
      "<p>Съешь ещё этих мягких булок. Ξεσκεπάζω.</p>",
    ]),
  );
  expect(unit).toBe("page");
  expect(pages).toHaveLength(3);
  expect(pages[0]).toBe("First\n\nAlpha beta.\n\nGamma delta.");
  expect(pages[1]).toContain("Grüße aus Köln, naïve café.");
  expect(pages[2]).toContain("Съешь ещё этих мягких булок. Ξεσκεπάζω.");
});

test("reads a DOCX of another program in sections, with its table", async () => {
  const { unit, pages } = await extract("minutes.docx", await Deno.readFile(new URL("minutes.docx", FIXTURES)));
  expect(unit).toBe("section");
  expect(pages.length).toBeGreaterThanOrEqual(5);
  for (const n of [1, 2, 3, 4, 5]) {
    const page = pages.find((text) => text.includes(`Section ${n}`))!;
    expect(page).toContain(`the fee for berth ${n * 11} is ${n * 125} crowns`);
  }
  expect(pages.at(-1)).toContain("33 | Heron | 375");
});

test("reads an EPUB of another program by chapters, without scripts", async () => {
  const { title, pages } = await extract("almanac.epub", await Deno.readFile(new URL("almanac.epub", FIXTURES)));
  expect(title).toBe("The Lighthouse Keeper's Almanac");
  const chapter = pages.find((text) => text.startsWith("Chapter 2"))!;
  expect(chapter).toContain("Waves & wind, café — chapter 2.");
  expect(chapter).toContain("Admiral Biscuit");
  expect(pages.join()).not.toContain("document.write");
});

test("takes the main text and the title of a linked page", async () => {
  const article = Array.from(
    { length: 12 },
    (_, n) =>
      `<p>Paragraph ${n} of the story about the lighthouse, its keeper, and the long winter they spent together.</p>`,
  ).join("");
  const html = `<!doctype html><html><head><title>The Story – Example Site</title></head><body>
    <nav><ul>${"<li><a href='/x'>Menu entry</a></li>".repeat(20)}</ul></nav>
    <main><article><h1>The Story</h1>${article}</article></main><footer>Imprint and cookies</footer></body></html>`;
  const linked = await extract("page.html", html, { url: "https://example.org/story" });
  expect(linked.title).toContain("The Story");
  expect(linked.pages.join("\n")).toContain("Paragraph 11 of the story");
  expect(linked.pages.join("\n")).not.toContain("Menu entry");
  const file = await extract("page.html", html);
  expect(file.pages.join("\n")).toContain("Menu entry");
});

test("divides plain text between lines, Markdown at headings, and repeats the header of a CSV", async () => {
  const code = Array.from({ length: 600 }, (_, n) => `  const line${n} = ${n};`).join("\n");
  const source = await extract("a.ts", code);
  expect(source.pages.length).toBeGreaterThan(3);
  expect(source.pages.join("\n")).toBe(code);
  const markdown = await extract(
    "a.md",
    [1, 2, 3].map((n) => `# Part ${n}\n\n${"Some words. ".repeat(80)}`).join("\n\n"),
  );
  expect(markdown.pages.map((text) => text.slice(0, 8))).toEqual(["# Part 1", "# Part 2", "# Part 3"]);
  const csv = await extract("a.csv", `name,fee\n${Array.from({ length: 500 }, (_, n) => `boat${n},${n}`).join("\n")}`);
  expect(csv.pages.length).toBeGreaterThan(1);
  for (const page of csv.pages) expect(page.startsWith("name,fee\n")).toBe(true);
});

test("decodes UTF-8, UTF-16 and Windows-1252", async () => {
  const utf16 = new Uint8Array([
    0xff,
    0xfe,
    ...Array.from("Grüße").flatMap((char) => [char.charCodeAt(0) & 255, char.charCodeAt(0) >> 8]),
  ]);
  expect((await extract("a.txt", utf16)).pages).toEqual(["Grüße"]);
  expect((await extract("a.txt", "\ufeffGrüße")).pages).toEqual(["Grüße"]);
  expect((await extract("a.txt", new Uint8Array([71, 114, 0xfc, 0xdf, 101]))).pages).toEqual(["Grüße"]);
});

test.each(["", "   \n\n ", "\n— * —\n"])("says that a file without words has no text: %j", async (text) => {
  expect(await codeOf(extract("a.txt", text))).toBe("no_text");
});

test("says that a scan has no text", async () => {
  const pdf = writePdf(["x", "y"], {
    change: (objects) => ({
      ...objects,
      5: "<< /Length 0 >>\nstream\n\nendstream",
      7: "<< /Length 0 >>\nstream\n\nendstream",
    }),
  });
  expect(await codeOf(extract("scan.pdf", pdf))).toBe("no_text");
});

test("says that a file is protected by a password", async () => {
  const encrypt = `/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -3904 /O <${"1f".repeat(32)}> /U <${
    "2e".repeat(32)
  }> >> /ID [<${"3d".repeat(16)}> <${"3d".repeat(16)}>] `;
  expect(await codeOf(extract("a.pdf", writePdf(["secret"], { trailer: encrypt })))).toBe("encrypted");
  const ole2 = new Uint8Array(1024);
  ole2.set([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
  expect(await codeOf(extract("a.docx", ole2))).toBe("encrypted");
  const drm = textEntry(
    "META-INF/encryption.xml",
    '<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>',
  );
  expect(await codeOf(extract("a.epub", await epubOf({ "a.xhtml": "<p>x</p>" }, [drm])))).toBe("encrypted");
});

const broken: [string, string, () => Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>][] = [
  ["a PDF that ends after its mark", "a.pdf", () => encoder.encode("%PDF-1.7\n")],
  ["a PDF of noise", "a.pdf", () => {
    const noise = encoder.encode("%PDF-1.7\n").length;
    const bytes = new Uint8Array(200_000);
    for (let n = 0; n < bytes.length; n++) bytes[n] = (n * 2_654_435_761) >>> 13;
    bytes.set(encoder.encode("%PDF-1.7\n"), 0);
    return bytes.subarray(0, 200_000 - noise).slice();
  }],
  [
    "a PDF whose page tree is a loop",
    "a.pdf",
    () =>
      writePdf(["x"], { change: (objects) => ({ ...objects, 2: "<< /Type /Pages /Count 5 /Kids [2 0 R 2 0 R] >>" }) }),
  ],
  ["a DOCX that is cut off", "a.docx", async () => (await docxOf("<w:p/>")).slice(0, 300)],
  ["a DOCX with broken XML", "a.docx", () => docxOf("<w:p><w:r></w:body>")],
  ["an EPUB without chapters", "a.epub", () => epubOf({})],
  [
    "an EPUB that names files outside",
    "a.epub",
    () =>
      zipOf([
        textEntry("mimetype", "application/epub+zip"),
        textEntry("META-INF/container.xml", '<rootfile full-path="../../../../etc/passwd"/>'),
      ]),
  ],
];
test.each(broken)("refuses %s", { tags: ["F06"] }, async (_, name, make) => {
  expect(await codeOf(extract(name, await make(), { timeMs: 30_000 }))).toMatch(/^(damaged|no_text|timeout)$/);
});

test("reads a PDF whose xref is wrong", { tags: ["F06"] }, async () => {
  const text = decoder.decode(writePdf(["first line", "second line"]));
  const shifted = encoder.encode(
    text.replace(/startxref\n\d+/, "startxref\n7").replace("%PDF-1.7\n", "%PDF-1.7\n%%%%%%\n"),
  );
  expect((await extract("a.pdf", shifted)).pages).toEqual(["first line", "second line"]);
});

test("runs no script of a PDF and follows none of its references", { tags: ["F06"] }, async () => {
  let requests = 0;
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    requests++;
    return new Response("x");
  });
  const url = `http://127.0.0.1:${(server.addr as Deno.NetAddr).port}/`;
  const pdf = writePdf(["harmless"], {
    change: (objects) => ({
      ...objects,
      1: `<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (fetch\\('${url}'\\)) >> /AA << /WC << /S /URI /URI (${url}) >> >> ` +
        `/Names << /EmbeddedFiles << /Names [(a) << /Type /Filespec /F (${url}) /FS /URL >>] >> >> >>`,
    }),
  });
  expect((await extract("a.pdf", pdf)).pages).toEqual(["harmless"]);
  const html =
    `<!doctype html><html><head><link rel="stylesheet" href="${url}"><script src="${url}"></script><meta http-equiv="refresh" content="0;${url}"></head>
    <body><iframe src="${url}"></iframe><img src="${url}"><p>${"harmless words ".repeat(40)}</p></body></html>`;
  expect((await extract("a.html", html, { url: "https://example.org/" })).pages.join()).toContain("harmless");
  expect((await extract("a.epub", await epubOf({ "a.xhtml": html }))).pages.join()).toContain("harmless");
  const linked = await docxOf("<w:p><w:r><w:t>harmless</w:t></w:r></w:p>", `<!DOCTYPE d SYSTEM "${url}">`);
  expect((await extract("a.docx", linked)).pages).toEqual(["harmless"]);
  expect(requests).toBe(0);
});

test("doesn't expand entities that a file declares", { tags: ["F06"] }, async () => {
  const doctype = `<!DOCTYPE d [<!ENTITY a "${"lol".repeat(100)}">${
    Array.from("bcdefghij", (name, n) => `<!ENTITY ${name} "${`&${"abcdefghi"[n]};`.repeat(100)}">`).join("")
  }<!ENTITY f SYSTEM "file:///etc/passwd">]>`;
  const body = "<w:p><w:r><w:t>before &j; &f; after</w:t></w:r></w:p>";
  const read = await extract("a.docx", await docxOf(body, doctype)).catch((error) => ({ pages: [String(error.code)] }));
  expect(read.pages.join()).not.toContain("lol");
  expect(read.pages.join()).not.toContain("root:");
  const book = await extract(
    "a.epub",
    await epubOf({ "a.xhtml": `<?xml version="1.0"?>${doctype}<html><body><p>before &j; &f; after</p></body></html>` }),
  );
  expect(book.pages.join()).toMatch(/before.*after/s);
  expect(book.pages.join()).not.toMatch(/lol|root:/);
});

test("refuses an archive that unpacks to more than the limit, whatever it declares", { tags: ["F06"] }, async () => {
  const bomb = new Uint8Array(64 * MIB).fill(32);
  const packed = deflateRawSync(bomb);
  const entry: PackedEntry = {
    path: "word/document.xml",
    isDeflated: true,
    crc: crc32(bomb),
    sizeBytes: bomb.length,
    packedBytes: packed.length,
    content: [packed],
  };
  const honest = await zipOf([CONTENT_TYPES, RELATIONS, entry]);
  expect(await codeOf(extract("a.docx", honest, { inflatedBytes: 32 * MIB }))).toBe("too_large");
  // Declares less than it contains: nothing beyond the declared size is unpacked.
  const lying = await zipOf([CONTENT_TYPES, RELATIONS, { ...entry, sizeBytes: 1000 }]);
  expect(await codeOf(extract("a.docx", lying, { inflatedBytes: 32 * MIB }))).toBe("damaged");
  const many = Array.from({ length: 40 }, (_, n) => ({ ...entry, path: `p/c${n}.xhtml` }));
  const chapters = Object.fromEntries(many.map(({ path }) => [path.slice(2), ""]));
  const book = await zipOf([
    ...[textEntry("mimetype", "application/epub+zip"), CONTAINER],
    textEntry(
      "p/book.opf",
      `<package><manifest>${
        Object.keys(chapters).map((path, n) => `<item id="i${n}" href="${path}"/>`).join("")
      }</manifest><spine>${many.map((_, n) => `<itemref idref="i${n}"/>`).join("")}</spine></package>`,
    ),
    ...many,
  ]);
  expect(await codeOf(extract("a.epub", book))).toBe("too_large");
});

test("ends a PDF that unpacks to more memory than allowed", { tags: ["F06"], timeout: 240_000 }, async () => {
  // Nested filters: a few kilobytes become a gigabyte.
  const once = deflateSync(new Uint8Array(1024 * MIB).fill(32), { level: 9 });
  const twice = deflateSync(once, { level: 9 });
  const pdf = decoder.decode(writePdf(["x"], {
    change: (objects) => ({
      ...objects,
      5: `<< /Length ${twice.length} /Filter [/FlateDecode /FlateDecode] >>\nstream\n${
        decoder.decode(twice)
      }\nendstream`,
    }),
  }));
  const raw = Uint8Array.from(pdf, (char) => char.charCodeAt(0));
  expect(raw.length).toBeLessThan(200_000);
  expect(await codeOf(extract("a.pdf", raw, { memoryBytes: 256 * MIB }))).toMatch(/^(too_large|no_text|damaged)$/);
});

test("ends a parser that runs for too long", { tags: ["F06"] }, async () => {
  const pdf = await extract("a.txt", "fits", { timeMs: 60_000 });
  expect(pdf.pages).toEqual(["fits"]);
  const rows = Array.from({ length: 3_000 }, (_, n) => `line ${n}`);
  expect(await codeOf(extract("a.pdf", writePdf(rows), { timeMs: 150 }))).toBe("timeout");
});

test("refuses more pages and more text than the limits", { tags: ["F06"] }, async () => {
  expect(await codeOf(extract("a.pdf", writePdf(["a", "b", "c"]), { pages: 2 }))).toBe("too_large");
  expect(await codeOf(extract("a.txt", "words ".repeat(4_000), { pages: 2 }))).toBe("too_large");
  expect(await codeOf(extract("a.txt", "words ".repeat(4_000), { chars: 1_000 }))).toBe("too_large");
});

test("reads HTML with 20,000 nested elements, and XML", { tags: ["F06"] }, async () => {
  // The parser's time grows with the square of the depth.
  const deep = 20_000;
  const html = `<!doctype html><body>${"<div>".repeat(deep)}the core${"</div>".repeat(deep)}`;
  expect((await extract("a.html", html)).pages).toEqual(["the core"]);
  expect((await extract("a.html", html, { url: "https://example.org/" })).pages).toEqual(["the core"]);
  const nested = `${"<w:smartTag>".repeat(deep)}<w:p><w:r><w:t>the core</w:t></w:r></w:p>${
    "</w:smartTag>".repeat(deep)
  }`;
  expect((await extract("a.docx", await docxOf(nested))).pages).toEqual(["the core"]);
});

test("stops when it is canceled", async () => {
  const abort = new AbortController();
  const reading = extract("a.pdf", writePdf(Array.from({ length: 3_000 }, (_, n) => `line ${n}`)), {
    signal: abort.signal,
  });
  abort.abort(new DOMException("gone", "AbortError"));
  await expect(reading).rejects.toThrow("gone");
});
