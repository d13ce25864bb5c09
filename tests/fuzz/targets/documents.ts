/** Documents that the sandbox reads: Office files, OpenDocument, RTF, Outlook items, mail, notebooks and subtitles. */
import { Buffer } from "node:buffer";
import { strToU8, zipSync } from "fflate";
import { ExtractionFault, sniffDocument } from "../../../services/documents/extraction/extraction.ts";
import { extractDocument, READER_LIMITS } from "../../../services/documents/extraction/extractor.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { writeOle2 } from "../../helpers/files/ole2_files.ts";
import { mutateBytes, mutateText } from "../mutations.ts";
import type { Random } from "../random.ts";
import { claim, target } from "../target.ts";

interface DocumentInput {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

let sandbox: Sandbox;

const relations = (...pairs: [string, string][]) =>
  `<Relationships>${
    pairs.map(([kind, path], n) => `<Relationship Id="r${n + 1}" Type="http://x/${kind}" Target="${path}"/>`).join("")
  }</Relationships>`;

/** The parts of a small file of each kind that is a ZIP of XML. */
const ARCHIVES: Record<string, Record<string, string>> = {
  "a.xlsx": {
    "xl/workbook.xml": '<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relations(["worksheet", "s.xml"], ["styles", "t.xml"], ["sharedStrings", "u.xml"]),
    "xl/t.xml": '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm &quot;x&quot;0.0%;@"/></numFmts>' +
      '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    "xl/u.xml": "<sst><si><t>one</t><rPh><t>x</t></rPh></si><si><r><t>two</t></r></si></sst>",
    "xl/s.xml": '<worksheet><cols><col min="1" hidden="1"/></cols><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c>' +
      '<c r="XFD1" s="1"><f>1+1</f><v>2</v></c><c s="2"><v>46024.5</v></c></row><row r="900000" hidden="1"><c t="b"><v>1</v>' +
      "</c></row></sheetData><headerFooter><oddHeader>&amp;CText</oddHeader></headerFooter></worksheet>",
    "xl/_rels/s.xml.rels": relations(["comments", "c.xml"], ["drawing", "d.xml"]),
    "xl/c.xml":
      '<comments><authors><author>M</author></authors><comment ref="A1" authorId="0"><t>x</t></comment></comments>',
    "xl/d.xml": '<xdr:wsDr><xdr:cNvPr descr="d"/><xdr:txBody><a:p><a:t>box</a:t></a:p></xdr:txBody></xdr:wsDr>',
    "xl/_rels/d.xml.rels": relations(["chart", "h.xml"]),
    "xl/h.xml":
      "<c:chart><c:title><a:t>T</a:t></c:title><c:ser><c:val><c:pt idx='1'><c:v>2</c:v></c:pt></c:val></c:ser></c:chart>",
  },
  "a.pptx": {
    "ppt/presentation.xml": '<p:presentation><p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": relations(["slide", "s.xml"], ["commentAuthors", "w.xml"]),
    "ppt/w.xml": '<p:cmAuthor id="0" name="M"/>',
    "ppt/s.xml":
      '<p:sld show="0"><p:sp><p:ph type="title"/><p:txBody><a:p><a:pPr lvl="2"/><a:r><a:rPr baseline="30000"/><a:t>T' +
      "</a:t></a:r><a:br/><m:oMath><m:f><m:num><m:t>1</m:t></m:num><m:den/></m:f></m:oMath></a:p></p:txBody></p:sp><a:tbl><a:tr>" +
      "<a:tc><a:p><a:t>c</a:t></a:p></a:tc></a:tr></a:tbl></p:sld>",
    "ppt/_rels/s.xml.rels": relations(["notesSlide", "n.xml"], ["comments", "c.xml"], ["diagramData", "g.xml"]),
    "ppt/n.xml": "<p:notes><a:p><a:t>note</a:t></a:p></p:notes>",
    "ppt/c.xml": '<p:cm authorId="0"><p:text>x</p:text></p:cm>',
    "ppt/g.xml": "<dgm:t><a:p><a:t>item</a:t></a:p></dgm:t>",
  },
  "a.docx": {
    "word/document.xml":
      '<w:document><w:body><w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r>' +
      '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>a</w:t><w:footnoteReference w:id="2"/><w:sym w:font="Symbol" w:char="F061"/>' +
      "</w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:ins><w:r><w:t>c</w:t></w:r></w:ins></w:p></w:tc></w:tr></w:tbl></w:body></w:document>",
    "word/footnotes.xml":
      '<w:footnotes><w:footnote w:id="2"><w:p><w:r><w:t>n</w:t></w:r></w:p></w:footnote></w:footnotes>',
    "word/numbering.xml":
      '<w:numbering><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="1"><w:numFmt w:val="lowerRoman"/>' +
      '<w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
  },
  "a.odt": {
    mimetype: "application/vnd.oasis.opendocument.text",
    "styles.xml": "<office:master-styles><style:header><text:p>h</text:p></style:header></office:master-styles>",
    "content.xml":
      '<style:style style:name="s"><style:text-properties style:text-position="super 58%"/></style:style><office:body>' +
      '<office:text><text:h text:outline-level="1">H</text:h><text:p>a<text:s text:c="9"/><text:span text:style-name="s">2</text:span>' +
      "<text:note><text:note-body><text:p>n</text:p></text:note-body></text:note><office:annotation><dc:creator>M</dc:creator>" +
      "<text:p>c</text:p></office:annotation></text:p><text:list><text:list-item><text:p>i</text:p></text:list-item></text:list>" +
      '<draw:object xlink:href="./O"/></office:text></office:body>',
    "O/content.xml": "<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>",
  },
  "a.ods": {
    mimetype: "application/vnd.oasis.opendocument.spreadsheet",
    "content.xml":
      '<office:body><office:spreadsheet><table:table table:name="T"><table:table-row table:number-rows-repeated="3">' +
      '<table:table-cell office:value="1" table:formula="of:=1" table:number-columns-repeated="2"><text:p>1 €</text:p>' +
      "</table:table-cell></table:table-row></table:table></office:spreadsheet></office:body>",
  },
};

const TEXTS: Record<string, string> = {
  "a.rtf": String
    .raw`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset128 M;}{\f1\fcharset2 Symbol;}}{\info{\title T}}\pard\f0\'90\'7d` +
    String
      .raw`\u-10179?\u-8704?{\super 2}{\footnote n\par}\par\trowd\intbl a\cell b\cell\row\pard{\*\htmltag <p>}\htmlrtf x\htmlrtf0 ` +
    String
      .raw`{\pntext\f1\'b7\tab}{\pict\bin2 xx00}{\upr{a}{\*\ud b}}{\*\moMath{\mf{\mnum 1}{\mden 2}{\mchr x}}}{\*\annotation c}}`,
  "a.srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>one</i> {\\an8}two\n\n2\n00:00:03,000 --> 00:00:04,000\nthree\n",
  "a.vtt":
    "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 align:start\n<v Mia>one<00:01.500> two\n\n00:02.000 --> 00:03.000\none two\n",
  "a.eml": "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>a\n--b--\n",
  "a.ipynb": '{"cells":[{"cell_type":"code","source":["a"],"outputs":[{"output_type":"stream","text":["b"]}]}]}',
  "a.html":
    "<html><head><title>T</title></head><body><p>a<ruby>b<rt>c</rt></ruby><math><mi>x</mi></math><table><tr><td>d</table>",
};

const TOKENS = [
  ...[
    "<",
    "</",
    "/>",
    "&#0;",
    "&amp;",
    "]]>",
    "<![CDATA[",
    "<!DOCTYPE x [",
    '="',
    "__proto__",
    "constructor",
    "-1",
    "1e99",
  ],
  ...[
    "NaN",
    "99999999999",
    "{",
    "}",
    "\\",
    "\\u99999?",
    "\\'",
    "\\bin999999 ",
    "\\uc999",
    "{\\*",
    "-->",
    "\n\n",
    "\0",
    "\ud800",
  ],
];

const wide = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"));
const MESSAGE = writeOle2({
  "__properties_version1.0": new Uint8Array(32),
  "__substg1.0_0037001F": wide("Subject"),
  "__substg1.0_1000001F": wide("Body"),
  "__attach_version1.0_#00000000": {
    "__properties_version1.0": new Uint8Array(8),
    "__substg1.0_3707001F": wide("a.pdf"),
  },
});

const zipOf = (parts: Record<string, string>) =>
  zipSync(Object.fromEntries(Object.entries(parts).map(([path, text]) => [path, strToU8(text)]))) as Uint8Array<
    ArrayBuffer
  >;

function someDocument(random: Random): DocumentInput {
  const name = random.pick([...Object.keys(ARCHIVES), ...Object.keys(TEXTS), "a.msg"]);
  if (name === "a.msg") return { name, bytes: MESSAGE };
  const text = TEXTS[name];
  if (text !== undefined) return { name, bytes: new Uint8Array(strToU8(mutateText(random, text, TOKENS))) };
  const parts = { ...ARCHIVES[name]! };
  for (const path of random.list(1 + random.below(3), () => random.pick(Object.keys(parts)))) {
    if (random.chance(0.1)) delete parts[path];
    else if (parts[path] !== undefined) parts[path] = mutateText(random, parts[path], TOKENS);
  }
  return { name, bytes: zipOf(parts) };
}

export const DOCUMENTS = target<DocumentInput>({
  name: "documents",
  open() {
    sandbox = new Sandbox();
  },
  async close() {
    await sandbox.close();
  },
  generate(random) {
    const document = someDocument(random);
    const isDamaged = random.chance(document.name === "a.msg" ? 0.95 : 0.15);
    return isDamaged ? { ...document, bytes: mutateBytes(random, document.bytes) } : document;
  },
  async run({ name, bytes }) {
    const contentType = sniffDocument(bytes.subarray(0, 4096), name);
    if (contentType === undefined) return;
    let count = 0;
    try {
      const { ledger } = await extractDocument(sandbox, {
        ...{ name, contentType, sizeBytes: bytes.length, content: ReadableStream.from([bytes]) },
        signal: new AbortController().signal,
        begin: () => {},
        store: (pages) => {
          for (const { n, text } of pages) {
            claim(n === ++count, () => `Page ${count} has the number ${n}`);
            claim(text.isWellFormed(), () => "A page has half of a character");
          }
          return Promise.resolve();
        },
      }, { ...READER_LIMITS, timeMs: 20_000 });
      claim(ledger.every(({ count }) => count > 0), () => "An entry of the ledger counts nothing");
    } catch (error) {
      if (!(error instanceof ExtractionFault)) throw error;
      claim(error.code !== "timeout", () => `${name} takes longer than 20 s`);
      // A defect of a reader looks like a damaged file. Those of the library for MSG do too.
      const isDefect = /undefined|null|is not (a function|iterable)|before initialization/.test(error.message);
      claim(!isDefect || name === "a.msg", () => `${name}: ${error.message}`);
    }
  },
  cases: {
    "a sheet whose cells are all repeated": () => ({
      name: "a.ods",
      bytes: zipOf({
        ...ARCHIVES["a.ods"],
        "content.xml": ARCHIVES["a.ods"]!["content.xml"]!.replace(/repeated="\d"/g, 'repeated="999999999"'),
      }),
    }),
    "RTF of 300,000 groups": () => ({ name: "a.rtf", bytes: strToU8(`{\\rtf1 ${"{a}".repeat(300_000)}}`) as never }),
    "RTF of 300,000 open groups": () => ({ name: "a.rtf", bytes: strToU8(`{\\rtf1 ${"{".repeat(300_000)}`) as never }),
    "subtitles of 200,000 lines": () => ({
      name: "a.vtt",
      bytes: strToU8("00:01.000 --> 00:02.000\n<v a>b\n\n".repeat(70_000)) as never,
    }),
    "a subtitle of open tags": () => ({
      name: "a.srt",
      bytes: strToU8(`00:00:01,000 --> 00:00:02,000\n${"<v ".repeat(200_000)}`) as never,
    }),
    "a format of 100,000 quotes": () => ({
      name: "a.xlsx",
      bytes: zipOf({
        ...ARCHIVES["a.xlsx"],
        "xl/t.xml": `<numFmt numFmtId="164" formatCode="${"[".repeat(100_000)}"/>`,
      }),
    }),
  },
});
