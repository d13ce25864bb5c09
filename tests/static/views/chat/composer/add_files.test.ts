import { expect, test } from "vitest";
import type { OpenChat } from "../../../../../static/src/state/chat/open_chat.ts";
import { toPastedFile } from "../../../../../static/src/views/chat/composer/add_files.ts";

const saved = { isTemporary: false } as OpenChat;

test.each([
  ["whole words", "word ".repeat(20), "word word word word word word word word word"],
  ["the first line with words", "\n---\n\n## The *old* mill\n", "The old mill"],
  ["no signs that file names can't have", "A/B: see C:\\x?", "A B see C x"],
  ["Japanese, which has no spaces", "川".repeat(60), "川".repeat(48)],
  ["a text without words", "!!! ***", "Pasted text"],
])("names a long pasted text by its first words: %s", (_, start, name) => {
  expect(toPastedFile(`${start}${"\n!".repeat(70)}`, saved)?.name).toBe(`${name}.txt`);
});

test("leaves a short text, and one for a temporary chat, in the message", () => {
  expect(toPastedFile("A short text.", saved)).toBeUndefined();
  expect(toPastedFile("word ".repeat(2000), { isTemporary: true } as OpenChat)).toBeUndefined();
});
