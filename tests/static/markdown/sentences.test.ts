import { expect, test } from "vitest";
import { Sentences } from "../../../static/src/markdown/sentences.ts";

test("a growing text is read out in whole sentences, each once", () => {
  const sentences = new Sentences();
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

test("a point inside a number or an address ends no sentence", () => {
  expect(new Sentences().next("Version 2.9 of example.org is", false)).toBe("");
});

test("sentences of Japanese need no space behind their end", () => {
  expect(new Sentences().next("こんにちは。元気で", false)).toBe("こんにちは。");
});

test("marks that only mean looks are not read out", () => {
  const text = "# A *title*\n- see [the page](https://example.org)\n> and `code`\n";
  expect(new Sentences().next(text, false)).toBe("A title see the page and code");
});

test("what was there before is not read again", () => {
  expect(new Sentences("Old. Ne").next("Old. New. ", false)).toBe("New.");
});

test.each([
  ["open brackets", "["],
  ["begun links", "[a]("],
  ["begun links with brackets inside", "[a](b(c)"],
  ["images of images", "![![a]("],
])("100,000 %s are read out in linear time", { tags: ["F02"] }, (_, part) => {
  expect(new Sentences().next(part.repeat(100_000), true).length).toBeGreaterThan(0);
});

test("an address with brackets is left out whole", () => {
  expect(new Sentences().next("[A page](https://example.org/a_(b)) and ![an image](x.png)", true)).toBe(
    "A page and an image",
  );
});
