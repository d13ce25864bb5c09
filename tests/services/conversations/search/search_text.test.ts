import { expect, test } from "vitest";
import { containsAllTerms, foldForSearch } from "../../../../services/json/search_fold.ts";
import {
  createQuickTest,
  FoldedTexts,
  parseQuery,
  truncateSnippet,
} from "../../../../services/conversations/search/search_text.ts";

const isFound = (text: string, query: string) => containsAllTerms(foldForSearch(text), parseQuery(query));

test.each([
  ["Über den Wolken", "über"],
  ["ÄRGER", "ärger"],
  ["A\u0308rger, written in two characters", "ärger"],
  ["ＦＵＬＬ　ｗｉｄｔｈ", "full width"],
  ["full width", "ＦＵＬＬ"],
  ["ﾊﾝｶｸ カタカナ", "ハンカク"],
  ["今日は東京で雨が降る", "東京で"],
  ["ΟΔΥΣΣΕΥΣ", "οδυσσευς"],
  ["ΟΔΟΣΑ", "οδος"],
  ["two words, far apart", "apart two"],
  ["the ﬁrst oﬃce", "first office"],
  ["emoji 🦆 too", "🦆"],
  ['she said "no" twice', 'said "no'],
  ["a phrase as a whole", '"phrase as a" whole'],
  ["a phrase as a whole", "„phrase as a“"],
])("finds %j by %j", (text, query) => {
  expect(isFound(text, query)).toBe(true);
});

test.each([
  ["a whole phrase", '"phrase whole"'],
  ["only one of two", "one three"],
  ["東京", "京東"],
])("doesn't find %j by %j", (text, query) => {
  expect(isFound(text, query)).toBe(false);
});

test.each(["", "   ", "\u3000", "x".repeat(501)])("rejects the query %j", (query) => {
  expect(() => parseQuery(query)).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

test("never misses a hit in the quick test on JSON", () => {
  const alphabet = ["a", "n", "N", "é", "e", "\u0301", "\u0308", '"', "＂", "\\", "＼", "\n", "\t", "\x01", "\x7f", " "]
    .concat([
      "ﬁ",
      "Σ",
      "ς",
      "İ",
      "ß",
      "ｶ",
      "ﾞ",
      "が",
      "東",
      "가",
      "\u1100",
      "\u1161",
      "\ud83d",
      "🦆",
      "’",
      "“",
      "\u00ad",
      "й",
      "\u0306",
      "שׁ",
      "\u05b8",
      "ـ",
      "ấ",
      "u",
      "0",
      "{",
      "K",
      "Å",
    ]);
  let state = 7;
  const random = (below: number) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
  const text = (length: number) => Array.from({ length }, () => alphabet[random(alphabet.length)]!).join("");
  let found = 0;
  for (let round = 0; round < 20_000; round++) {
    const content = text(1 + random(12));
    const folded = foldForSearch(content);
    const at = random(folded.length);
    // A term is any part of a folded text.
    const terms = [folded.slice(at, at + 1 + random(5)), ...(round % 3 === 0 ? [folded.slice(0, 2)] : [])];
    const json = `${JSON.stringify({ id: "m0", content: "x" })},${JSON.stringify({ id: "m1", content })}`;
    const isAscii = new TextEncoder().encode(json).length === json.length;
    expect(containsAllTerms(folded, terms)).toBe(true);
    if (!createQuickTest(terms)(json, isAscii)) throw new Error(`overlooked ${JSON.stringify({ content, terms })}`);
    found++;
  }
  expect(found).toBe(20_000);
});

test("skips JSON without the words in the quick test", () => {
  const mayHold = createQuickTest(parseQuery("needle haystack"));
  const json = (content: string) => JSON.stringify({ content });
  expect(mayHold(json("no such thing"), true)).toBe(false);
  expect(mayHold(json("a NEEDLE alone"), true)).toBe(false);
  expect(mayHold(json("NEEDLE, haystack"), true)).toBe(true);
  expect(mayHold(json("Ｎeedle, haystäck haystack"), false)).toBe(true);
  expect(createQuickTest(["東京"])(json("ascii"), true)).toBe(false);
});

test("cuts a snippet of about 160 characters around the hit", () => {
  const text = `${"before words ".repeat(40)}\nthe   Needle${" after words".repeat(40)}`;
  const snippet = truncateSnippet(text, ["needle"]);
  expect(snippet).toMatch(/^…before .*the Needle after.*…$/);
  expect(snippet.length).toBeGreaterThan(130);
  expect(snippet.length).toBeLessThanOrEqual(162);
  expect(truncateSnippet("short Needle", ["needle"])).toBe("short Needle");
  expect(truncateSnippet(`${"x ".repeat(200)}needle`, ["needle"])).toMatch(/^….*x needle$/);
});

test("never cuts a snippet inside a character", () => {
  for (let lead = 0; lead < 8; lead++) {
    const snippet = truncateSnippet(`${"a".repeat(lead)}${"🦆".repeat(100)}needle${"🐸".repeat(100)}`, ["needle"]);
    expect(snippet).toContain("needle");
    expect(snippet.isWellFormed()).toBe(true);
  }
});

test("finds the hit after text that folding makes shorter or longer", () => {
  for (const filler of ["ﬃ", "e\u0301", "㌀", "ｶﾞ", "İ", "株式会社 "]) {
    expect(truncateSnippet(`${filler.repeat(3000)} Nadel ${filler.repeat(500)}`, ["nadel"])).toContain("Nadel");
  }
});

const block = (text: string) => ({
  id: 1,
  version: 1,
  segment: 0,
  position: 1,
  text,
  sizeBytes: text.length,
});
const version = (id: string, revision = 1, created_at = 5) => ({ id, revision, created_at });

test("finds only texts of the same state of a conversation", () => {
  const texts = new FoldedTexts();
  texts.add(version("a"), [block("one")]);
  expect(texts.find(version("a"))).toEqual([block("one")]);
  expect(texts.find(version("a", 2))).toBeUndefined();
  expect(texts.find(version("a", 1, 6))).toBeUndefined();
  texts.add(version("a", 2), [block("two")]);
  expect(texts.find(version("a", 2))).toEqual([block("two")]);
});

test("stays below its limit, and has space again for a conversation that was replaced", () => {
  const texts = new FoldedTexts(3_000);
  texts.add(version("a"), [block("x".repeat(1_500))]);
  texts.add(version("b"), [block("x".repeat(1_500))]);
  expect(texts.find(version("a"))).toBeDefined();
  expect(texts.find(version("b"))).toBeUndefined();
  texts.add(version("a", 2), [block("short")]);
  texts.add(version("b"), [block("x".repeat(1_500))]);
  expect(texts.find(version("b"))).toBeDefined();
});
