import { expect, test } from "vitest";
import { decode } from "../../../../services/documents/extraction/encoding.ts";
import { sniffDocument } from "../../../../services/documents/extraction/extraction.ts";
import { encodeText } from "../../../helpers/files/encode_text.ts";

const JAPANESE = "会議は午後三時に始まります。資料を持ってきてください。";
const CHINESE = "图书馆每天早上九点开门，晚上八点关门。请保持安静。";
const TAIWANESE = "圖書館每天早上九點開門，晚上八點關門。請保持安靜。";
const KOREAN = "도서관은 매일 아침 아홉 시에 문을 열고 저녁 여덟 시에 닫습니다.";
const RUSSIAN = "Библиотека открывается каждое утро в девять часов и закрывается вечером.";
const UKRAINIAN = "Бібліотека відчиняється щоранку о дев'ятій годині, її двері зелені.";
const POLISH = "Biblioteka jest otwarta od dziewiątej rano. Proszę zachować ciszę i nie jeść.";
const CZECH = "Knihovna je otevřená každý den od devíti hodin. Prosíme, buďte potichu při čtení.";
const HUNGARIAN = "A könyvtár minden reggel kilenckor nyit, és este nyolckor zár. Kérjük, őrizze meg a csendet.";
const TURKISH = "Kütüphane her sabah dokuzda açılır, akşam sekizde kapanır. Lütfen sessiz olunuz, ışığı kapatın.";
const GREEK = "Η βιβλιοθήκη ανοίγει κάθε πρωί στις εννέα και κλείνει το βράδυ.";
const ARABIC = "تفتح المكتبة أبوابها كل صباح في الساعة التاسعة وتغلق مساء.";
const HEBREW = "הספרייה נפתחת בכל בוקר בשעה תשע ונסגרת בערב. נא לשמור על השקט במקום.";
const THAI = "ห้องสมุดเปิดทุกวันตั้งแต่เก้าโมงเช้า กรุณารักษาความสงบ";
const GERMAN = "Die Bücherei öffnet täglich um neun. Bitte seien Sie leise – „Ruhe“ gilt überall, außer im Café.";
const FRENCH = "La bibliothèque ouvre dès neuf heures. Prière de se taire, même à l’entrée… Ça va de soi.";

test.each([
  ...[[JAPANESE, "shift_jis"], [JAPANESE, "euc-jp"], [JAPANESE, "utf-16le"], [JAPANESE, "utf-16be"]],
  ...[[CHINESE, "gb18030"], [CHINESE, "utf-16le"], [TAIWANESE, "big5"], [KOREAN, "euc-kr"], [KOREAN, "utf-16be"]],
  ...[[RUSSIAN, "windows-1251"], [RUSSIAN, "koi8-u"], [RUSSIAN, "iso-8859-5"], [RUSSIAN, "ibm866"]],
  ...[[UKRAINIAN, "windows-1251"], [UKRAINIAN, "koi8-u"], [POLISH, "windows-1250"], [POLISH, "iso-8859-2"]],
  ...[[CZECH, "windows-1250"], [CZECH, "iso-8859-2"], [HUNGARIAN, "windows-1250"], [TURKISH, "windows-1254"]],
  ...[[GREEK, "windows-1253"], [ARABIC, "windows-1256"], [HEBREW, "windows-1255"], [THAI, "windows-874"]],
  ...[[GERMAN, "windows-1252"], [FRENCH, "windows-1252"], [GERMAN, "utf-16le"], [GERMAN, "macintosh"]],
])("decodes %s in %s", (text, encoding) => {
  expect(decode(encodeText(text, encoding)).text).toBe(text);
});

test.each([
  ["品名,数量\n青い傘,12\n", "shift_jis"],
  ["价格,数量\n雨伞,12\n", "gb18030"],
  ["Имя;Город\nАнна;Омск\n", "windows-1251"],
  ["Größe;Straße\n", "windows-1252"],
])("decodes the short text %j", (text, encoding) => {
  expect(decode(encodeText(text, encoding)).text).toBe(text);
});

test("decodes ISO-2022-JP by its escapes", () => {
  const bytes = new Uint8Array([0x1b, 0x24, 0x42, 0x33, 0x24, 0x1b, 0x28, 0x42, 0x20, 0x61]);
  expect(decode(bytes)).toMatchObject({ text: "海 a", encoding: "iso-2022-jp" });
});

test("says whether the encoding is certain, and uses the languages of the user", () => {
  const bytes = encodeText("café crème", "windows-1252");
  expect(decode(bytes).found).toBe("unsure");
  expect(decode(bytes, { languages: ["fr-CA"] })).toMatchObject({ text: "café crème", found: "guessed" });
  expect(decode(encodeText(JAPANESE, "shift_jis")).found).toBe("guessed");
  expect(decode(encodeText(JAPANESE, "utf-8")).found).toBe("valid");
});

test("uses a declared encoding that decodes all bytes, and no other", () => {
  const bytes = encodeText(CHINESE, "gb18030");
  expect(decode(bytes, { declared: ["gb2312"] })).toMatchObject({ text: CHINESE, found: "declared" });
  expect(decode(bytes, { declared: ["utf-8"] }).text).toBe(CHINESE);
  expect(decode(bytes, { declared: ["no-such-charset", undefined] }).text).toBe(CHINESE);
  expect(decode(encodeText("naïve – ✓", "utf-8"), { declared: ["iso-8859-1"] }).text).toBe("naïve – ✓");
});

test("reads UTF-8 with a few damaged bytes as UTF-8, and counts them", () => {
  const bytes = encodeText(`${JAPANESE.repeat(20)}x${JAPANESE.repeat(20)}`, "utf-8");
  bytes[bytes.indexOf(0x78)] = 0xff;
  const { text, encoding, replaced } = decode(bytes);
  expect([text.startsWith(JAPANESE), encoding, replaced]).toEqual([true, "utf-8", 1]);
});

test("uses the encoding that the user chose, whatever the bytes are", () => {
  const bytes = encodeText(JAPANESE, "shift_jis");
  expect(decode(bytes, { chosen: "euc-jp", declared: ["shift_jis"] })).toMatchObject({
    encoding: "euc-jp",
    found: "chosen",
  });
});

test("recognizes UTF-16 without a mark as text, and no binary file", () => {
  for (const text of [GERMAN, JAPANESE, RUSSIAN]) {
    for (const encoding of ["utf-16le", "utf-16be"]) {
      expect(sniffDocument(encodeText(text, encoding), "a.txt")).toBe("text/plain");
    }
  }
  const noise = new Uint8Array(4096);
  for (const start of [1, 7, 99]) {
    let seed = start;
    for (let at = 0; at < noise.length; at++) noise[at] = (seed = seed * 1_103_515_245 + 12_345 & 0x7fffffff) >> 16;
    expect(sniffDocument(noise, "a.bin")).toBeUndefined();
  }
});
