import { expect, test } from "vitest";
import type { DocumentPage } from "../../../services/documents/document.ts";
import { PassageIndexes, tokenize, toPassages } from "../../../services/documents/open_documents.ts";
import { writeBook } from "../../helpers/files/book.ts";

const toPages = (texts: readonly string[]): DocumentPage[] => texts.map((text, n) => ({ n: n + 1, text }));
const openIndexes = (documents: Record<string, readonly string[]>) => {
  const reads: string[] = [];
  const indexes = new PassageIndexes(async function* (id) {
    reads.push(id);
    yield* toPages(documents[id]!);
  });
  return { indexes, reads };
};

test("finds the right page among the first five for 19 of 20 questions about 1,000 pages", async () => {
  const { pages, questions } = writeBook(1_000, 20);
  const { indexes } = openIndexes({ book: pages });
  const missed: string[] = [];
  for (const { question, page } of questions) {
    const ranked = await indexes.rank(["book"], { text: question, context: "Tell me about the book. It is long." });
    const first = [...new Set(ranked.map(({ passage }) => passage.page))].slice(0, 5);
    if (!first.includes(page)) missed.push(question);
  }
  indexes.close();
  expect(missed.length).toBeLessThanOrEqual(1);
});

test("reads a document once for several questions, and again after closing", async () => {
  const { indexes, reads } = openIndexes({ a: ["alpha beta"], b: ["gamma"] });
  expect((await indexes.rank(["a", "b"], { text: "beta", context: "" })).map(({ documentId }) => documentId)).toEqual([
    "a",
  ]);
  await indexes.rank(["a"], { text: "alpha", context: "" });
  expect(reads).toEqual(["a", "b"]);
  indexes.close();
  await indexes.rank(["a"], { text: "alpha", context: "" });
  expect(reads).toEqual(["a", "b", "a"]);
  indexes.close();
});

test("the question counts more than the messages before it", async () => {
  const { indexes } = openIndexes({ a: ["The cat sleeps.", "The dog barks."] });
  const ranked = await indexes.rank(["a"], { text: "Where is the dog?", context: "Where is the cat?" });
  expect(ranked.map(({ passage }) => passage.page)).toEqual([2, 1]);
  indexes.close();
});

test.each([
  ["plurals and endings", "Which berths are there?", ["A berth costs 5 crowns.", "Something else."], 1],
  ["accents", "cafe", ["Nothing", "Das Café ist zu."], 2],
  ["Japanese", "灯台の猫の名前は?", ["海は青い。", "灯台の猫はビスケットという。"], 2],
  ["numbers", "invoice 4711", ["invoice 4712", "invoice 4711"], 2],
])("finds %s", async (_, text, pages, page) => {
  const { indexes } = openIndexes({ a: pages });
  expect((await indexes.rank(["a"], { text, context: "" }))[0]?.passage.page).toBe(page);
  indexes.close();
});

test("cuts pages into passages without losing text", () => {
  const text = Array.from({ length: 60 }, (_, n) => `Sentence number ${n} is here.`).join(" ");
  const passages = [...toPassages({ n: 7, text: `${text}\n\nShort.\n\n${"x".repeat(5_000)}` }, 3)];
  expect(passages.map(({ n }) => n)).toEqual(passages.map((_, index) => index + 3));
  expect(passages.every(({ page, text }) => page === 7 && text.length <= 1_000)).toBe(true);
  expect(passages.map(({ text }) => text).join("").replace(/\s/g, "")).toBe(
    `${text}Short.${"x".repeat(5_000)}`.replace(/\s/g, ""),
  );
});

test("splits words and pairs of letters", () => {
  expect(tokenize("Größe, naïve 4711! 日本語")).toEqual(["große", "naive", "4711", "日本", "本語"]);
});
