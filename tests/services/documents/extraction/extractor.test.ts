import { crc32, deflateRawSync, deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import type { PackedEntry } from "../../../../services/storage/zip/zip_writer.ts";
import { encodeText } from "../../../helpers/files/encode_text.ts";
import { printPdf, writePdf } from "../../../helpers/files/document_files.ts";
import { codeOf, openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";
import { writeForm, writeMappedPdf } from "../../../helpers/files/pdf_files.ts";

const FIXTURES = new URL("../../../fixtures/documents/", import.meta.url);
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");
const extract = openExtraction();
const MIB = 1024 * 1024;

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

test.each([
  ["<!doctype html><head><title>T</title><p>After an open head", "After an open head"],
  ["<p>A</p><title>Second</title><p>B</p>", "A\n\nB"],
  ["<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>を読む", "漢(かん)字(じ)を読む"],
  ["<ruby>漢字<rp>（</rp><rt>かんじ</rt><rp>）</rp></ruby>", "漢字(かんじ)"],
  ["<ruby>漢字<rt>かんじ</ruby>だ", "漢字(かんじ)だ"],
  ["E = mc<sup>2</sup>, H<sub>2</sub>O, e<sup>x + 1</sup>", "E = mc^2, H_2O, e^(x + 1)"],
  ["<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "(1)/(2)"],
  [
    "So <math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><msqrt><mi>y</mi></msqrt></math> holds",
    "So x^2+√(y) holds",
  ],
  ["<math><mi>a</mi><annotation encoding='TeX'>\\alpha</annotation></math>", "a"],
  ["<svg><title>icon</title><text>Label in a drawing</text></svg>", "Label in a drawing"],
  ["<ol start=3><li>three<li>four</ol><ul><li>dot</ul>", "3. three\n\n4. four\n\n- dot"],
  ['<!DOCTYPE html [<!ENTITY a "x > y"> ]><p>Text</p>', "Text"],
  ['<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><div/><p>A</p></body></html>', "A"],
])("reads %s", async (html, text) => {
  expect((await extract("a.html", html)).pages.join("\n\n")).toBe(text);
});

test("decodes a page by its declarations, wherever they are", async () => {
  const body = "<p>図書館は九時に開きます</p>";
  const late = `<!-- ${"-".repeat(3000).replaceAll("--", "x ")} --><meta charset="shift_jis">${body}`;
  const xml = `<?xml version="1.0" encoding="euc-jp"?><html><body>${body}</body></html>`;
  expect((await extract("a.html", encodeText(late, "shift_jis"))).pages).toEqual(["図書館は九時に開きます"]);
  expect((await extract("a.html", encodeText(xml, "euc-jp"))).pages).toEqual(["図書館は九時に開きます"]);
  const linked = await extract("a.html", encodeText(body, "euc-jp"), { charset: "EUC-JP" });
  expect(linked.pages).toEqual(["図書館は九時に開きます"]);
  expect(linked.ledger).toEqual([]);
});

test("the ledger names what a page has besides text, and how it was decoded", async () => {
  const html =
    '<p>Text</p><img src="a"><img src="b" alt="B"><video src="c"></video><script>1</script><iframe></iframe>';
  const { ledger } = await extract("a.html", html);
  expect(Object.fromEntries(ledger.map(({ kind, count }) => [kind, count]))).toEqual({
    image: 2,
    media: 1,
    script: 1,
    embedded: 1,
  });
  const guessed = await extract("a.txt", encodeText("図書館は九時に開きます。", "shift_jis"));
  expect([guessed.encoding, guessed.ledger]).toMatchObject(["shift_jis", [{
    kind: "encoding",
    examples: ["shift_jis"],
  }]]);
  expect((await extract("a.txt", "plain")).ledger).toEqual([]);
});

test("the ledger of an EPUB names missing, unknown and drawn chapters", async () => {
  const files = {
    "a.xhtml": "<html><body><p>Cr&egrave;me &mdash; she&rsquo;s&nbsp;paid</p></body></html>",
    "b.svg": '<svg xmlns="http://www.w3.org/2000/svg"><text>Drawn words</text></svg>',
  };
  const book = await zipOf([
    textEntry("mimetype", "application/epub+zip"),
    CONTAINER,
    textEntry(
      "p/book.opf",
      `<package><metadata><dc:title>One</dc:title><dc:title>Two</dc:title></metadata><manifest>
      <item id="a" href="a.xhtml" media-type="application/xhtml+xml"/><item id="b" href="b.svg" media-type="image/svg+xml"/>
      <item id="c" href="c.xhtml" media-type="application/xhtml+xml"/><item id="d" href="d.pdf" media-type="application/pdf"/>
      </manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/><itemref idref="d"/></spine></package>`,
    ),
    ...Object.entries(files).map(([path, text]) => textEntry(`p/${path}`, text)),
    textEntry("p/d.pdf", "%PDF"),
  ]);
  const { title, pages, ledger } = await extract("a.epub", book);
  expect(title).toBe("One");
  expect(pages).toEqual(["Crème — she’s paid", "Drawn words"]);
  expect(ledger).toMatchObject([
    { kind: "missing", count: 1, examples: ["p/c.xhtml"] },
    { kind: "unknown", count: 1, examples: ["p/d.pdf"] },
  ]);
});

const M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"';
const run = (text: string, properties = "") =>
  `<w:r><w:rPr>${properties}</w:rPr><w:t xml:space="preserve">${text}</w:t></w:r>`;
const paragraph = (content: string, properties = "") => `<w:p><w:pPr>${properties}</w:pPr>${content}</w:p>`;
const raised = '<w:vertAlign w:val="superscript"/>';

test.each([
  [run("10") + run("6", raised) + run(" items"), "10^6 items"],
  [run("x") + run("1", raised) + run("2", raised), "x^12"],
  [
    `<m:oMath ${M}><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>`,
    "(1)/(2)",
  ],
  [
    `<m:oMath ${M}><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></m:oMath>`,
    "10^6",
  ],
  [
    `<m:oMath ${M}><m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e><m:r><m:t>a</m:t></m:r></m:e></m:d></m:oMath>`,
    "[a]",
  ],
  [run("angle ") + '<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>', "angle α"],
  ['<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>' + run(" done"), "✓ done"],
  [`<w:ins w:id="1">${run("added")}</w:ins><w:del w:id="2"><w:r><w:delText>gone</w:delText></w:r></w:del>`, "added"],
  [
    "<w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r>",
    "漢字(かんじ)",
  ],
])("reads the run %s of a DOCX", async (runs, text) => {
  expect((await extract("a.docx", await docxOf(paragraph(runs)))).pages).toEqual([text]);
});

test("reads notes by their IDs, comments, headers and footers of a DOCX, and counts tracked changes", async () => {
  const reference = (kind: string, id: number) => `<w:r><w:${kind}Reference w:id="${id}"/></w:r>`;
  const note = (kind: string, id: number, text: string, more = "") =>
    `<w:${kind} w:id="${id}" ${more}>${paragraph(run(text))}</w:${kind}>`;
  const part = (name: string, content: string) =>
    textEntry(`word/${name}.xml`, `<w:${name} ${W}>${content}</w:${name}>`);
  const body = paragraph(
    run("One") + reference("footnote", 9) + run(" two") + reference("endnote", 2) + run(" three") +
      reference("footnote", 4) + reference("comment", 0) + `<w:ins w:id="1">${run(" new")}</w:ins>`,
  );
  const { pages, ledger } = await extract(
    "a.docx",
    await zipOf([
      CONTENT_TYPES,
      RELATIONS,
      textEntry("word/document.xml", `<w:document ${W}><w:body>${body}</w:body></w:document>`),
      part(
        "footnotes",
        note("footnote", 0, "sep", 'w:type="separator"') + note("footnote", 4, "Four") + note("footnote", 9, "Nine"),
      ),
      part("endnotes", note("endnote", 2, "See the appendix")),
      part("comments", note("comment", 0, "Is this so?", 'w:author="Mia"')),
      textEntry(
        "word/_rels/document.xml.rels",
        `<Relationships>${
          [["footnotes", "footnotes"], ["endnotes", "endnotes"], ["comments", "comments"], ["header", "header1"], [
            "header",
            "header2",
          ], ["footer", "footer1"]]
            .map(([kind, name], n) => `<Relationship Id="r${n}" Type="http://x/${kind}" Target="${name}.xml"/>`).join(
              "",
            )
        }</Relationships>`,
      ),
      textEntry("word/header1.xml", `<w:hdr ${W}>${paragraph(run("Confidential"))}</w:hdr>`),
      textEntry("word/header2.xml", `<w:hdr ${W}>${paragraph(run("Confidential"))}</w:hdr>`),
      textEntry("word/footer1.xml", `<w:ftr ${W}>${paragraph(run("12"))}</w:ftr>`),
    ]),
  );
  expect(pages.join("\n\n").split("\n\n")).toEqual([
    "Confidential",
    "One[1] two[2] three[3][c1] new",
    "[1] Nine",
    "[3] Four",
    "[2] See the appendix",
    "[c1] Mia: Is this so?",
  ]);
  expect(ledger).toMatchObject([{ kind: "tracked_changes", count: 1 }]);
});

test("reads the diagrams (SmartArt) and charts of a DOCX", async () => {
  const relation = (kind: string, target: string, n: number) =>
    `<Relationship Id="r${n}" Type="http://x/${kind}" Target="${target}"/>`;
  const { pages, ledger } = await extract(
    "a.docx",
    await zipOf([
      CONTENT_TYPES,
      RELATIONS,
      textEntry("word/document.xml", `<w:document ${W}><w:body>${paragraph(run("Before"))}</w:body></w:document>`),
      textEntry(
        "word/_rels/document.xml.rels",
        `<Relationships>${relation("diagramData", "diagrams/data1.xml", 1)}${
          relation("chart", "charts/chart1.xml", 2)
        }${relation("chartEx", "charts/chartEx1.xml", 3)}</Relationships>`,
      ),
      textEntry(
        "word/diagrams/data1.xml",
        "<dgm:dataModel><dgm:ptLst>" +
          "<dgm:pt><dgm:t><a:bodyPr/><a:p><a:r><a:t>Plan</a:t></a:r><a:r><a:t> it</a:t></a:r></a:p></dgm:t></dgm:pt>" +
          "<dgm:pt><dgm:t><a:p><a:endParaRPr/></a:p></dgm:t></dgm:pt>" +
          "<dgm:pt><dgm:t><a:p><a:r><a:t>Build it</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>",
      ),
      textEntry(
        "word/charts/chart1.xml",
        "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Costs</a:t></a:r></a:p></c:rich></c:tx></c:title>" +
          "<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>2026</c:v></c:pt></c:strCache></c:strRef></c:tx>" +
          "<c:cat><c:strCache><c:pt idx='0'><c:v>East</c:v></c:pt><c:pt idx='1'><c:v>West</c:v></c:pt></c:strCache></c:cat>" +
          "<c:val><c:numCache><c:pt idx='1'><c:v>2.5</c:v></c:pt></c:numCache></c:val></c:ser></c:chart></c:chartSpace>",
      ),
    ]),
  );
  expect(pages).toEqual(["Before\n\nPlan it\nBuild it\n\nChart: Costs\n | East | West\n2026 |  | 2.5"]);
  expect(ledger).toMatchObject([{ kind: "unknown", count: 1, examples: ["chart"] }]);
});

test("numbers the lists of a DOCX as its levels say", async () => {
  const level = (n: number, format: string, text: string, start = 1) =>
    `<w:lvl w:ilvl="${n}"><w:start w:val="${start}"/><w:numFmt w:val="${format}"/><w:lvlText w:val="${text}"/></w:lvl>`;
  const item = (text: string, list: number, level = 0) =>
    paragraph(run(text), `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr>`);
  const numbering = `<w:numbering ${W}><w:abstractNum w:abstractNumId="0">${level(0, "decimal", "%1.", 3)}${
    level(1, "lowerLetter", "%1.%2)")
  }</w:abstractNum><w:abstractNum w:abstractNumId="1">${level(0, "upperRoman", "%1.")}</w:abstractNum>
  <w:abstractNum w:abstractNumId="2">${level(0, "bullet", "")}</w:abstractNum>
  <w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
  <w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num></w:numbering>`;
  const body = item("a", 1) + item("b", 1, 1) + item("c", 1, 1) + item("d", 1) + item("e", 1, 1) + item("f", 2) +
    item("g", 2) + item("h", 3) + item("i", 0);
  const { pages } = await extract(
    "a.docx",
    await zipOf([
      CONTENT_TYPES,
      RELATIONS,
      textEntry("word/document.xml", `<w:document ${W}><w:body>${body}</w:body></w:document>`),
      textEntry("word/numbering.xml", numbering),
    ]),
  );
  expect(pages.join("\n\n").split("\n\n")).toEqual([
    ...["3. a", "3.a) b", "3.b) c", "4. d", "4.a) e", "I. f", "II. g", "- h", "i"],
  ]);
});

test("only a PDF may be a scan", async () => {
  const messageOf = async (name: string, content: string | Uint8Array<ArrayBuffer>) => {
    const error = await extract(name, content).catch((thrown) => thrown);
    return [error.code, error.message];
  };
  expect(await messageOf("a.html", "<img src=x>")).toEqual(["no_text", "The file has no text."]);
  expect((await messageOf("a.pdf", writePdf([" "])))[1]).toContain("It may be a scan");
});

test.each([
  ["90ms-RKSJ-H", "Japan1", "shift_jis", "図書館は九時"],
  ["EUC-H", "Japan1", "euc-jp", "図書館は九時"],
  ["UniJIS-UCS2-H", "Japan1", "utf-16be", "図書館は九時"],
  ["GBK-EUC-H", "GB1", "gb18030", "图书馆九点"],
  ["UniGB-UCS2-H", "GB1", "utf-16be", "图书馆九点"],
  ["ETen-B5-H", "CNS1", "big5", "圖書館九點"],
  ["KSCms-UHC-H", "Korea1", "euc-kr", "도서관은 아홉"],
])("reads a PDF with the predefined character map %s", async (map, ordering, encoding, text) => {
  const { pages } = await extract("a.pdf", writeMappedPdf(map, ordering, encodeText(text, encoding)));
  expect(pages).toEqual([text]);
});

test("a PDF can't have other files read as its character map", async () => {
  for (const map of ["no-such-map", "..#2F..#2Fpackage.json", "H#00"]) {
    const pdf = writeMappedPdf(map, "Japan1", encodeText("図書", "shift_jis"));
    expect(await codeOf(extract("a.pdf", pdf))).toMatch(/^(no_text|damaged|read)$/);
  }
});

test("values of a form and typed notes are at their places on the page", async () => {
  const { pages } = await extract(
    "a.pdf",
    writeForm([
      "/Subtype /Widget /FT /Tx /T (name) /V (Mia Example) /Rect [100 145 300 165]",
      "/Subtype /Widget /FT /Ch /Ff 131072 /T (country) /Opt [[(no) (Norway)] [(pe) (Peru)]] /V (pe) /Rect [100 115 300 135]",
      "/Subtype /FreeText /Contents (Typed between) /Rect [20 132 200 144]",
      "/Subtype /Text /T (Ann) /Contents (Is this right?) /Rect [20 60 40 80]",
      "/Subtype /Widget /FT /Tx /T (secret) /Ff 8192 /V (hunter2) /Rect [100 20 300 40]",
      "/Subtype /FreeText /F 2 /Contents (Hidden) /Rect [20 10 200 20]",
    ]),
  );
  expect(pages[0]!.split(/\n+/)).toEqual([
    "Name: Mia Example",
    "Typed between",
    "Country: Peru",
    "[Ann: Is this right?]",
  ]);
});

test("the ledger of a PDF names attached files, characters without text, and pages without text", async () => {
  const pdf = writePdf(["Words", " ", "x"], {
    change: (objects) => ({
      ...objects,
      1: "<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(data.csv) 30 0 R] >> >> >>",
      30: "<< /Type /Filespec /F (data.csv) /EF << /F 31 0 R >> >>",
      31: "<< /Type /EmbeddedFile /Length 3 >>\nstream\na,b\nendstream",
      8: objects[8]!.replace("/F1 3 0 R", "/F1 40 0 R"),
      40:
        "<< /Type /Font /Subtype /Type1 /BaseFont /Odd /FirstChar 120 /LastChar 120 /Widths [500] /ToUnicode 41 0 R >>",
      41:
        "<< /Length 93 >>\nstream\n1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar <78> <E001> endbfchar\nendstream",
    }),
  });
  const { ledger } = await extract("a.pdf", pdf);
  expect(ledger.map(({ kind, count, examples }) => [kind, count, examples])).toEqual([
    ["embedded", 1, ["data.csv"]],
    ["unmapped", 1, ["page 3"]],
    ["page_without_text", 1, ["page 2"]],
  ]);
  const xfa = await extract(
    "a.pdf",
    writePdf(["Please wait... If this message is not eventually replaced, update Adobe Reader."]),
  );
  expect(xfa.ledger.map(({ kind }) => kind)).toEqual(["xfa"]);
});

const CRLF = (lines: string[]) => lines.join("\r\n");

test("reads a mail with its header, and names what is attached", async () => {
  const mail = CRLF([
    "From: =?utf-8?B?w4RubmU=?= <a@example.org>",
    "To: Bo <b@example.org>, c@example.org",
    "Subject: =?iso-8859-1?Q?Gr=FC=DFe?=",
    "MIME-Version: 1.0",
    'Content-Type: multipart/mixed; boundary="b"',
    "",
    "--b",
    "Content-Type: text/plain; charset=shift_jis",
    "Content-Transfer-Encoding: base64",
    "",
    btoa(String.fromCharCode(...encodeText("図書館は九時に開きます。", "shift_jis"))),
    "--b",
    'Content-Type: application/pdf; name="plan.pdf"',
    'Content-Disposition: attachment; filename="plan.pdf"',
    "",
    "x",
    "--b--",
  ]);
  const { pages, ledger } = await extract("a.eml", mail);
  expect(pages.join("\n\n")).toContain(
    "Subject: Grüße\nFrom: Änne <a@example.org>\nTo: Bo <b@example.org>, c@example.org\n\n図書館は九時に開きます。",
  );
  expect(ledger).toMatchObject([{ kind: "embedded", count: 1, examples: ["plan.pdf"] }]);
});

test("reads a mail that has only HTML, and a saved page", async () => {
  const page = (head: string[]) =>
    CRLF([
      ...head,
      "MIME-Version: 1.0",
      'Content-Type: multipart/related; boundary="b"',
      "",
      "--b",
      'Content-Type: text/html; charset="utf-8"',
      "Content-Transfer-Encoding: quoted-printable",
      "",
      '<title>T</title><h1>Head</h1><p>Saved page =C3=A9t=C3=A9</p><img src=3D"cid:i">',
      "--b",
      "Content-Type: image/png",
      "Content-ID: <i>",
      "Content-Transfer-Encoding: base64",
      "",
      "iVBORw0KGgo=",
      "--b--",
    ]);
  const saved = await extract("a.mhtml", page(["Subject: Saved"]));
  expect([saved.title, saved.pages]).toEqual(["T", ["Head\n\nSaved page été"]]);
  expect(saved.ledger).toMatchObject([{ kind: "image", count: 1 }]);
  expect((await extract("a.eml", page(["Subject: Hi"]))).pages).toEqual(["Subject: Hi\n\nHead\n\nSaved page été"]);
});

test("reads the cells of a notebook and the text of their outputs, without images", async () => {
  const notebook = {
    nbformat: 4,
    metadata: { language_info: { name: "python" } },
    cells: [
      { cell_type: "markdown", source: ["# Title\n", "Words"] },
      {
        cell_type: "code",
        source: "print(1)",
        outputs: [
          { output_type: "stream", text: ["1\n"] },
          { output_type: "display_data", data: { "image/png": "iVBORw0KGgo", "text/plain": ["<Figure>"] } },
          { output_type: "execute_result", data: { "text/html": "<table><tr><td>a<td>b</table>" } },
          { output_type: "error", ename: "E", evalue: "v", traceback: ["\u001b[31mE\u001b[0m: v"] },
          { output_type: "execute_result", data: { "application/x-odd": 1 } },
        ],
      },
      { cell_type: "poem", source: "Roses" },
    ],
  };
  const { pages, ledger } = await extract("a.ipynb", JSON.stringify(notebook));
  expect(pages.join("\n\n")).toBe(
    "# Title\nWords\n\n```python\nprint(1)\n```\n\nOutput:\n```\n1\n```\n\nOutput:\n```\n<Figure>\n```\n\nOutput:\n```\n" +
      "a | b\n```\n\nOutput:\n```\nE: v\n```\n\nRoses",
  );
  expect(ledger).toMatchObject([
    { kind: "image", count: 1 },
    { kind: "unknown", count: 2, examples: ["application/x-odd", "cell poem"] },
  ]);
  expect(await codeOf(extract("a.ipynb", "{"))).toBe("damaged");
});
