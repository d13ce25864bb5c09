import { expect, test } from "vitest";
import { containsAllTerms, findTerms, foldForSearch, parseSearchTerms } from "../../../services/json/search_fold.ts";

const isFound = (text: string, query: string) => containsAllTerms(foldForSearch(text), parseSearchTerms(query));

const FOUND: [string, string, string][] = [
  ["accents", "Ein Café", "cafe"],
  ["accents in the query", "a cafe", "CAFÉ"],
  ["a decomposed accent", "Cafe\u0301", "café"],
  ["several accents on a letter", "Tiếng Việt", "tieng viet"],
  ["a stroke", "Đà Nẵng, Łódź, Tromsø", "da lodz tromso"],
  ["ligatures of letters", "Œuvre, Æsir", "oeuvre aesir"],
  ["a typographic apostrophe", "I think it’s done", "it's"],
  ["a typed apostrophe by a typographic one", "I think it's done", "it’s"],
  ["typographic quotes", "the »best« one", '"the \u00bbbest\u00ab"'],
  ["a dash", "2019–2020", "2019-2020"],
  ["Hebrew points", "שָׁלוֹם לְכֻלָּם", "שלום לכלם"],
  ["Arabic harakat", "مُحَمَّد", "محمد"],
  ["tatweel", "محـــمد", "محمد"],
  ["hamza on alef", "أحمد", "احمد"],
  ["a final sigma", "ΟΔΥΣΣΕΥΣ", "οδυσσευς"],
  ["a sigma within a word", "οδός", "ΟΔΟΣ"],
  ["ß by ss", "Die Straße", "strasse"],
  ["SS by ß", "STRASSE", "straße"],
  ["a capital ß", "STRAẞE", "strasse"],
  ["a dotted capital I", "İstanbul", "istanbul"],
  ["a dotless i", "Diyarbakır", "diyarbakir"],
  ["full width", "ＦＵＬＬ　ｗｉｄｔｈ", "full width"],
  ["half width kana with a mark", "ｶﾞｲﾄﾞ", "ガイド"],
  ["a soft hyphen", "Donau\u00addampfschiff", "donaudampf"],
  ["a zero-width joiner of Persian", "می\u200cروم", "میروم"],
  ["ё by е", "ёлка", "елка"],
  ["Chinese", "这是中文文本", "中文"],
  ["Thai", "ฉันรักภาษาไทย", "ภาษา"],
  ["Hangul", "안녕하세요", "하세"],
  ["decomposed Hangul", "한국어".normalize("NFD"), "한국"],
  ["Hindi", "हिन्दी में", "हिन्दी"],
];
test.each(FOUND)("finds %s", (_, text, query) => expect(isFound(text, query)).toBe(true));

test.each([
  ["another kana", "がっこう", "かっこう"],
  ["a part of a syllable", "한국", "하"],
  ["another Thai vowel", "กิน", "กน"],
  ["another Hindi vowel", "दिल", "दल"],
  ["another Cyrillic letter", "мой", "мои"],
  ["another word", "cafe", "cave"],
])("doesn't find %s", (_, text, query) => expect(isFound(text, query)).toBe(false));

test.each([
  ["Ein Café, bitte", "cafe", ["Café"]],
  ["Ein Cafe\u0301, bitte", "café", ["Cafe\u0301"]],
  ["Tiếng Việt", "viet", ["Việt"]],
  ["שָׁלוֹם לכולם", "שלום", ["שָׁלוֹם"]],
  ["قال مُحَمَّدٌ شيئا", "محمد", ["مُحَمَّدٌ"]],
  ["Die Straße", "strass", ["Straß"]],
  ["ﬁne oﬃce", "office", ["oﬃce"]],
  ["it’s it's", "it's", ["it’s", "it's"]],
  ["ＦＵＬＬ full", "full", ["ＦＵＬＬ", "full"]],
  ["안녕 안녕", "안녕", ["안녕", "안녕"]],
  ["한국어".normalize("NFD"), "국", ["국".normalize("NFD")]],
  ["🦆 Œuvre 🦆", "oeuvre 🦆", ["🦆", "Œuvre", "🦆"]],
  ["one onesie", "one onesie", ["one", "onesie"]],
  ["aßb", "as sb", ["aßb"]],
  ["nothing", "else", []],
  ["nothing", "", []],
])("marks the right letters of %j for %j", (text, query, expected) => {
  const hits = findTerms(text, parseSearchTerms(query));
  expect(hits.map(([start, end]) => text.slice(start, end))).toEqual(expected);
});

test("what is found anywhere in a text is marked there, whole letters only", () => {
  for (const [, text, query] of FOUND) {
    const terms = parseSearchTerms(query);
    for (const [before, after] of [["", ""], ["日本 ", " x"], ["Đ ﬃ e\u0301 ", "!"], ["( ", " )"]]) {
      const whole = before + text + after;
      const hits = findTerms(whole, terms);
      const marked = hits.map(([start, end]) => foldForSearch(whole.slice(start, end)));
      expect(marked.length, query).toBeGreaterThanOrEqual(terms.length);
      for (const term of terms) expect(marked.some((each) => each.includes(term)), `${query} in ${whole}`).toBe(true);
      for (const [start] of hits) expect(whole.slice(start), "starts with a letter").not.toMatch(/^\p{M}/u);
    }
  }
});

test("a query is split into words and phrases", () => {
  expect(parseSearchTerms('  Two “Words or” more "MORE" more ')).toEqual(["two", "words or", "more"]);
  expect(parseSearchTerms('said "no')).toEqual(["said", "no"]);
  expect(parseSearchTerms("\u200b \u3000")).toEqual([]);
});

test("thousands of marks in a row don't take quadratic time", () => {
  const text = `a${"\u0315\u0300".repeat(100_000)}b`;
  expect(foldForSearch(text)).toBe("ab");
  expect(findTerms(text, ["b"])).toHaveLength(1);
  // Each run is short until the joiners are left out.
  const joined = `${"\u0e48".repeat(30)}\u200d`.repeat(5_000);
  expect(foldForSearch(joined)).toHaveLength(150_000);
});
