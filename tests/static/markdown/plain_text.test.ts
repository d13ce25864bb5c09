import { expect, test } from "vitest";
import { SpeechSegments } from "../../../static/src/speech/message_source.ts";
import { stripMarkdown, toSpokenText } from "../../../static/src/markdown/plain_text.ts";
import { findTerms, parseSearchTerms } from "../../../services/json/search_fold.ts";
import { Sentences } from "../../../static/src/markdown/sentences.ts";
import { REPLIES, type Reply, visibleText } from "../../corpus/replies/replies.ts";

const WORDS = { formula: "formula", diagram: "diagram" };

test.each([
  ["5*3=15 and 5 * 3 = 15", "5 × 3=15 and 5 × 3 = 15"],
  ["2*3*4", "2 × 3 × 4"],
  ["call my_var_name or `other_name`", "call my var name or other name"],
  ["a_b_ and _this_ and __init__", "a b and this and init"],
  ["fish &amp; chips &lt; 5&nbsp;€ &#39;x&#x27; &unknown;", "fish & chips < 5 € 'x' &unknown;"],
  ["**Bold**, *it*, ***both***, ~~gone~~, **open", "Bold, it, both, gone, open"],
  ["un*frigging*believable", "unfriggingbelievable"],
  ["10~20 people", "10–20 people"],
  ["So $E = mc^2$ holds, and $x = 1$.", "So formula holds, and x = 1."],
  ["\\(\\alpha\\) and \\[ \\sum_i x_i \\] and $$a_1$$", "formula and formula and formula"],
  ["It costs $5 or $6.", "It costs $5 or $6."],
  ["one\n\n---\n\n* * *\n\n___\n\ntwo", "one two"],
  ["Title\n=====\nText", "Title Text"],
  ["a | b\n--|--\n1 | 2", "a, b 1, 2"],
  ["| a_b | `c|d` |\n|:-:|--:|\n| 1*2 | $x^2$ |", "a b, c d 1 × 2, formula"],
  ["Hi 👋🏽 there 👩‍👩‍👧 🇩🇪 ☀️ 1️⃣ ©", "Hi there ©"],
  ["\\*not bold\\* \\# 1", "not bold 1"],
  ["> - [x] **done**\n> > nested", "done nested"],
  ["[text][ref] <https://example.org/a>\n\n[ref]: https://example.org 'T'", "text https://example.org/a"],
  ["`git push <remote>` and Promise<void> and <b>bold</b>", "git push <remote> and Promise<void> and bold"],
])("speaks %j as %j", (text, expected) => expect(toSpokenText(text, WORDS)).toBe(expected));

test.each([
  ["5*3=15 my_var_name `a*b` 10~20 $x^2$ 👋", "5*3=15 my_var_name a*b 10~20 $x^2$ 👋"],
  ["# **A** [link](x) &amp; more", "A link & more"],
])("shows %j in lists as %j", (text, expected) => expect(stripMarkdown(text)).toBe(expected));

test.each([
  ["So:\n\n$$\nx^2. = 1\n$$\n\nDone.", "So: formula. Done."],
  ["Let \\[\nx = 1\n\\] be. Done.", "Let formula. be. Done."],
  ["See:\n```mermaid\ngraph TD\n  A-->B\n```\nDone.", "See: diagram. Done."],
  ["See:\n~~~js\nlet a = 1;\n```\n~~~\nDone.", "See: Done."],
  ["$$\nnever ends\n\nNext paragraph.", "formula. Next paragraph."],
])("speaks the blocks of %j as %j, whole or growing", (text, expected) => {
  for (const step of [text.length, 1, 3, 17]) {
    const sentences = new Sentences(WORDS);
    const segments = new SpeechSegments(WORDS);
    const [said, read]: [string[], string[]] = [[], []];
    for (let at = step; at < text.length + step; at += step) {
      said.push(sentences.next(text.slice(0, at), at >= text.length));
      read.push(...segments.next(text.slice(0, at), at >= text.length).map((segment) => segment.text));
    }
    const join = (parts: string[]) => parts.filter((part) => part !== "").join(" ").replace(/\s+/g, " ");
    expect(join(said), `announced in pieces of ${step}`).toBe(expected);
    expect(join(read), `read in pieces of ${step}`).toBe(expected);
  }
});

test.each(["$", "$$", "\\(", "\\[", "*", "a*b ", "_", "`", "~", "|", "&", "[^", "\n$$\n", "$a", "**a"])(
  "speaks 100,000 times %j in linear time",
  { tags: ["F02"] },
  (part) => {
    expect(toSpokenText(part.repeat(100_000), WORDS)).toBeTypeOf("string");
    expect(new SpeechSegments(WORDS).next(part.repeat(100_000), true)).toBeInstanceOf(Array);
  },
);

test("no text of the corpus is spoken with signs of Markdown, and its words are all spoken", () => {
  const wrong: string[] = [];
  for (const reply of REPLIES) {
    const spoken = new SpeechSegments(WORDS).next(reply.markdown, true).map(({ text }) => text).join(" ");
    const shown = visibleText(reply);
    const signs = ["**", "__", "~~", "```", "|", "$$", "&amp;", "&lt;"].filter((sign) =>
      spoken.includes(sign) && !shown.includes(sign)
    );
    if (signs.length > 0) wrong.push(`${JSON.stringify(reply.markdown)} → ${JSON.stringify(spoken)}`);
  }
  expect(wrong).toEqual([]);
});

test("every word of the corpus that a reader sees is found and marked where lists show it", () => {
  // Nested fences and footnotes without a text aren't whole in a snippet, and what HTML puts below a letter is apart.
  const isApart = ({ kind, markdown }: Reply) => kind === "fences" || /<su[bp]>|<rt>|\[\^none\]/.test(markdown);
  const missing: string[] = [];
  for (const reply of REPLIES.filter((each) => !isApart(each))) {
    const plain = stripMarkdown(reply.markdown);
    const words = visibleText(reply).match(/[\p{L}\p{M}\p{N}’']{2,}/gu) ?? [];
    for (const word of words.flatMap(parseSearchTerms)) {
      if (findTerms(plain, [word]).length === 0) missing.push(`${word} in ${JSON.stringify(plain)}`);
    }
  }
  expect(missing).toEqual([]);
});
