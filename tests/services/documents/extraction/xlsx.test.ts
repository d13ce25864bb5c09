import { expect, test } from "vitest";
import { codeOf, openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

const FIXTURES = new URL("../../../fixtures/documents/", import.meta.url);
const extract = openExtraction();

test("reads the sheets of another program's workbook as tables, each section with column names and rows", async () => {
  const { pages, ledger } = await extract("budget.xlsx", await Deno.readFile(new URL("budget.xlsx", FIXTURES)));
  expect(pages.length).toBeGreaterThan(2);
  expect(pages[0]).toContain(
    "# Budget, rows 1–78\n\nItem | Cost | Share | Due\nLamp 1 | 1001 € | 0.1 % | 2026-01-02 |  | =SUM(B2:B121)\n" +
      "Lamp 2 | 1002 € | 0.2 % | 2026-01-03",
  );
  expect(pages[1]).toMatch(/^# Budget, rows 79–121\n\nItem \| Cost \| Share \| Due\nLamp 78 \| 1078 €/);
  const all = pages.join("\n");
  for (let n = 1; n <= 120; n++) expect(all).toContain(`Lamp ${n} | ${1000 + n} €`);
  expect(all).toContain("[B2] Mia: Ask the seller");
  expect(all).toContain("Chart: Costs\n");
  expect(pages.at(-1)).toBe(
    "# Notes (hidden), rows 1–3\n\nMeeting | 2026-03-04 05:06:07 | 13:45:00 | TRUE | 30:05:00\nAZ: far right",
  );
  expect(ledger).toMatchObject([
    { kind: "formula", count: 1, examples: ["Budget, row 2"] },
    { kind: "hidden", count: 2, examples: ["Budget, row 5", "Notes"] },
  ]);
});

const sheetOf = (rows: string, { more = [], styles = "", relations = "", sheet = "" }: {
  more?: Parameters<typeof zipOf>[0] extends Iterable<infer Entry> ? Entry[] : never;
  styles?: string;
  relations?: string;
  sheet?: string;
} = {}) =>
  zipOf([
    textEntry("xl/workbook.xml", '<workbook><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'),
    textEntry(
      "xl/_rels/workbook.xml.rels",
      '<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/s.xml"/>' +
        '<Relationship Id="r2" Type="x/styles" Target="styles.xml"/>' +
        '<Relationship Id="r3" Type="x/sharedStrings" Target="strings.xml"/></Relationships>',
    ),
    textEntry("xl/styles.xml", `<styleSheet>${styles}</styleSheet>`),
    textEntry(
      "xl/strings.xml",
      "<sst><si><t>東京</t><rPh><t>トウキョウ</t></rPh></si><si><r><t>one</t></r><r><t> two</t></r></si></sst>",
    ),
    textEntry("xl/worksheets/s.xml", `<worksheet><sheetData>${rows}</sheetData>${sheet}</worksheet>`),
    textEntry("xl/worksheets/_rels/s.xml.rels", `<Relationships>${relations}</Relationships>`),
    ...more,
  ]);

test.each([
  ['<c t="s"><v>0</v></c><c t="s"><v>1</v></c>', "東京 | one two"],
  ['<c t="inlineStr"><is><t>a</t></is></c><c t="str"><f>A1</f><v>b</v></c><c t="e"><v>#N/A</v></c>', "a | b | #N/A"],
  ['<c r="C1"><v>0.30000000000000004</v></c>', " |  | 0.3"],
  ['<c t="d"><v>2026-01-02</v></c><c><v>1e3</v></c>', "2026-01-02 | 1000"],
  ["<c><f>1+1</f><v>2</v></c><c><f>NOW()</f></c><c><f/></c>", "2 | =NOW()"],
])("reads the cells %s", async (cells, text) => {
  const { pages } = await extract("a.xlsx", await sheetOf(`<row>${cells}</row>`));
  expect(pages).toEqual([`# S, rows 1–1\n\n${text}`]);
});

test.each([
  ["0.00%", "0.125", "12.5 %"],
  ['#,##0.00\\ "kg"', "3", "3 kg"],
  ["[$€-407]\\ #,##0", "3", "€ 3"],
  ['"No. "0', "7", "No. 7"],
  ["_-* #,##0.00_-;[Red]-0", "3.5", "3.5"],
  ["0.00E+00", "1500", "1500"],
  ["General", "5", "5"],
  ["yyyy\\-mm\\-dd", "46024", "2026-01-02"],
  ["[$-409]d/mmm/yy h:mm AM/PM", "46024.5", "2026-01-02 12:00:00"],
  ["mm:ss", "0.5", "12:00:00"],
  ["mmm yy", "46024", "2026-01-02"],
  ["[h]:mm:ss", "1.25", "30:00:00"],
  ['"dum yes"0', "4", "dum yes4"],
  ["yyyy", "59", "1900-02-28"],
])("reads a number with the format %s", async (code, value, text) => {
  const escaped = code.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const styles = `<numFmts><numFmt numFmtId="200" formatCode="${escaped}"/></numFmts>` +
    '<cellStyleXfs><xf numFmtId="0"/><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="200"/></cellXfs>';
  const { pages } = await extract("a.xlsx", await sheetOf(`<row><c s="1"><v>${value}</v></c></row>`, { styles }));
  expect(pages).toEqual([`# S, rows 1–1\n\n${text}`]);
});

test("the ledger of a workbook names macros, embedded files, missing sheets and parts of unknown kinds", async () => {
  const relation = (kind: string, n: number) =>
    `<Relationship Id="q${n}" Type="x/${kind}" Target="../${kind}${n}.bin"/>`;
  const file = await sheetOf("<row><c><f>1</f><v>1</v></c></row>", {
    relations: ["oleObject", "hologram", "printerSettings", "threadedComment", "comments"].map(relation).join(""),
    sheet:
      "<headerFooter><oddHeader>&amp;C&amp;&quot;Arial,Bold&quot;&amp;12Confidential &amp;P</oddHeader></headerFooter>",
    more: [
      textEntry("xl/vbaProject.bin", "x"),
      textEntry(
        "xl/threadedComment3.bin",
        '<x><threadedComment ref="A1" personId="p"><text>New</text></threadedComment></x>',
      ),
      textEntry(
        "xl/comments4.bin",
        '<comments><commentList><comment ref="A1"><t>Old copy</t></comment></commentList></comments>',
      ),
    ],
  });
  const { pages, ledger } = await extract("a.xlsm", file);
  expect(pages).toEqual(["# S, rows 1–1\n\n1\n\nConfidential\n\n[A1] New"]);
  expect(ledger.map(({ kind, count, examples }) => [kind, count, examples])).toEqual([
    ["script", 1, ["xl/vbaProject.bin"]],
    ["stored_result", 1, undefined],
    ["embedded", 1, ["xl/oleObject0.bin"]],
    ["unknown", 1, ["S: hologram"]],
  ]);
});

test("a sheet of 200,000 cells is read, and one that unpacks to too much is refused", async () => {
  const rows = Array.from({ length: 4_000 }, (_, n) => `<row>${`<c><v>${n}</v></c>`.repeat(50)}</row>`).join("");
  const { pages } = await extract("a.xlsx", await sheetOf(rows));
  expect(pages.join("\n")).toContain("3999 | 3999");
  expect(await codeOf(extract("a.xlsx", await sheetOf(rows), { inflatedBytes: 256 * 1024 }))).toBe("too_large");
  expect(await codeOf(extract("a.xlsx", await sheetOf(rows), { chars: 100_000 }))).toBe("too_large");
});

const OLE2 = new Uint8Array([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ...new Uint8Array(600)]);

test.each(["a.xlsx", "a.pptx", "a.docx"])("says that %s is protected by a password", async (name) => {
  expect(await codeOf(extract(name, OLE2))).toBe("encrypted");
});
