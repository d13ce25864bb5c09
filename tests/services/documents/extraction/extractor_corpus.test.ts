/** How much of a text comes out of a file of each kind: at least 98 % of its words, in several languages. */
import { expect, test } from "vitest";
import { encodeText } from "../../../helpers/files/encode_text.ts";
import * as kinds from "../../../helpers/files/document_kinds.ts";
import { openExtraction } from "../../../helpers/files/extract_document.ts";
import { writePdf } from "../../../helpers/files/pdf_files.ts";

const extract = openExtraction();
/** Share of the words that must be found. */
const FLOOR = 0.98;

/** Made for this test, one paragraph an item. Latin letters only, for encodings without others. */
const ENGLISH = [
  "The keeper climbed the ninety steps of the lighthouse every evening before the sun went down.",
  "He filled the lamp with oil, wiped the glass, and wrote the hour of lighting into a heavy book.",
  "In the winter of the great storm he counted forty ships, and not one of them was lost on the rocks.",
  "His daughter kept the book after him; she added the price of oil, 12 crowns, and the names of the ships.",
];
const GERMAN = [
  "Der Wärter stieg jeden Abend die neunzig Stufen des Leuchtturms hinauf, ehe die Sonne unterging.",
  "Er füllte die Lampe mit Öl, putzte das Glas und schrieb die Stunde in ein großes Buch.",
  "Später führte seine Tochter das Buch und ergänzte den Preis des Öls sowie die Namen der Schiffe.",
];
const JAPANESE = [
  "灯台守は毎晩、日が沈む前に九十段の階段を上りました。",
  "ランプに油を入れ、ガラスを拭き、点灯した時刻を厚い帳面に書きました。",
  "大嵐の冬には四十隻の船を数えましたが、一隻も失われませんでした。",
];
const RUSSIAN = [
  "Смотритель поднимался на маяк каждый вечер, пока солнце ещё не село.",
  "Он наливал масло в лампу, протирал стекло и записывал час в толстую книгу.",
];
const ALL = [...ENGLISH, ...GERMAN, ...JAPANESE, ...RUSSIAN];

const listWords = (text: string) =>
  Array.from(new Intl.Segmenter("ja", { granularity: "word" }).segment(text))
    .flatMap(({ segment, isWordLike }) => isWordLike ? [segment] : []);

/** Returns the share of the words of a text that were read, each as often as it occurs. */
function measureShare(read: string, reference: string): number {
  const left = new Map<string, number>();
  for (const word of listWords(read)) left.set(word, (left.get(word) ?? 0) + 1);
  const words = listWords(reference);
  const found = words.filter((word) => {
    const count = left.get(word) ?? 0;
    left.set(word, count - 1);
    return count > 0;
  });
  return found.length / words.length;
}

const mail = (encoding: string, body: string) =>
  `From: a@b.example\r\nSubject: T\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n` +
  `Content-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`;
/** As mail programs write what isn't ASCII. */
const quotedPrintable = (text: string) =>
  Array.from(
    new TextEncoder().encode(text),
    (byte) =>
      byte === 10
        ? "\r\n"
        : byte < 127 && byte !== 61
        ? String.fromCharCode(byte)
        : `=${byte.toString(16).toUpperCase()}`,
  )
    .join("").replace(/([^\r\n=]|=..){70}/g, "$&=\r\n");
/** A PDF whose font has no names of its characters but a predefined map (ISO 32000-1, section 9.7.5.2). */
const mappedPdf = (texts: readonly string[], map: string, ordering: string) =>
  writePdf(texts.map(() => "x"), {
    change: (objects) => ({
      ...objects,
      3: `<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding /${map} /DescendantFonts [900 0 R] >>`,
      900:
        `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Own /CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) ` +
        "/Supplement 2 >> /FontDescriptor 901 0 R >>",
      901:
        "<< /Type /FontDescriptor /FontName /Own /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>",
      ...Object.fromEntries(texts.map((text, n) => {
        const shown = encodePdf(text, map).toHex();
        const content = `BT /F1 8 Tf 10 20 Td <${shown}> Tj ET`;
        return [5 + 2 * n, `<< /Length ${content.length} >>\nstream\n${content}\nendstream`];
      })),
    }),
  });
function encodePdf(text: string, map: string): Uint8Array {
  if (map.startsWith("90ms")) return encodeText(text, "shift_jis");
  return Uint8Array.from(Array.from(text).flatMap((one) => [one.charCodeAt(0) >> 8, one.charCodeAt(0) & 255]));
}
/** A PDF in Helvetica, whose characters are those of Windows-1252. */
const latinPdf = (texts: readonly string[]) =>
  writePdf(texts, {
    change: (objects) =>
      Object.fromEntries(
        Object.entries(objects).map(([n, content]) => {
          const written = content.replace("/Helvetica", "/Helvetica /Encoding /WinAnsiEncoding")
            .replace(/[^\0-\x7f]/g, (one) => `\\${encodeText(one, "windows-1252")[0]!.toString(8)}`);
          const stream = /stream\n([^]*)\nendstream/.exec(written)?.[1] ?? "";
          return [n, written.replace(/\/Length \d+/, `/Length ${stream.length}`)];
        }),
      ),
  });

test.each<[string, string, ReturnType<kinds.DocumentWriter>, readonly string[]]>([
  ["text", "a.txt", ALL.join("\n\n"), ALL],
  ["Markdown", "a.md", ALL.map((text, n) => `${n % 3 === 0 ? "- " : ""}${text}`).join("\n\n"), ALL],
  ["HTML", "a.html", kinds.writeHtml(ALL), ALL],
  ["HTML without end tags", "a.html", `<head><meta charset=utf-8><title>T</title><body><p>${ALL.join("<p>")}`, ALL],
  ["EPUB", "a.epub", kinds.writeEpub(ALL), ALL],
  ["DOCX", "a.docx", kinds.writeDocx(ALL), ALL],
  ["PPTX", "a.pptx", kinds.writePptx(ALL), ALL],
  ["XLSX", "a.xlsx", kinds.writeXlsx(ALL), ALL],
  ["ODT", "a.odt", kinds.writeOdt(ALL), ALL],
  ["ODS", "a.ods", kinds.writeOds(ALL), ALL],
  ["ODP", "a.odp", kinds.writeOdp(ALL), ALL],
  ["RTF", "a.rtf", kinds.writeRtf(ALL), ALL],
  ["a PDF", "a.pdf", latinPdf([...ENGLISH, ...GERMAN]), [...ENGLISH, ...GERMAN]],
  ["a Japanese PDF in Unicode", "a.pdf", mappedPdf(JAPANESE, "UniJIS-UTF16-H", "Japan1"), JAPANESE],
  ["a Japanese PDF in Shift-JIS", "a.pdf", mappedPdf(JAPANESE, "90ms-RKSJ-H", "Japan1"), JAPANESE],
  ["an Outlook message", "a.msg", kinds.writeMsg(ALL), ALL],
  ["a mail in Base64", "a.eml", kinds.writeEml(ALL), ALL],
  ["a mail in Quoted-Printable", "a.eml", mail("quoted-printable", quotedPrintable(ALL.join("\n\n"))), ALL],
  ["a saved page", "a.mhtml", kinds.writeMhtml(ALL), ALL],
  ["a notebook", "a.ipynb", kinds.writeNotebook(ALL), ALL],
  ["a table", "a.csv", kinds.writeCsv(ALL), ALL],
  ["subtitles", "a.srt", kinds.writeSrt(ALL), ALL],
  ["subtitles of the web", "a.vtt", kinds.writeVtt(ALL), ALL],
  ["subtitles in Windows-1252", "a.srt", kinds.writeOldSrt(GERMAN), GERMAN],
  ["text in Shift-JIS", "a.txt", encodeText(JAPANESE.join("\n"), "shift_jis"), JAPANESE],
  ["text in EUC-JP", "a.txt", encodeText(JAPANESE.join("\n"), "euc-jp"), JAPANESE],
  ["text in UTF-16 without a mark", "a.txt", encodeText(ALL.join("\n"), "utf-16le"), ALL],
  ["text in KOI8-R", "a.txt", encodeText(RUSSIAN.join("\n"), "koi8-r"), RUSSIAN],
  ["text in Windows-1251", "a.txt", encodeText(RUSSIAN.join("\n"), "windows-1251"), RUSSIAN],
  ["text in Windows-1252", "a.txt", encodeText(GERMAN.join("\n"), "windows-1252"), GERMAN],
])("finds the words of %s", async (_, name, bytes, reference) => {
  const { pages } = await extract(name, await bytes);
  expect(measureShare(pages.join("\n"), reference.join("\n"))).toBeGreaterThanOrEqual(FLOOR);
});

test("the measure sees what is missing", () => {
  expect(measureShare(ALL.join("\n"), ALL.join("\n"))).toBe(1);
  expect(measureShare(ALL.slice(1).join("\n"), ALL.join("\n"))).toBeLessThan(FLOOR);
});
