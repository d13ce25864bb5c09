/** What a reply can contain beyond plain text: aligned tables, footnotes, task lists, diagrams; and a stalled reply. */
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems } from "../../../../helpers/browser/browser.ts";
import { type Opened, openUiBench, type UiBench } from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

async function show(...contents: string[]): Promise<Opened> {
  const messages = contents.map((content) => ({ role: "assistant", content }));
  const ui = await bench.open("/c/c1", {
    prepare(api) {
      api.addConversation("c1", "Chat", [...messages, { role: "user", content: "A **bold** wish" }]);
      api.settings.user_markdown = true;
    },
  });
  await ui.page.locator(".message").nth(contents.length).waitFor();
  return ui;
}

const DIAGRAM = "```mermaid\ngraph TD\n  A[Start] --> B[End]\n```";
/** Each tries to run something, to load something or to take forever. */
const HOSTILE = [
  'graph TD\n  A["<img src=https://evil.example/a.png onerror=alert(1)><b>Bold</b>"] --> B',
  'graph TD\n  A --> B\n  click A "javascript:alert(1)"\n  click B "https://evil.example" _blank',
  '%%{init: {"securityLevel": "loose", "themeCSS": "@import url(https://evil.example/x.css)"}}%%\ngraph TD\n  A --> B',
  "---\nconfig:\n  securityLevel: loose\n---\ngraph TD\n  A --> B",
];
const HUGE = ["graph TD", ...Array.from({ length: 10_000 }, (_, index) => `  n${index} --> n${index + 1}`)].join("\n");

test("aligns tables, links footnotes, marks tasks without bullets, and formats own messages by choice", async () => {
  await using ui = await show(
    "| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |\n\nOne[^x], two[^second one], none[^missing], one again[^x].\n\n" +
      "- [x] done\n- [ ] open\n- plain\n\n[^x]: The *first* note.\n",
  );
  const { page } = ui;
  // On a busy machine, a message is plain text until there is time to format it.
  const alignments = () =>
    page.locator("td").evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).textAlign));
  await expect.poll(alignments).toEqual(["start", "center", "end"]);
  const bullets = () =>
    page.locator(".reply li").evaluateAll((items) => items.map((li) => getComputedStyle(li).listStyleType));
  await expect.poll(bullets).toEqual(["none", "none", "disc"]);
  await expect.poll(() => page.locator(".reply sup").allTextContents()).toEqual(["1", "1"]);
  await page.getByText("none[^missing]").waitFor();
  await page.locator("sup .footnote-mark").first().click();
  await expect.poll(() => page.evaluate(() => document.activeElement?.closest(".footnote")?.textContent?.trim())).toBe(
    "1The first note.",
  );
  await page.locator(".user-message strong", { hasText: "bold" }).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

test("only the messages scroll, also where the last one has no reply yet", async () => {
  const lines = Array.from({ length: 60 }, (_, n) => `Line ${n}`).join("\n\n");
  await using ui = await show(lines, lines);
  await expect.poll(() => ui.page.evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBe(0);
});

test("draws diagrams as images in a frame that can't load or run anything, and shows the source of others", {
  tags: ["F05"],
}, async () => {
  await using ui = await show(
    DIAGRAM,
    ...HOSTILE.map((source) => "```mermaid\n" + source + "\n```"),
    "```mermaid\n" + HUGE + "\n```",
    "```mermaid\nnonsense of no kind\n```",
  );
  const { page } = ui;
  let hasAlert = false;
  page.on("dialog", (dialog) => {
    hasAlert = true;
    void dialog.dismiss();
  });
  const images = page.locator(".diagram img");
  await expect.poll(() => images.count(), { timeout: 60_000 }).toBe(1 + HOSTILE.length);
  await expect.poll(() => page.locator(".plain-note").count(), { timeout: 60_000 }).toBe(2);
  await expect.poll(() =>
    images.evaluateAll((all) => all.every((image) => (image as HTMLImageElement).naturalWidth > 50))
  ).toBe(true);
  const sources = await images.evaluateAll((all) => all.map((image) => (image as HTMLImageElement).src));
  expect(sources.every((source) => source.startsWith("blob:"))).toBe(true);
  const frame = page.locator("iframe.diagram-frame");
  await expect.poll(() => frame.getAttribute("sandbox")).toBe("allow-scripts");
  await page.getByText("n9999 --> n10000").first().waitFor({ state: "attached" });
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect([hasAlert, ui.foreign]).toEqual([false, []]);
  // The policy of the frame blocks what the hostile labels try.
  expect(ui.errors.filter((error) => !error.includes("Executing inline event handler violates"))).toEqual([]);
});

test("says when a reply has stalled, and Stop and Retry stand beside it", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
  });
  const { page, api } = ui;
  await page.clock.install();
  await page.goto(`${api.origin}/c/c1`);
  const reply = api.startReply("c1", "r1");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  // From now on, the page's time passes in steps only.
  await page.clock.pauseAt(Date.now() + 60_000);
  const countAfterStep = async (found: Locator) => {
    await page.clock.runFor(20);
    return await found.count();
  };
  reply.say("Once upon");
  await expect.poll(() => countAfterStep(page.getByText("Once upon"))).toBe(1);
  await page.clock.runFor(19_000);
  await expect.poll(() => page.getByText("No new text for 20 s").count()).toBe(0);
  await page.clock.runFor(2000);
  await page.getByText("No new text for 20 s").waitFor();
  const stalled = page.locator(".reply-stalled");
  await expect.poll(() => stalled.getByRole("button").allTextContents()).toEqual(["Stop", "Retry"]);
  reply.say(" a time");
  await expect.poll(() => countAfterStep(stalled)).toBe(0);
});
