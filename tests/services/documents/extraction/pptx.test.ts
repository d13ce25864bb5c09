import { expect, test } from "vitest";
import { codeOf, openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

const FIXTURES = new URL("../../../fixtures/documents/", import.meta.url);
const extract = openExtraction();

test("reads the slides of another program with tables, charts and speaker notes", async () => {
  const { pages, ledger } = await extract("harbor.pptx", await Deno.readFile(new URL("harbor.pptx", FIXTURES)));
  expect(pages).toEqual([
    "# Slide 1: The harbor plan\n\nFirst point\n\n- Second level\n\nNotes: Say hello to the mayor",
    "# Slide 2 (hidden): Numbers\n\nShip | Fee\n\nHeron | 375\n\n10^6\n\nChart\n | East | West\n2026 | 1.5 | 2.5",
  ]);
  expect(ledger).toMatchObject([{ kind: "hidden", count: 1, examples: ["slide 2"] }]);
});

test("reads comments, equations and diagrams of slides in their order, and names what has no text", async () => {
  const relation = (id: string, kind: string, target: string) =>
    `<Relationship Id="${id}" Type="http://x/${kind}" Target="${target}"/>`;
  const shape = (paragraphs: string, kind = "") =>
    `<p:sp><p:nvSpPr><p:nvPr>${
      kind && `<p:ph type="${kind}"/>`
    }</p:nvPr></p:nvSpPr><p:txBody>${paragraphs}</p:txBody></p:sp>`;
  const text = (text: string) => `<a:p><a:r><a:t>${text}</a:t></a:r></a:p>`;
  const { pages, ledger } = await extract(
    "a.pptx",
    await zipOf([
      textEntry(
        "ppt/presentation.xml",
        '<p:presentation><p:sldIdLst><p:sldId id="256" r:id="b"/><p:sldId id="257" r:id="a"/><p:sldId id="258" r:id="z"/>' +
          "</p:sldIdLst></p:presentation>",
      ),
      textEntry(
        "ppt/_rels/presentation.xml.rels",
        `<Relationships>${relation("a", "slide", "slides/slide1.xml")}${relation("b", "slide", "slides/slide2.xml")}${
          relation("c", "commentAuthors", "commentAuthors.xml")
        }</Relationships>`,
      ),
      textEntry("ppt/commentAuthors.xml", '<p:cmAuthorLst><p:cmAuthor id="0" name="Mia"/></p:cmAuthorLst>'),
      textEntry("ppt/slides/slide1.xml", `<p:sld>${shape(text("Last"))}</p:sld>`),
      textEntry(
        "ppt/slides/slide2.xml",
        `<p:sld>${shape(text("7"), "sldNum")}${shape(text("Top"), "ctrTitle")}${
          shape(
            "<a:p><a:r><a:t>Half is </a:t></a:r><mc:AlternateContent><mc:Choice><a14:m><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r>" +
              "</m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath></a14:m></mc:Choice><mc:Fallback><a:t>picture</a:t>" +
              "</mc:Fallback></mc:AlternateContent><a:fld type='slidenum'><a:t>3</a:t></a:fld></a:p>",
          )
        }<p:pic><p:nvPicPr><p:cNvPr descr="A red boat"/></p:nvPicPr><a:blip/></p:pic></p:sld>`,
      ),
      textEntry(
        "ppt/slides/_rels/slide2.xml.rels",
        `<Relationships>${relation("c", "comments", "../comments/comment1.xml")}${
          relation("d", "diagramData", "../diagrams/data1.xml")
        }${relation("v", "video", "../media/a.mp4")}${relation("o", "oleObject", "../embeddings/a.bin")}${
          relation("h", "hologram", "../h.bin")
        }</Relationships>`,
      ),
      textEntry("ppt/comments/comment1.xml", '<p:cmLst><p:cm authorId="0"><p:text>Too long</p:text></p:cm></p:cmLst>'),
      textEntry("ppt/diagrams/data1.xml", `<dgm:dataModel>${text("One")}${text("Two")}</dgm:dataModel>`),
    ]),
  );
  expect(pages).toEqual([
    "# Slide 1: Top\n\nHalf is (1)/(2)\n\nA red boat\n\nOne\nTwo\n\n[Mia: Too long]",
    "# Slide 2\n\nLast",
  ]);
  expect(ledger.map(({ kind, examples }) => [kind, examples])).toEqual([
    ["image", undefined],
    ["media", ["ppt/media/a.mp4"]],
    ["embedded", ["ppt/embeddings/a.bin"]],
    ["unknown", ["slide 1: hologram"]],
    ["missing", ["slide 3"]],
  ]);
  expect(await codeOf(extract("a.pptx", await zipOf([textEntry("a.txt", "x")])))).toBe("unsupported");
});
