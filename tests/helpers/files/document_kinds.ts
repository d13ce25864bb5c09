/** Writes documents of all kinds from paragraphs, each with something besides its text. */
import { Buffer } from "node:buffer";
import { encodeText } from "./encode_text.ts";
import { textEntry, zipOf } from "./extract_document.ts";
import { writeOle2 } from "./ole2_files.ts";

/** Bytes of a file, or a text in UTF-8. */
type FileContent = string | Uint8Array<ArrayBuffer>;

/** Writes a file with paragraphs. */
export type DocumentWriter = (texts: readonly string[]) => FileContent | Promise<FileContent>;

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const wrap = (tag: string, texts: readonly string[]) =>
  texts.map((text) => `<${tag}>${escape(text)}</${tag}>`).join("\n");
const base64 = (text: string) => new TextEncoder().encode(text).toBase64().replace(/.{76}/g, "$&\r\n");

const PACKAGE = "http://schemas.openxmlformats.org";
const relation = (id: string, kind: string, target: string) =>
  `<Relationship Id="${id}" Type="${PACKAGE}/officeDocument/2006/relationships/${kind}" Target="${target}"/>`;
const relations = (content: string) =>
  `<Relationships xmlns="${PACKAGE}/package/2006/relationships">${content}</Relationships>`;
const zipOfTexts = (files: Record<string, string>) =>
  zipOf(Object.entries(files).map(([path, text]) => textEntry(path, text)));

/** HTML with a script. */
export const writeHtml: DocumentWriter = (texts) =>
  `<!doctype html><meta charset="utf-8"><title>T</title>${wrap("p", texts)}<img src="a.png">`;

/** A DOCX whose words are split between runs. */
export const writeDocx: DocumentWriter = (texts) =>
  zipOfTexts({
    "_rels/.rels": relations(relation("r1", "officeDocument", "word/document.xml")),
    "word/document.xml": `<w:document xmlns:w="${PACKAGE}/wordprocessingml/2006/main"><w:body>${
      texts.map((text) =>
        `<w:p>${
          [text.slice(0, 7), text.slice(7)].map((run) => `<w:r><w:t xml:space="preserve">${escape(run)}</w:t></w:r>`)
            .join("")
        }</w:p>`
      ).join("")
    }<w:p><w:r><w:drawing><a:blip r:embed="i"/></w:drawing></w:r></w:p></w:body></w:document>`,
  });

/** A PPTX with a slide for every two paragraphs: a title and a text. The last one is hidden. */
export const writePptx: DocumentWriter = (texts) => {
  const shape = (kind: string, text: string) =>
    `<p:sp><p:nvSpPr><p:cNvPr id="2" name="S"/><p:cNvSpPr/><p:nvPr><p:ph type="${kind}"/></p:nvPr></p:nvSpPr><p:txBody><a:bodyPr/>` +
    `<a:p><a:r><a:rPr lang="en-US"/><a:t>${escape(text.slice(0, 9))}</a:t></a:r><a:r><a:t>${
      escape(text.slice(9))
    }</a:t></a:r></a:p></p:txBody></p:sp>`;
  const slides = Array.from({ length: Math.ceil(texts.length / 2) }, (_, n) => texts.slice(2 * n, 2 * n + 2));
  return zipOfTexts({
    "_rels/.rels": relations(relation("r1", "officeDocument", "ppt/presentation.xml")),
    "ppt/presentation.xml": `<p:presentation><p:sldIdLst>${
      slides.map((_, n) => `<p:sldId id="${256 + n}" r:id="s${n}"/>`).join("")
    }</p:sldIdLst></p:presentation>`,
    "ppt/_rels/presentation.xml.rels": relations(
      slides.map((_, n) => relation(`s${n}`, "slide", `slides/slide${n + 1}.xml`)).join(""),
    ),
    ...Object.fromEntries(slides.map(([title = "", text = ""], n) => [
      `ppt/slides/slide${n + 1}.xml`,
      `<p:sld show="${n === slides.length - 1 ? 0 : 1}"><p:cSld><p:spTree>${shape("title", title)}${
        text === "" ? "" : shape("body", text)
      }</p:spTree></p:cSld></p:sld>`,
    ])),
  });
};

/** An XLSX with a row for each paragraph: shared strings, inline strings and numbers on two sheets, one of them hidden. */
export const writeXlsx: DocumentWriter = (texts) => {
  const half = Math.ceil(texts.length / 2);
  const row = (n: number, cell: string) => `<row r="${n + 1}"><c r="A${n + 1}"><v>${n + 1}</v></c>${cell}</row>`;
  const sheet = (rows: string[]) => `<worksheet><sheetData>${rows.join("")}</sheetData></worksheet>`;
  return zipOfTexts({
    "_rels/.rels": relations(relation("r1", "officeDocument", "xl/workbook.xml")),
    "xl/workbook.xml":
      '<workbook><sheets><sheet name="Log" sheetId="1" r:id="a"/><sheet name="Book" sheetId="2" state="hidden" r:id="b"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relations(
      relation("a", "worksheet", "worksheets/sheet1.xml") + relation("b", "worksheet", "worksheets/sheet2.xml") +
        relation("c", "sharedStrings", "sharedStrings.xml"),
    ),
    "xl/sharedStrings.xml": `<sst>${
      texts.slice(0, half).map((text) =>
        `<si><r><t xml:space="preserve">${escape(text.slice(0, 5))}</t></r><r><t xml:space="preserve">${
          escape(text.slice(5))
        }</t></r></si>`
      ).join("")
    }</sst>`,
    "xl/worksheets/sheet1.xml": sheet(
      texts.slice(0, half).map((_, n) => row(n, `<c r="B${n + 1}" t="s"><v>${n}</v></c>`)),
    ),
    "xl/worksheets/sheet2.xml": sheet(
      texts.slice(half).map((text, n) => row(n, `<c r="B${n + 1}" t="inlineStr"><is><t>${escape(text)}</t></is></c>`)),
    ),
  });
};

const openDocument = (kind: string, body: string) =>
  zipOfTexts({
    mimetype: `application/vnd.oasis.opendocument.${kind}`,
    "content.xml":
      `<office:document-content><office:body><office:${kind}>${body}</office:${kind}></office:body></office:document-content>`,
  });
const spans = (text: string) =>
  `<text:p><text:span>${escape(text.slice(0, 6))}</text:span>${escape(text.slice(6))}</text:p>`;
const odfImage = '<draw:frame><draw:image xlink:href="Pictures/a.png"/></draw:frame>';

/** An ODT of headings, paragraphs and list items, with an image. */
export const writeOdt: DocumentWriter = (texts) =>
  openDocument(
    "text",
    texts.map((text, n) =>
      n % 4 === 0
        ? `<text:h text:outline-level="1">${escape(text)}</text:h>`
        : n % 4 === 3
        ? `<text:list><text:list-item>${spans(text)}</text:list-item></text:list>`
        : spans(text)
    ).join("") + `<text:p>${odfImage}</text:p>`,
  );

/** An ODS with a row for each paragraph, and a formula. */
export const writeOds: DocumentWriter = (texts) =>
  openDocument(
    "spreadsheet",
    `<table:table table:name="Log">${
      texts.map((text, n) =>
        `<table:table-row><table:table-cell office:value-type="float" office:value="${n}"/><table:table-cell>${
          spans(text)
        }</table:table-cell></table:table-row>`
      ).join("")
    }<table:table-row><table:table-cell table:formula="of:=1+1" office:value="2"><text:p>2</text:p></table:table-cell></table:table-row></table:table>`,
  );

/** An ODP with a slide for each paragraph and an image. */
export const writeOdp: DocumentWriter = (texts) =>
  openDocument(
    "presentation",
    texts.map((text, n) =>
      `<draw:page draw:name="page${n + 1}"><draw:frame><draw:text-box>${spans(text)}</draw:text-box></draw:frame>${
        n === 0 ? odfImage : ""
      }</draw:page>`
    ).join(""),
  );

/** An EPUB with a chapter for each paragraph. */
export const writeEpub: DocumentWriter = (texts) =>
  zipOfTexts({
    mimetype: "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
    "book.opf": `<package><manifest>${
      texts.map((_, n) => `<item id="i${n}" href="${n}.xhtml"/>`).join("")
    }</manifest><spine>${texts.map((_, n) => `<itemref idref="i${n}"/>`).join("")}</spine></package>`,
    ...Object.fromEntries(texts.map((text, n) => [
      `${n}.xhtml`,
      `<html xmlns="http://www.w3.org/1999/xhtml"><body>${wrap("p", [text])}<img src="a.png"/></body></html>`,
    ])),
  });

/** An RTF with an image. */
export const writeRtf: DocumentWriter = (texts) => {
  const encode = (text: string) =>
    Array.from({ length: text.length }, (_, n) => {
      const code = text.charCodeAt(n);
      return code < 128 ? text[n]!.replace(/[\\{}]/, "\\$&") : `\\u${code > 32767 ? code - 65536 : code}?`;
    }).join("");
  return `{\\rtf1\\ansi\\ansicpg1252 ${texts.map((text) => `${encode(text)}\\par `).join("")}{\\pict\\pngblip 00}}`;
};

/** A message of Outlook with an attachment. */
export const writeMsg: DocumentWriter = (texts) => {
  const wide = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"));
  return writeOle2({
    "__properties_version1.0": new Uint8Array(32),
    "__substg1.0_001A001F": wide("IPM.Note"),
    "__substg1.0_0037001F": wide("The light"),
    "__substg1.0_1000001F": wide(texts.join("\r\n\r\n")),
    "__attach_version1.0_#00000000": {
      "__properties_version1.0": new Uint8Array(8),
      "__substg1.0_3707001F": wide("plan.pdf"),
      "__substg1.0_37010102": new Uint8Array([1, 2, 3]),
    },
  });
};

/** A message with an attachment; its text is in Base64. */
export const writeEml: DocumentWriter = (texts) =>
  [
    ...[
      "From: a@b.example",
      "Subject: T",
      "MIME-Version: 1.0",
      'Content-Type: multipart/mixed; boundary="b"',
      "",
      "--b",
    ],
    ...["Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64", "", base64(texts.join("\n\n"))],
    ...[
      "--b",
      'Content-Type: application/pdf; name="plan.pdf"',
      'Content-Disposition: attachment; filename="plan.pdf"',
    ],
    ...["Content-Transfer-Encoding: base64", "", "AAAA", "--b--", ""],
  ].join("\r\n");

/** A saved page with an image. */
export const writeMhtml: DocumentWriter = (texts) =>
  [
    ...["MIME-Version: 1.0", 'Content-Type: multipart/related; boundary="b"; type="text/html"', "", "--b"],
    ...["Content-Type: text/html; charset=utf-8", "Content-Transfer-Encoding: base64"],
    ...["Content-Location: https://a.example/", "", base64(writeHtml(texts) as string), "--b--", ""],
  ].join("\r\n");

/** A notebook with an image as output. */
export const writeNotebook: DocumentWriter = (texts) =>
  JSON.stringify({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {},
    cells: [
      ...texts.map((text) => ({ cell_type: "markdown", metadata: {}, source: [text] })),
      {
        cell_type: "code",
        metadata: {},
        source: ["plot()"],
        outputs: [{ output_type: "display_data", data: { "image/png": "AAAA" } }],
      },
    ],
  });

const cues = (texts: readonly string[], point: string) =>
  texts.map((text, n) => {
    const second = `00:00:${String(n).padStart(2, "0")}${point}`;
    return `${n + 1}\n${second}000 --> ${second}900\n${text}\n`;
  }).join("\n");

/** Subtitles. */
export const writeSrt: DocumentWriter = (texts) => cues(texts, ",");
/** Subtitles in Windows-1252. */
export const writeOldSrt: DocumentWriter = (texts) => encodeText(cues(texts, ","), "windows-1252");
/** Subtitles of the web. */
export const writeVtt: DocumentWriter = (texts) => `WEBVTT\n\nSTYLE\n::cue { color: red }\n\n${cues(texts, ".")}`;

/** A table. */
export const writeCsv: DocumentWriter = (texts) =>
  texts.map((text, n) => `${n},"${text.replaceAll('"', '""')}"`).join("\r\n");
