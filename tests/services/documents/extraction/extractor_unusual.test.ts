/** Files that are unusual but valid, or damaged in a way that leaves their text readable. */
import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

const extract = openExtraction();

const encoder = new TextEncoder();
const bytesOf = (...parts: (string | number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => typeof part === "string" ? [...encoder.encode(part)] : part));
const zip = (files: Record<string, string>) =>
  zipOf(Object.entries(files).map(([path, text]) => textEntry(path, text)));
const relations = (...all: [id: string, kind: string, target: string][]) =>
  `<Relationships>${
    all.map(([id, kind, target]) => `<Relationship Id="${id}" Type="x/${kind}" Target="${target}"/>`).join("")
  }</Relationships>`;
const word = (content: string) => `<w:document><w:body>${content}</w:body></w:document>`;
const paragraph = (text: string, properties = "") =>
  `<w:p><w:r><w:rPr>${properties}</w:rPr><w:t>${text}</w:t></w:r></w:p>`;
const flat = (kind: string, content: string) =>
  `<?xml version="1.0"?><office:document office:mimetype="application/vnd.oasis.opendocument.${kind}"><office:meta><dc:title>T</dc:title>` +
  `</office:meta><office:body><office:${kind}>${content}</office:${kind}></office:body></office:document>`;
const book = (opf: string, files: Record<string, string>) =>
  zip({
    mimetype: "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/b.opf"/></rootfiles></container>',
    "O/b.opf": opf,
    ...files,
  });
const page = (text: string) => `<html><body><p>${text}</p></body></html>`;
const XHTML = 'media-type="application/xhtml+xml"';
const sheet = (rows: string, strings?: string) =>
  zip({
    "xl/workbook.xml": '<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relations(["r1", "worksheet", "worksheets/s.xml"], ["r2", "sharedStrings", "s.xml"]),
    "xl/worksheets/s.xml": `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
    ...strings !== undefined && { "xl/s.xml": strings },
  });

type Content = string | Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;

test.each<[string, string, Content, string, string[]?]>([
  [
    "a DOCX whose main part has another name",
    "a.docx",
    zip({
      "_rels/.rels": relations(["r", "officeDocument", "docs/main.xml"]),
      "docs/main.xml": word(paragraph("text")),
    }),
    "text",
  ],
  ["a DOCX with backslashes in its paths", "a.docx", zip({ "word\\document.xml": word(paragraph("text")) }), "text"],
  [
    "a DOCX with hidden words",
    "a.docx",
    zip({ "word/document.xml": word(paragraph("seen") + paragraph("unseen", "<w:vanish/>")) }),
    "seen\n\nunseen",
    ["hidden"],
  ],
  [
    "an XLSX with escaped characters",
    "a.xlsx",
    sheet('<row><c t="str"><v>a_x0009_b _x005F_x000D_</v></c></row>'),
    "# S, rows 1–1\n\na\tb _x000D_",
  ],
  [
    "an XLSX without its shared texts",
    "a.xlsx",
    sheet('<row><c><v>1</v></c><c t="s"><v>0</v></c></row>'),
    "# S, rows 1–1\n\n1",
    ["missing"],
  ],
  ["a flat ODT", "a.fodt", flat("text", "<text:p>Grüße</text:p>"), "Grüße"],
  [
    "a flat ODS",
    "a.fods",
    flat(
      "spreadsheet",
      '<table:table table:name="S"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table>',
    ),
    "# S, rows 1–1\n\na",
  ],
  [
    "an ODT template without its type",
    "a.ott",
    zip({
      "content.xml":
        "<office:document-content><office:body><office:text><text:p>text</text:p></office:text></office:body></office:document-content>",
    }),
    "text",
  ],
  [
    "an ODT with a date and hidden parts",
    "a.odt",
    zip({
      mimetype: "application/vnd.oasis.opendocument.text",
      "content.xml":
        '<office:document-content><office:body><office:text><text:p>on <text:date text:date-value="2026-01-02">2 January</text:date></text:p>' +
        '<text:section text:name="S" text:display="none"><text:p>unseen</text:p></text:section></office:text></office:body></office:document-content>',
    }),
    "on 2 January\n\nunseen",
    ["hidden"],
  ],
  ["an RTF with a byte order mark", "a.rtf", "\ufeff{\\rtf1 text}", "text"],
  [
    "an RTF with a symbol as a field",
    "a.rtf",
    String.raw`{\rtf1 a{\field{\*\fldinst SYMBOL 97 \\f "Symbol" \\s 10}{\fldrslt}}b}`,
    "aαb",
  ],
  [
    "an EPUB whose references have another case",
    "a.epub",
    book(
      `<package><manifest><item id="a" href="Text/A.xhtml" ${XHTML}/></manifest><spine><itemref idref="a"/></spine></package>`,
      {
        "O/text/a.xhtml": page("text"),
      },
    ),
    "text",
  ],
  [
    "an EPUB without a container",
    "a.epub",
    zip({
      mimetype: "application/epub+zip",
      "b.opf":
        '<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
      "a.xhtml": page("text"),
    }),
    "text",
  ],
  [
    "an EPUB with texts outside of its spine",
    "a.epub",
    book(
      `<package><manifest><item id="a" href="a.xhtml" ${XHTML}/><item id="b" href="b.xhtml" ${XHTML}/>` +
        `<item id="c" href="c.xhtml" ${XHTML} properties="nav"/></manifest><spine><itemref idref="a"/><itemref idref="z"/></spine></package>`,
      { "O/a.xhtml": page("text"), "O/b.xhtml": page("notes"), "O/c.xhtml": page("contents") },
    ),
    "text",
    ["embedded", "missing"],
  ],
  [
    "HTML with a filled-in form",
    "a.html",
    '<body><p>Name <input value="Ada"><input type="hidden" value="x"></p><textarea>A note</textarea>',
    "Name Ada\n\nA note",
  ],
  ["HTML with numbered items", "a.html", "<body><ol start=3><li>a<li value=7>b<li>c</ol>", "3. a\n\n7. b\n\n8. c"],
  [
    "a mail without an encoding",
    "a.eml",
    bytesOf(
      "Subject: Gr",
      [0xfc, 0xdf],
      "e\r\nFrom: a@b.example\r\n\r\nGr",
      [0xfc, 0xdf],
      "e aus M",
      [0xfc],
      "nchen\r\n",
    ),
    "Subject: Grüße\nFrom: a@b.example\n\nGrüße aus München",
    ["encoding"],
  ],
  [
    "a mail in an unknown encoding",
    "a.eml",
    bytesOf(
      "Subject: T\r\nContent-Type: text/plain; charset=x-unknown\r\n\r\n",
      [0x93, 0x8c, 0x8b, 0x9e, 0x82, 0xcc],
      "\r\n",
    ),
    "Subject: T\n\n東京の",
    ["encoding"],
  ],
  [
    "a mail with damaged characters",
    "a.eml",
    bytesOf("Subject: T\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na", [0xff], "b\r\n"),
    "Subject: T\n\na\ufffdb",
    ["undecodable"],
  ],
  [
    "a mail whose boundary is missing",
    "a.eml",
    "Subject: T\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=zzz\r\n\r\nThe text\r\n",
    "Subject: T\n\nThe text",
    ["missing"],
  ],
  [
    "a mail whose plain text only points to the other one",
    "a.eml",
    "Subject: T\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n" +
    `See the HTML\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>${"A long text. ".repeat(30).trim()}</p>\r\n--b--\r\n`,
    `Subject: T\n\n${"A long text. ".repeat(30).trim()}`,
  ],
  [
    "SRT without empty lines",
    "a.srt",
    "1\n00:00:01,000 --> 00:00:02,000\nHello\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n",
    "[0:00:01] Hello\n[0:00:03] World",
  ],
  [
    "SRT with short times",
    "a.srt",
    "1\n00:01 --> 00:02\nHello\n\n2\n0:00:03 --> 0:00:04\nWorld\n",
    "[0:00:01] Hello\n[0:00:03] World",
  ],
  [
    "text in UTF-8 with a damaged byte",
    "a.txt",
    bytesOf("Grüße und ", [0xfc], " Ende. Ein längerer Satz mit Wörtern."),
    "Grüße und \ufffd Ende. Ein längerer Satz mit Wörtern.",
    ["undecodable"],
  ],
  [
    "a notebook with a byte order mark",
    "a.ipynb",
    `\ufeff${JSON.stringify({ cells: [{ cell_type: "markdown", source: "text" }] })}`,
    "text",
  ],
  ["a table in UTF-16", "a.csv", new Uint8Array(Buffer.from("\ufeffa\tb\r\n1\t2\r\n", "utf16le")), "a\tb\n1\t2"],
])("reads %s", async (_, name, content, text, kinds = []) => {
  const { pages, ledger } = await extract(name, await content);
  expect(pages.join("\n\n")).toBe(text);
  expect(ledger.map(({ kind }) => kind).sort()).toEqual([...kinds].sort());
});
