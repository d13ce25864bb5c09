/** Addresses of links stand behind their text, in every kind of file that a person writes. */
import { expect, test } from "vitest";
import { writePdf } from "../../../helpers/files/document_files.ts";
import { openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

const extract = openExtraction();

const relations = (...addresses: string[]) =>
  `<Relationships>${
    addresses.map((address, n) =>
      `<Relationship Id="r${n + 1}" Type="x/hyperlink" Target="${address}" TargetMode="External"/>`
    ).join("")
  }</Relationships>`;
const html = (body: string) => `<!doctype html><meta charset="utf-8"><body>${body}`;
const docx = (body: string, more: Record<string, string> = {}) =>
  zipOf(
    Object.entries({
      "word/document.xml": `<w:document><w:body>${body}</w:body></w:document>`,
      "word/_rels/document.xml.rels": relations("https://shop.example/a?b=1&amp;c=2", "#top"),
      ...more,
    }).map(([path, text]) => textEntry(path, text)),
  );
const run = (text: string) => `<w:r><w:t xml:space="preserve">${text}</w:t></w:r>`;
const mark = (type: string) => `<w:r><w:fldChar w:fldCharType="${type}"/></w:r>`;
const odt = (kind: string, content: string) =>
  zipOf([
    textEntry("mimetype", `application/vnd.oasis.opendocument.${kind}`),
    textEntry(
      "content.xml",
      `<office:document-content><office:body>${content}</office:body></office:document-content>`,
    ),
  ]);
const rtf = (body: string) => String.raw`{\rtf1\ansi\ansicpg1252 ${body}\par}`;

const LONG = `https://a.example/?id=${"x".repeat(400)}`;

test.each<[string, string, string | Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>, string, number?]>([
  [
    "HTML",
    "a.html",
    html('<p>See <a href="https://shop.example/a">the shop</a>.'),
    "See the shop (https://shop.example/a).",
  ],
  [
    "HTML whose text is the address",
    "a.html",
    html('<a href="https://www.shop.example/">shop.example</a>'),
    "shop.example",
  ],
  ["HTML inside the file", "a.html", html('<a href="#top">up</a> <a href="b.html">next</a>'), "up next"],
  ["HTML with blocks in a link", "a.html", html('<a href="tel:+49"><h3>Call</h3></a>'), "Call (tel:+49)"],
  [
    "HTML with a link left open",
    "a.html",
    html('<p>a <a href="mailto:a@b.example">write'),
    "a write (mailto:a@b.example)",
  ],
  ["an image without text in a link", "a.html", html(`x<a href="https://a.example"><img src=a></a>`), "x", 1],
  ["a long address", "a.html", html(`<a href="${LONG}">news</a>`), "news", 1],
  [
    "DOCX",
    "a.docx",
    docx(`<w:p>${run("See ")}<w:hyperlink r:id="r1">${run("the")}${run(" shop")}</w:hyperlink>${run(".")}</w:p>`),
    "See the shop (https://shop.example/a?b=1&c=2).",
  ],
  [
    "DOCX with a field",
    "a.docx",
    docx(
      `<w:p>${
        mark("begin")
      }<w:r><w:instrText> HYPERLINK "https://</w:instrText></w:r><w:r><w:instrText>b.example" \\o "tip" </w:instrText></w:r>` +
        `${mark("separate")}${run("field")}${mark("end")}${
          run(" and ")
        }<w:fldSimple w:instr='HYPERLINK "https://c.example"'>${run("simple")}</w:fldSimple>${
          mark("begin")
        }<w:r><w:instrText>PAGE</w:instrText></w:r>${mark("separate")}${run(" 3")}${mark("end")}</w:p>`,
    ),
    "field (https://b.example) and simple (https://c.example) 3",
  ],
  [
    "a note of a DOCX, whose links are its own",
    "a.docx",
    docx(`<w:p>${run("a")}<w:r><w:footnoteReference w:id="2"/></w:r></w:p>`, {
      "word/footnotes.xml": `<w:footnotes><w:footnote w:id="2"><w:p><w:hyperlink r:id="r1">${
        run("source")
      }</w:hyperlink></w:p></w:footnote></w:footnotes>`,
      "word/_rels/footnotes.xml.rels": relations("https://note.example"),
    }),
    "a[1]\n\n[1] source (https://note.example)",
  ],
  [
    "ODT",
    "a.odt",
    odt(
      "text",
      '<office:text><text:p>See <text:a xlink:href="https://a.example"><text:span>it</text:span></text:a>.</text:p></office:text>',
    ),
    "See it (https://a.example).",
  ],
  [
    "ODS",
    "a.ods",
    odt(
      "spreadsheet",
      '<office:spreadsheet><table:table table:name="S"><table:table-row><table:table-cell><text:p><text:a xlink:href="https://a.example">cell</text:a></text:p></table:table-cell>' +
        '<table:table-cell table:formula="of:=HYPERLINK(&quot;https://b.example&quot;;&quot;b&quot;)"><text:p>b</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>',
    ),
    "# S, rows 1–1\n\ncell (https://a.example) | b (https://b.example)",
  ],
  [
    "PPTX",
    "a.pptx",
    zipOf([
      textEntry(
        "ppt/presentation.xml",
        '<p:presentation><p:sldIdLst><p:sldId r:id="a"/></p:sldIdLst></p:presentation>',
      ),
      textEntry(
        "ppt/_rels/presentation.xml.rels",
        '<Relationships><Relationship Id="a" Type="x/slide" Target="slides/s.xml"/></Relationships>',
      ),
      textEntry("ppt/slides/_rels/s.xml.rels", relations("https://a.example", "https://shape.example")),
      textEntry(
        "ppt/slides/s.xml",
        '<p:sld><p:sp><p:cNvPr id="2"><a:hlinkClick r:id="r2"/></p:cNvPr><p:txBody><a:p><a:r><a:t>See </a:t></a:r>' +
          '<a:r><a:rPr><a:hlinkClick r:id="r1"/></a:rPr><a:t>the </a:t></a:r><a:r><a:rPr><a:hlinkClick r:id="r1"/></a:rPr><a:t>shop</a:t></a:r>' +
          "<a:r><a:t>.</a:t></a:r></a:p></p:txBody></p:sp></p:sld>",
      ),
    ]),
    "# Slide 1\n\nSee the shop (https://a.example).",
    1,
  ],
  [
    "XLSX",
    "a.xlsx",
    zipOf([
      textEntry("xl/workbook.xml", '<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'),
      textEntry(
        "xl/_rels/workbook.xml.rels",
        '<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/s.xml"/></Relationships>',
      ),
      textEntry("xl/worksheets/_rels/s.xml.rels", relations("https://a.example", "https://b.example/")),
      textEntry(
        "xl/worksheets/s.xml",
        '<worksheet><sheetData><row r="1"><c r="A1" t="str"><v>shop</v></c><c r="B1" t="str"><v>https://b.example</v></c>' +
          '<c r="C1" t="str"><f>HYPERLINK("https://c.example","c")</f><v>c</v></c></row></sheetData>' +
          '<hyperlinks><hyperlink ref="A1" r:id="r1"/><hyperlink ref="B1" r:id="r2"/><hyperlink ref="C1" location="S!A1"/></hyperlinks></worksheet>',
      ),
    ]),
    "# S, rows 1–1\n\nshop | https://b.example | c (https://c.example)\n\n[A1] https://a.example",
  ],
  [
    "RTF",
    "a.rtf",
    rtf(String.raw`See {\field{\*\fldinst{HYPERLINK "https://a.example"}}{\fldrslt{\b the} shop}}.`),
    "See the shop (https://a.example).",
  ],
  [
    "RTF with a field in a field",
    "a.rtf",
    rtf(
      String
        .raw`{\field{\*\fldinst TOC \\h}{\fldrslt {\field{\*\fldinst {HYPERLINK \\l "top"}}{\fldrslt One {\field{\*\fldinst PAGEREF x}{\fldrslt 1}}}}\par {\field{\*\fldinst HYPERLINK mailto:a@b.example}{\fldrslt write}}}}`,
    ),
    "One 1\n\nwrite (mailto:a@b.example)",
  ],
  [
    "mail",
    "a.eml",
    `Subject: T\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p><a href="https://a.example">Join</a></p>`,
    "Subject: T\n\nJoin (https://a.example)",
  ],
  [
    "a saved page, whose links are counted",
    "a.mhtml",
    `MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="b"; type="text/html"\r\n\r\n--b\r\n` +
    `Content-Type: text/html; charset=utf-8\r\n\r\n<a href="https://a.example">Home</a> <a href="https://b.example">News</a>\r\n--b--\r\n`,
    "Home News",
    2,
  ],
  [
    "PDF, whose links are counted",
    "a.pdf",
    writePdf(["See https://b.example/ and us"], {
      change: (objects) => ({
        ...objects,
        4: objects[4]!.replace(">> >> >>", ">> >> /Annots [6 0 R 7 0 R] >>"),
        6: "<< /Type /Annot /Subtype /Link /Rect [20 20 60 40] /A << /S /URI /URI (https://a.example/) >> >>",
        7: "<< /Type /Annot /Subtype /Link /Rect [60 20 200 40] /A << /S /URI /URI (https://b.example/) >> >>",
      }),
    }),
    "See https://b.example/ and us",
    1,
  ],
])("reads the links of %s", async (_, name, bytes, text, counted = 0) => {
  const { pages, ledger } = await extract(name, await bytes);
  expect(pages.join("\n\n")).toBe(text);
  expect(ledger.find(({ kind }) => kind === "link")?.count ?? 0).toBe(counted);
});
