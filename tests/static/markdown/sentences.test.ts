import { expect, test } from "vitest";
import { Sentences } from "../../../static/src/markdown/sentences.ts";

const WORDS = { formula: "formula", diagram: "diagram" };

test("announces each whole sentence of a growing text once", () => {
  const sentences = new Sentences(WORDS);
  const said = [
    "It was",
    "It was dark. The",
    "It was dark. The wind rose! “Why?” he",
    "It was dark. The wind rose! “Why?” he asked",
  ]
    .map((text) => sentences.next(text, false));
  expect(said).toEqual(["", "It was dark.", "The wind rose! “Why?”", ""]);
  expect(sentences.next("It was dark. The wind rose! “Why?” he asked", true)).toBe("he asked");
  expect(sentences.next("It was dark. The wind rose! “Why?” he asked", true)).toBe("");
});

test("doesn't end a sentence at a period inside a number or a URL", () => {
  expect(new Sentences(WORDS).next("Version 2.9 of example.org is", false)).toBe("");
});

test("ends Japanese sentences without a space", () => {
  expect(new Sentences(WORDS).next("こんにちは。元気で", false)).toBe("こんにちは。");
});

test("doesn't announce formatting marks", () => {
  const text = "# A *title*\n- see [the page](https://example.org)\n> and `code`\n";
  expect(new Sentences(WORDS).next(text, false)).toBe("A title see the page and code");
});

test("speaks words of tables, tasks, footnotes and HTML, not their marks", () => {
  const text = "| City | Hours |\n|:--|--:|\n| Oslo | 18 |\n- [x] pack[^1]\n<b>Go</b> <br>now\n[^1]: Light.\n";
  expect(new Sentences(WORDS).next(text, true)).toBe("City, Hours Oslo, 18 pack Go now Light.");
});

test("doesn't announce text that was there before", () => {
  expect(new Sentences(WORDS, "Old. Ne").next("Old. New. ", false)).toBe("New.");
});

test.each([
  ["open brackets", "["],
  ["begun links", "[a]("],
  ["begun links with brackets inside", "[a](b(c)"],
  ["images of images", "![![a]("],
])("announces 100,000 %s in linear time", { tags: ["F02"] }, (_, part) => {
  expect(new Sentences(WORDS).next(part.repeat(100_000), true).length).toBeGreaterThan(0);
});

test("skips a whole URL with brackets", () => {
  expect(new Sentences(WORDS).next("[A page](https://example.org/a_(b)) and ![an image](x.png)", true)).toBe(
    "A page and an image",
  );
});

test("names code, diagrams and rules; hyphens below a line make it a heading", () => {
  const sentences = new Sentences({ ...WORDS, code: "code", rule: "divider" });
  const text = "Look:\n```ts\nlet a = 1;\n```\nDone.\n\n---\n\nTitle\n---\n* * *\n```mermaid\ngraph TD\n```\nEnd";
  expect(sentences.next(text, true)).toBe("Look: code. Done. divider. Title divider. diagram. End");
  expect(new Sentences(WORDS).next(text, true)).toBe("Look: Done. Title diagram. End");
});
