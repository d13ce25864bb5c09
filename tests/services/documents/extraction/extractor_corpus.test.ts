/** How much of a text comes out of a file of each kind: at least 98 % of its words, in several languages. */
import { expect, test } from "vitest";
import { encodeText } from "../../../helpers/files/encode_text.ts";
import { openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";

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

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const wrap = (tag: string, texts: readonly string[]) =>
  texts.map((text) => `<${tag}>${escape(text)}</${tag}>`).join("\n");
const html = (texts: readonly string[]) => `<!doctype html><meta charset="utf-8"><title>T</title>${wrap("p", texts)}`;
const base64 = (text: string) => new TextEncoder().encode(text).toBase64().replace(/.{76}/g, "$&\r\n");
const mail = (encoding: string, body: string) =>
  `From: a@b.example\r\nSubject: T\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n` +
  `Content-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`;
const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const docx = (texts: readonly string[]) =>
  zipOf([
    textEntry(
      "[Content_Types].xml",
      `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
    ),
    textEntry(
      "_rels/.rels",
      `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
    ),
    textEntry(
      "word/document.xml",
      // A word may be split between two runs.
      `<w:document ${W}><w:body>${
        texts.map((text) =>
          `<w:p>${
            [text.slice(0, 7), text.slice(7)].map((run) => `<w:r><w:t xml:space="preserve">${escape(run)}</w:t></w:r>`)
              .join("")
          }</w:p>`
        ).join("")
      }</w:body></w:document>`,
    ),
  ]);
const epub = (texts: readonly string[]) =>
  zipOf([
    textEntry("mimetype", "application/epub+zip"),
    textEntry(
      "META-INF/container.xml",
      '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
    ),
    textEntry(
      "book.opf",
      `<package><manifest>${texts.map((_, n) => `<item id="i${n}" href="${n}.xhtml"/>`).join("")}</manifest><spine>${
        texts.map((_, n) => `<itemref idref="i${n}"/>`).join("")
      }</spine></package>`,
    ),
    ...texts.map((text, n) =>
      textEntry(`${n}.xhtml`, `<html xmlns="http://www.w3.org/1999/xhtml"><body>${wrap("p", [text])}</body></html>`)
    ),
  ]);
const rtf = (texts: readonly string[]) => {
  const encode = (text: string) =>
    Array.from(text, (character) => {
      const code = character.charCodeAt(0);
      return code < 128 ? character : `\\u${code > 32767 ? code - 65536 : code}?`;
    }).join("");
  return `{\\rtf1\\ansi\\ansicpg1252 ${texts.map((text) => `${encode(text)}\\par `).join("")}}`;
};
const notebook = (texts: readonly string[]) =>
  JSON.stringify({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {},
    cells: texts.map((text) => ({ cell_type: "markdown", metadata: {}, source: [text] })),
  });
const mhtml = (texts: readonly string[]) =>
  `MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="b"; type="text/html"\r\n\r\n--b\r\n` +
  `Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\nContent-Location: https://a.example/\r\n\r\n` +
  `${base64(html(texts))}\r\n--b--\r\n`;
const subtitles = (texts: readonly string[]) =>
  texts.map((text, n) =>
    `${n + 1}\n00:00:${String(n).padStart(2, "0")},000 --> 00:00:${String(n).padStart(2, "0")},900\n${text}\n`
  )
    .join("\n");

test.each([
  ["text", "a.txt", ALL.join("\n\n"), ALL],
  ["Markdown", "a.md", ALL.map((text, n) => `${n % 3 === 0 ? "- " : ""}${text}`).join("\n\n"), ALL],
  ["HTML", "a.html", html(ALL), ALL],
  ["HTML without end tags", "a.html", `<head><meta charset=utf-8><title>T</title><body><p>${ALL.join("<p>")}`, ALL],
  ["EPUB", "a.epub", epub(ALL), ALL],
  ["DOCX", "a.docx", docx(ALL), ALL],
  ["RTF", "a.rtf", rtf(ALL), ALL],
  ["a mail in Base64", "a.eml", mail("base64", base64(ALL.join("\n\n"))), ALL],
  ["a saved page", "a.mhtml", mhtml(ALL), ALL],
  ["a notebook", "a.ipynb", notebook(ALL), ALL],
  ["a table", "a.csv", ALL.map((text, n) => `${n},"${text}"`).join("\r\n"), ALL],
  ["subtitles", "a.srt", subtitles(ALL), ALL],
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
