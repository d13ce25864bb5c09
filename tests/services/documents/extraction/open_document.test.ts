import { expect, test } from "vitest";
import { codeOf, openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

const FIXTURES = new URL("../../../fixtures/documents/", import.meta.url);
const extract = openExtraction();

test("reads an ODT and an ODS of another program", async () => {
  const text = await extract("lighthouse.odt", await Deno.readFile(new URL("lighthouse.odt", FIXTURES)));
  expect(text.pages).toEqual([
    "The lighthouse\n\nThere are 10^6 lamps[1]\n\n- one\n\n- two\n\nShip | Fee\n\nHeron | 375\n\n[1] Counted in May",
  ]);
  const sheet = await extract("fees.ods", await Deno.readFile(new URL("fees.ods", FIXTURES)));
  expect(sheet.pages).toEqual(["# Fees, rows 1–1000003\n\nShip | Fee\nHeron | 375\n3 € | =[.A1]*2"]);
  expect(sheet.ledger).toMatchObject([{ kind: "stored_result", count: 1 }, { kind: "formula", count: 1 }]);
});

test("names repeats of cells and rows that are left out", async () => {
  const row = (repeated: number, cell: string) =>
    `<table:table-row table:number-rows-repeated="${repeated}">${cell}</table:table-row>`;
  const content = '<office:body><office:spreadsheet><table:table table:name="S">' +
    row(1500, "<table:table-cell><text:p>x</text:p></table:table-cell>") +
    row(1, '<table:table-cell table:number-columns-repeated="1200"><text:p>y</text:p></table:table-cell>') +
    row(1_000_000, '<table:table-cell table:number-columns-repeated="16384"/>') +
    "</table:table></office:spreadsheet></office:body>";
  const { pages, ledger } = await extract("a.ods", await openDocument("spreadsheet", content));
  expect(pages.join("\n").split("\n").filter((line) => line === "x").length).toBeGreaterThanOrEqual(1000);
  expect(pages.join("").split("y").length - 1).toBe(1000);
  expect(ledger).toMatchObject([{ kind: "repeated", count: 700, examples: ["S, row 1", "S, row 1501"] }]);
});

const openDocument = (kind: string, content: string, more: Record<string, string> = {}) =>
  zipOf([
    textEntry("mimetype", `application/vnd.oasis.opendocument.${kind}`),
    ...Object.entries({ "content.xml": `<office:document-content>${content}</office:document-content>`, ...more })
      .map(([path, text]) => textEntry(path, text)),
  ]);

test("reads comments, numbered lists, ruby, equations, text boxes, headers, and counts tracked changes", async () => {
  const { pages, title, ledger } = await extract(
    "a.odt",
    await openDocument(
      "text",
      '<office:automatic-styles><text:list-style style:name="L"><text:list-level-style-number text:level="1" ' +
        'style:num-format="1" style:num-suffix=")" text:start-value="3"/></text:list-style></office:automatic-styles>' +
        "<office:body><office:text><text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p>" +
        "</text:deletion></text:changed-region></text:tracked-changes>" +
        '<text:h text:outline-level="2">Head</text:h><text:p>a<text:s text:c="3"/>b <text:tab/>c<text:line-break/>d</text:p>' +
        "<text:p>x<office:annotation><dc:creator>Mia</dc:creator><dc:date>2026-01-01</dc:date><text:p>Really?</text:p>" +
        "</office:annotation> y <text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text>" +
        '</text:ruby></text:p><text:list text:style-name="L"><text:list-item><text:p>first</text:p></text:list-item>' +
        "<text:list-item><text:p>second</text:p><text:p>more</text:p></text:list-item></text:list>" +
        "<text:p>Before<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame> after</text:p>" +
        '<text:p><draw:frame><draw:object xlink:href="./Object 1"/><draw:image xlink:href="./r"/></draw:frame></text:p>' +
        '<text:p><draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:desc>A red boat</svg:desc></draw:frame></text:p>' +
        '<text:p><draw:frame><draw:object-ole xlink:href="./Object 2"/></draw:frame></text:p>' +
        "</office:text></office:body>",
      {
        "styles.xml":
          "<office:document-styles><style:master-page><style:header><text:p>Confidential</text:p></style:header>" +
          "<style:footer><text:p>3</text:p></style:footer></style:master-page></office:document-styles>",
        "meta.xml": "<office:meta><dc:title>The title</dc:title></office:meta>",
        "Object 1/content.xml": "<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>",
        "Basic/Standard/Module1.xml": "<x/>",
      },
    ),
  );
  expect(title).toBe("The title");
  expect(pages.join("\n\n").split("\n\n")).toEqual([
    ...["Confidential", "Head", "a   b \tc\nd", "x[c1] y 漢字(かんじ)", "3) first", "4) second", "more", "In a box"],
    ...["Before after", "A red boat", "[c1] Mia: Really?", "(1)/(2)"],
  ]);
  expect(ledger.map(({ kind, count }) => [kind, count])).toEqual([
    ...[["script", 1], ["tracked_changes", 1], ["image", 1], ["embedded", 1]],
  ]);
});

const listStyle = (name: string, levels: string[]) =>
  `<text:list-style style:name="${name}">${
    levels.map((attributes, n) =>
      `<text:list-level-style-number text:level="${n + 1}" style:num-suffix="." ${attributes}/>`
    ).join("")
  }</text:list-style>`;
const item = (content: string, attributes = "") => `<text:list-item ${attributes}>${content}</text:list-item>`;
const list = (items: string, attributes = "") => `<text:list text:style-name="L" ${attributes}>${items}</text:list>`;
const p = (text: string) => `<text:p>${text}</text:p>`;

test.each<[string, string, string[]]>([
  [
    "that go on after a paragraph",
    `${list(item(p("a")) + item(p("b")))}${p("x")}${list(item(p("c")), 'text:continue-numbering="true"')}${
      list(item(p("d")))
    }`,
    ["1. a", "2. b", "x", "3. c", "1. d"],
  ],
  [
    "that go on with an earlier one by its ID",
    `${list(item(p("a")), 'xml:id="one"')}${list(item(p("b")) + item(p("c")))}${
      list(item(p("d")), 'xml:id="two" text:continue-list="one"')
    }${list(item(p("e")), 'text:continue-list="two"')}`,
    ["1. a", "1. b", "2. c", "2. d", "3. e"],
  ],
  [
    "with levels and formats",
    list(
      item(p("a") + list(item(p("b")) + item(p("c") + list(item(p("d")))))) + item(p("e") + list(item(p("f")))),
    ),
    ["1. a", "1.a. b", "1.b. c", "II. d", "2. e", "2.a. f"],
  ],
  [
    "whose lower level goes on",
    `${list(item(p("a") + list(item(p("b")))))}${p("x")}${
      list(item(list(item(p("c")), 'text:continue-numbering="true"')) + item(p("d")), 'text:continue-numbering="true"')
    }`,
    ["1. a", "1.a. b", "x", "1.b. c", "2. d"],
  ],
  [
    "with numbers of their own, a header, and items without text",
    list(
      `<text:list-header>${p("h")}</text:list-header>${item(p("a"), 'text:start-value="7"')}${item(p(""))}${
        item(p("b"))
      }`,
    ),
    ["h", "7. a", "9. b"],
  ],
])("numbers lists %s as they're written", async (_, content, lines) => {
  const { pages } = await extract(
    "a.odt",
    await openDocument(
      "text",
      `<office:automatic-styles>${
        listStyle("L", [
          'style:num-format="1"',
          'style:num-format="a" text:display-levels="2"',
          'style:num-format="I" text:start-value="2"',
        ])
      }</office:automatic-styles><office:body><office:text>${content}</office:text></office:body>`,
    ),
  );
  expect(pages.join("\n\n").split("\n\n")).toEqual(lines);
});

test("reads the slides of an ODP with their notes, and hidden tables of an ODS", async () => {
  const slides = await extract(
    "a.odp",
    await openDocument(
      "presentation",
      "<office:body><office:presentation><draw:page draw:name='page1'><draw:frame><draw:text-box><text:p>Title</text:p>" +
        "</draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Say hello</text:p>" +
        "</draw:text-box></draw:frame></presentation:notes></draw:page><draw:page draw:name='Costs'><text:p>Two</text:p>" +
        "</draw:page></office:presentation></office:body>",
    ),
  );
  expect(slides.pages).toEqual(["# Slide 1\n\nTitle\n\nNotes: Say hello", "# Slide 2: Costs\n\nTwo"]);
  const sheets = await extract(
    "a.ods",
    await openDocument(
      "spreadsheet",
      '<office:automatic-styles><style:style style:name="t"><style:table-properties table:display="false"/></style:style>' +
        '</office:automatic-styles><office:body><office:spreadsheet><table:table table:name="S" table:style-name="t">' +
        '<table:table-row><table:table-cell office:value="0.5"><text:p>50 %</text:p><office:annotation><text:p>Why?</text:p>' +
        '</office:annotation></table:table-cell><table:table-cell table:number-columns-repeated="2" office:value="3"/>' +
        "</table:table-row></table:table></office:spreadsheet></office:body>",
    ),
  );
  expect(sheets.pages).toEqual(["# S (hidden), rows 1–1\n\n50 % | 3 | 3\n\n[row 1] Why?"]);
  expect(sheets.ledger).toMatchObject([{ kind: "hidden", examples: ["S"] }]);
});

test("says that an OpenDocument file is protected by a password, and stops at what unpacks to too much", async () => {
  const body = "<office:body><office:text><text:p>x</text:p></office:text></office:body>";
  const manifest =
    "<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
  expect(await codeOf(extract("a.odt", await openDocument("text", body, { "META-INF/manifest.xml": manifest }))))
    .toBe("encrypted");
  const large = await openDocument("text", `<office:body>${"<text:p>word</text:p>".repeat(100_000)}</office:body>`);
  expect(await codeOf(extract("a.odt", large, { inflatedBytes: 1_000_000 }))).toBe("too_large");
  expect(await codeOf(extract("a.odt", await zipOf([textEntry("x", "x")])))).toBe("unsupported");
});
