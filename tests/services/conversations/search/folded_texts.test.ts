import { expect, test } from "vitest";
import { FoldedTexts } from "../../../../services/conversations/search/folded_texts.ts";

const block = (text: string) => ({
  id: 1,
  version: 1,
  segment: 0,
  position: 1,
  text,
  sizeBytes: text.length,
});
const version = (id: string, revision = 1, created_at = 5) => ({ id, revision, created_at });

test("finds the texts of the same state of a conversation only", () => {
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
