import { Marked } from "marked";
import { expect, test } from "vitest";
import {
  BoundedLexer,
  checkToken,
  clockExtension,
  MAX_DEPTH,
  RenderBudget,
  RenderLimitError,
} from "../../../static/src/markdown/limits.ts";
import { canHighlight, type CodePiece, highlight } from "../../../static/src/markdown/highlight.ts";
import { mathToText } from "../../../static/src/markdown/math.ts";
import { delimiterExtension } from "../../../static/src/markdown/emphasis.ts";
import { mathExtension } from "../../../static/src/markdown/extensions.ts";
import { htmlExtension } from "../../../static/src/markdown/html_tokens.ts";
import { tokenizerExtension } from "../../../static/src/markdown/tokenizers.ts";

/** A clock that advances when read. */
function clockOf(stepMs: number) {
  let now = 0;
  return { read: () => now += stepMs, readings: () => now / stepMs };
}

function lex(text: string, check: () => void = () => {}) {
  const marked = new Marked({ gfm: true });
  marked.use(htmlExtension(() => {}), tokenizerExtension(() => false), delimiterExtension());
  marked.use(mathExtension(() => ""), clockExtension(check));
  const tokens = new BoundedLexer(marked.defaults).lex(text);
  tokens.forEach(checkToken);
  return tokens;
}

function reasonOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return error instanceof RenderLimitError ? error.reason : `${error}`;
  }
  return "none";
}

test.each([
  ["quotes", MAX_DEPTH, (levels: number) => `${">".repeat(levels)} x`],
  // List levels use more stack, so not every browser reaches the limit; a stack overflow also gives plain text.
  ["lists", 500, (levels: number) => `${"- ".repeat(levels)}x`],
])("%s nest up to the limit and no further", { tags: ["F02"] }, (_, allowed, text) => {
  expect(reasonOf(() => lex(text(allowed)))).toBe("none");
  expect(reasonOf(() => lex(text(MAX_DEPTH + 1)))).toMatch(/^(?:depth|RangeError.*)$/);
  expect(reasonOf(() => lex(text(20 * MAX_DEPTH)))).toMatch(/^(?:depth|RangeError.*)$/);
});

test("adds up the nesting of blocks and of inline content", { tags: ["F02"] }, () => {
  const quoted = (levels: number) =>
    `${">".repeat(900)} ${"*a **b ".repeat(levels / 2)}x${" b** a*".repeat(levels / 2)}`;
  expect(reasonOf(() => lex(quoted(50)))).toBe("none");
  expect(reasonOf(() => lex(quoted(200)))).toBe("depth");
});

test.each([
  ["a line of 1 MB", "x".repeat(1_000_000), "length"],
  ["a text of 3 MB", "word\n\n".repeat(500_000), "length"],
  ["100,000 asterisks", "*".repeat(100_000), "length"],
  ["a table of 10,000 columns", `${"|a".repeat(10_000)}|\n${"|-".repeat(10_000)}|\n`, "columns"],
])("refuses %s", { tags: ["F02"] }, (_, text, reason) => {
  expect(reasonOf(() => lex(text))).toBe(reason);
});

test.each([
  ["blocks", "word\n\n"],
  ["lines of a paragraph", "**word**\n"],
  ["levels of emphasis", "*a **b "],
  ["formulas", "$x$ "],
  ["rows of a table", "|a|b|\n|-|-|\n"],
])("checks the time between %s", { tags: ["F02"] }, (_, part) => {
  const clock = clockOf(1);
  const budget = new RenderBudget(50, clock.read);
  expect(reasonOf(() => lex(part.repeat(200), () => budget.check()))).toBe("time");
  expect(clock.readings()).toBeLessThan(60);
});

test("finds formulas in linear time: twice the text takes twice the characters", {
  tags: ["F02"],
}, () => {
  // Searching to the end of the text for each paragraph would take minutes.
  const tokens = lex("A paragraph of some words.\n\n".repeat(50_000));
  expect(tokens.filter(({ type }) => type === "paragraph").length).toBe(50_000);
});

test.each([
  ["a macro that expands to itself", String.raw`\def\a{\a\a}\a`],
  ["20,000 uses of a macro", String.raw`\def\a{xx}` + String.raw`\a`.repeat(20_000)],
  ["1 MB of TeX", "x^2+".repeat(250_000) + "x"],
  ["500 levels of braces", "{".repeat(500) + "x" + "}".repeat(500)],
  ["500 levels of environments", String.raw`\begin{matrix}`.repeat(500) + String.raw`\end{matrix}`.repeat(500)],
  ["a long formula that defines macros", String.raw`\def\a#1{${"#1".repeat(600)}}\a{x}`],
])("refuses %s", { tags: ["F03"] }, (_, tex) => {
  expect(() => mathToText(tex, true)).toThrow();
});

test("checks the time while it expands a formula's macros", { tags: ["F03"] }, () => {
  const tex = String.raw`\def\a{x}` + String.raw`\a`.repeat(100);
  expect(mathToText(tex, false, new RenderBudget(1000, clockOf(1).read))).toContain("<math");
  const clock = clockOf(1);
  expect(reasonOf(() => mathToText(tex, false, new RenderBudget(20, clock.read)))).toBe("time");
  expect(clock.readings()).toBeLessThan(30);
});

test("limits sizes in a formula", { tags: ["F03"] }, () => {
  const mathml = mathToText(String.raw`\rule{9999em}{9999em} \kern{9999em} \hspace{99999cm}`, true);
  const sizes = [...mathml.matchAll(/="(-?[\d.]+)(em|pt|cm)"/g)].map(([, size]) => Number(size));
  expect(sizes.length).toBeGreaterThan(2);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
});

test("leaves long code plain, and limits the nesting of scopes", { tags: ["F02"] }, async () => {
  expect(canHighlight("js", 1_000_000)).toBe(false);
  const depthOf = (pieces: readonly CodePiece[]): number =>
    Math.max(0, ...pieces.map((piece) => typeof piece === "string" ? 0 : 1 + depthOf(piece.pieces)));
  const textOf = (pieces: readonly CodePiece[]): string =>
    pieces.map((piece) => typeof piece === "string" ? piece : textOf(piece.pieces)).join("");
  const code = "/*".repeat(2000);
  const pieces = await highlight("rust", code);
  expect(depthOf(pieces)).toBeLessThan(100);
  expect(textOf(pieces)).toBe(code);
});
