import { expect, test } from "vitest";
import { codeOf, openExtraction } from "../../../helpers/files/extract_document.ts";

const extract = openExtraction();

const FONTS = String
  .raw`{\fonttbl{\f0\froman\fcharset0 Times;}{\f1\fnil\fcharset128 MS Mincho;}{\f2\fnil\fcharset2 Symbol;}}`;
const rtf = (body: string, head = "") => String.raw`{\rtf1\ansi\ansicpg1252\deff0${FONTS}${head}${body}}`;

test.each([
  [String.raw`Gr\'fc\'dfe \u8364? and {\f1\'90\'7d\'8f\'91\'8a\'d9}`, "Grüße € and 図書館"],
  [String.raw`\u-10179?\u-8704? {\uc2\u8364\'80\'80x}\uc0\u233 y`, "😀 €xéy"],
  [String.raw`a\tab b\line c\~d\emdash e\{\}\\`, "a\tb\nc\u00a0d—e{}\\"],
  [String.raw`x10{\super 6} H{\sub 2}O \super 2\nosupersub m`, "x10^6 H_2O ^2m"],
  [String.raw`{\f2 a}{\pntext\f2\'b7\tab}`, "α-"],
  [String.raw`{\listtext 2.1\tab}item`, "2.1 item"],
  [
    String.raw`{\field{\*\fldinst HYPERLINK "http://x.example"}{\fldrslt link}}{\*\unknown secret}{\*\bkmkstart b}`,
    "link (http://x.example)",
  ],
  [String.raw`{\upr{ansi ? \} x}{\*\ud{\u28450?}}}`, "漢"],
  [String.raw`{\pict\pngblip\bin4 }{}\}{\*\shppict{\pict 00}}{\nonshppict{\pict 00}}z`, "z"],
  [
    String.raw`{\mmath{\*\moMath{\mf{\mfPr{\mctrlPr x}}{\mnum{\mr 1}}{\mden{\mr 2}}}{\mnary{\mnaryPr{\mchr \u8721?}}` +
    String.raw`{\msub{\mr i}}{\msup{\mr n}}{\me{\mr x}}}}{\mmathPict y}}`,
    "(1)/(2)∑_i^n x",
  ],
])("reads the RTF %s", async (body, text) => {
  expect((await extract("a.rtf", rtf(`${body}\\par`))).pages).toEqual([text]);
});

test("reads title, headers, headings, tables, notes and comments of an RTF, and names what it doesn't read", async () => {
  const { title, pages, ledger } = await extract(
    "a.rtf",
    rtf(
      String
        .raw`{\header\pard Confidential\par}\pard\outlinelevel0 The lighthouse\par\pard Lamps{\footnote\pard {\super\chftn} Counted\par}.` +
        String
          .raw`{\deleted gone}{\v unseen}\par\trowd\pard\intbl Ship\cell Fee\cell\row\pard\intbl Heron\par second\cell 375\cell\row` +
        String
          .raw`\pard{\*\atnauthor Ann}\chatn{\*\annotation\pard Is this so?\par} end\par{\pict 00}{\object{\*\objdata 00}{\result shown}}`,
      String.raw`{\stylesheet{\s1 heading 1;}}{\info{\title A title}{\author Bob}}`,
    ),
  );
  expect(title).toBe("A title");
  expect(pages.join("\n\n").split("\n\n")).toEqual([
    ...["Confidential", "The lighthouse", "Lamps[1].unseen", "Ship | Fee", "Heron second | 375", "[c1] end", "shown"],
    ...["[1] Counted", "[c1] Ann: Is this so?"],
  ]);
  expect(ledger.map(({ kind, count }) => [kind, count])).toEqual([
    ...[["tracked_changes", 1], ["hidden", 1], ["image", 1], ["embedded", 1]],
  ]);
});

test("reads the HTML that an RTF wraps", async () => {
  const body = String
    .raw`\fromhtml1{\*\htmltag <p>}\htmlrtf copy\htmlrtf0 Gr\'fc\'dfe{\*\htmltag <b>}{\htmlrtf\b bold}{\*\htmltag </p><p>}two{\*\htmltag </p>}`;
  expect((await extract("a.rtf", rtf(body))).pages).toEqual(["Grüße\n\ntwo"]);
});

test("reads RTF that isn't complete, and refuses what is nested too deeply", async () => {
  expect((await extract("a.rtf", String.raw`{\rtf1 {\b Half of it`)).pages).toEqual(["Half of it"]);
  expect((await extract("a.rtf", String.raw`{\rtf1 a}}}} b`)).pages).toEqual(["a b"]);
  expect(await codeOf(extract("a.rtf", String.raw`{\rtf1 ` + "{".repeat(20_000)))).toBe("damaged");
});
