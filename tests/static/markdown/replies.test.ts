/** @slow Renders 540 texts in six places and as they grow: 13 s of processor time. */
import commonmark from "commonmark-spec";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Rendered, RenderTask } from "../../corpus/replies/page.ts";
import { type Place, REPLIES, type Reply } from "../../corpus/replies/replies.ts";
import { DIFFERENCES } from "../../corpus/replies/commonmark_differences.ts";
import { FORMULAS } from "../../corpus/replies/formulas.ts";
import { splitReasoning } from "../../../static/src/state/chat/message_text.ts";
import { openBrowser } from "../../helpers/browser/browser.ts";
import { bundleForPage } from "../../helpers/browser/page_bundle.ts";

let close: () => Promise<void>;
let page: Page;

beforeAll(async () => {
  const browser = await openBrowser();
  close = () => browser.close();
  page = await browser.newPage();
  await page.addScriptTag({ content: await bundleForPage(new URL("../../corpus/replies/page.ts", import.meta.url)) });
  for (const name of ["base", "prose"]) {
    await page.addStyleTag({ path: new URL(`../../../static/src/styles/${name}.css`, import.meta.url).pathname });
  }
  // Cells as wide as their column, so that a side can be told from the other.
  await page.addStyleTag({ content: "table { width: 100% } th, td { width: 50% }" });
});
afterAll(() => close());

function render(tasks: RenderTask[]): Promise<Rendered[]> {
  return page.evaluate((tasks) => {
    const { renderReplies } = globalThis as unknown as { renderReplies: (tasks: RenderTask[]) => Rendered[] };
    return renderReplies(tasks);
  }, tasks);
}

/** Puts a text somewhere into a message. @returns The message and what it shows. */
function place({ markdown, shows, kind }: Reply, where: Place): [markdown: string, shows: string] {
  const lines = markdown.split("\n");
  switch (where) {
    case "whole":
      return [markdown, shows];
    case "last":
      return [`Before it.\n\n${markdown}`, `<p>Before it.</p>${shows}`];
    case "first":
      return [`${markdown}\n\nAfter it.`, `${shows}<p>After it.</p>`];
    case "list":
      return [
        lines.map((line, n) => n === 0 ? `- ${line}` : line === "" ? "" : `  ${line}`).join("\n") + "\n- next",
        `<ul><li>${shows}</li><li><p>next</p></li></ul>`,
      ];
    case "quote":
      return [lines.map((line) => `> ${line}`).join("\n"), `<blockquote>${shows}</blockquote>`];
    case "cell":
      return [
        `| a | b |\n|---|---|\n| ${kind === "formulas" ? markdown.replaceAll("\n", "") : markdown} | end |`,
        "<table><thead><tr><th><p>a</p></th><th><p>b</p></th></tr></thead><tbody>" +
        `<tr><td>${shows}</td><td><p>end</p></td></tr></tbody></table>`,
      ];
  }
}

/** A cell holds one line of inline content. */
function canBeAt({ markdown, shows, kind, not }: Reply, where: Place): boolean {
  if (not?.includes(where)) return false;
  if (where !== "cell") return true;
  if (kind === "formulas") return true;
  return !markdown.includes("|") && !markdown.includes("\n") && /^<p>(?:(?!<p>).)*<\/p>$/.test(shows);
}

/** Outer lists and quotes may have a direction already. */
const withoutDirections = (shows: string) => shows.replace(/ dir="(?:ltr|rtl)"/g, "");

/** Headings get the next free level, which containers don't change. */
test.each(["whole", "last", "first", "list", "quote", "cell"] satisfies Place[])(
  "shows each text as a reader expects it: %s",
  async (where) => {
    const replies = REPLIES.filter((reply) => canBeAt(reply, where));
    const placed = replies.map((reply) => place(reply, where));
    const tasks = placed.map(([text], n) => ({
      text,
      isMarkdown: replies[n]!.isMarkdown ?? false,
      pieces: where === "whole" ? [3, 17, ...(n % 4 === 1 ? [1] : [])] : where === "last" ? [17] : [],
    }));
    const found = await render(tasks);
    const wrong = found.flatMap(({ shows, directions, differences, isPlain }, n) => {
      const reply = replies[n]!;
      const [text, expected] = placed[n]!;
      const isWhole = where === "whole";
      const isRight = isWhole ? shows === expected : withoutDirections(shows) === withoutDirections(expected);
      const unlike = differences.filter(({ isFinal }) => isFinal || !reply.isLate);
      const isDirected = !isWhole || directions === (reply.directions ?? directions.replaceAll("rtl", "ltr"));
      if (isRight && !isPlain && isDirected && unlike.length === 0) return [];
      return [{ text, shows, expected, ...(!isDirected && { directions }), ...(unlike.length > 0 && { unlike }) }];
    });
    expect(wrong).toEqual([]);
  },
);

test("renders every formula, inline and as a display", async () => {
  expect(FORMULAS.length).toBeGreaterThanOrEqual(180);
  const inline = await render(FORMULAS.map((tex) => ({ text: `So \\(${tex}\\) holds` })));
  const bare = await render(FORMULAS.map((tex) => ({ text: tex.includes("$") ? `\\[${tex}\\]` : `$$${tex}$$` })));
  const wrong = FORMULAS.filter((_, n) => {
    const [one, other] = [inline[n]!.shows, bare[n]!.shows];
    const isInline = /^<p>So (?:<math>|<\/p><p><math block><\/p><p>) ?holds<\/p>$/.test(
      one.replace("So</p>", "So </p>"),
    );
    return !isInline || other !== "<p><math block></p>";
  });
  expect(wrong).toEqual([]);
});

/** Levels of headings depend on the message, not on the number of their signs. */
const withoutLevels = (shows: string) => shows.replace(/(<\/?h)\d>/g, "$1>");

test("shows CommonMark's examples as its specification does, except those on the list", async () => {
  const examples = commonmark.tests as { number: number; markdown: string; html: string }[];
  const withTabs = (text: string) => text.replaceAll("→", "\t");
  const found = await render(examples.map(({ markdown }) => ({ text: withTabs(markdown), isMarkdown: true })));
  const references = await page.evaluate((htmls) => {
    const { showReferences } = globalThis as unknown as { showReferences: (htmls: string[]) => string[] };
    return showReferences(htmls);
  }, examples.map(({ html }) => withTabs(html)));
  const different = examples.filter((_, n) => withoutLevels(found[n]!.shows) !== withoutLevels(references[n]!));
  expect(different.map(({ number }) => number)).toEqual(Object.values(DIFFERENCES).flat().sort((a, b) => a - b));
});

test("a copied message is as it was written", () => {
  // Except what a model thinks, which is not part of its answer.
  const others = REPLIES.filter(({ markdown }) => !markdown.startsWith("<thinking>"));
  expect(others.filter(({ markdown }) => splitReasoning(markdown).text !== markdown)).toEqual([]);
});

test("has at least 400 texts of its own, none twice", () => {
  expect(new Set(REPLIES.map(({ markdown }) => markdown)).size).toBe(REPLIES.length);
  expect(REPLIES.length).toBeGreaterThanOrEqual(400);
});
