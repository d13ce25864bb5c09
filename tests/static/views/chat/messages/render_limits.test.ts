/** @slow The browser draws texts of many megabytes. */
import type { Message } from "../../../../../static/src/api/types.ts";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  type Opened,
  openUiBench,
  type UiBench,
  type UiOptions,
} from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const NOTE = "Shown as plain text because it’s too complex to format";
const FORMATTED: Partial<Message> = { role: "assistant", content: "A *formatted* reply" };

const message = (page: Page, n: number) => page.locator(`[data-message-id="c1-m${n}"]`);

/** Opens a chat with the replies between two formatted ones, and waits for the last. */
async function openBetween(replies: Partial<Message>[], options: UiOptions = {}): Promise<Opened> {
  const ui = await bench.open("/c/c1", {
    ...options,
    prepare: (api) => {
      options.prepare?.(api);
      api.addConversation("c1", "Chat", [
        FORMATTED,
        ...replies.map((each) => ({ role: "assistant", ...each })),
        FORMATTED,
      ]);
    },
  });
  await message(ui.page, replies.length + 1).locator("em", { hasText: "formatted" }).waitFor();
  return ui;
}

/** Deletes a message from its menu, with all others rendered. */
async function deleteMessage({ page, api }: Opened, n: number): Promise<void> {
  const before = api.conversations.get("c1")!.messages.length;
  await message(page, n).hover();
  await message(page, n).getByRole("button", { name: "Message actions" }).click();
  await page.getByRole("menuitem", { name: "Delete", exact: true }).click();
  await message(page, n).waitFor({ state: "detached" });
  await expect.poll(() => page.locator("em", { hasText: "formatted" }).count()).toBe(2);
  await eventually(() => api.conversations.get("c1")!.messages.length, (length) => length === before - 1);
}

const columns = (text: string) => `|${text}`.repeat(10_000) + "|\n";

/** Texts that no browser can format in time, or on which marked would overflow the stack. */
const OVER_THE_LIMITS: readonly [name: string, text: string][] = [
  ["6,000 levels of quotes", `${">".repeat(6000)} x`],
  ["3,000 levels of lists", `${"- ".repeat(3000)}x`],
  ["quotes and lists, 1,500 levels each", `${"> - ".repeat(1500)}x`],
  ["100,000 asterisks", "*".repeat(100_000)],
  ["a line of 1 MB", "word ".repeat(200_000)],
  ["a table of 10,000 columns", columns("a") + columns("-") + columns("b")],
  ["an HTML table of 1,000,000 columns", `<table><tr>${"<td colspan=1000>x</td>".repeat(1000)}</tr></table>`],
  ["600 open elements that cut emphases", "](<summary title=a>**".repeat(600)],
  ["20,000 open elements", "<div>\n".repeat(20_000)],
  [
    "formatting elements that open again in every paragraph",
    `<div>${Array.from({ length: 2000 }, (_, n) => `<b title=${n}>`).join("")}${"<p>x".repeat(2000)}`,
  ],
];

test.each(OVER_THE_LIMITS)(
  "shows %s as plain text, and the message can be deleted",
  { tags: ["F02"] },
  async (_, text) => {
    await using ui = await openBetween([{ content: text }]);
    await message(ui.page, 1).getByText(NOTE).waitFor();
    await expect.poll(() => message(ui.page, 1).locator(".plain-text").textContent()).toBe(text);
    await expect.poll(() => message(ui.page, 1).locator(".prose *").count()).toBe(2);
    await deleteMessage(ui, 1);
  },
);

test.each([
  ["33,000 begun emphases", "*a ".repeat(33_000).trim()],
  ["10,000 nested brackets", "[".repeat(10_000) + "x" + "]".repeat(10_000)],
  ["90,000 open brackets", "[".repeat(90_000)],
  ["16,000 begun links", "[a](b".repeat(16_000)],
])("shows %s, formatted or not, and the message can be deleted", { tags: ["F02"] }, async (_, text) => {
  await using ui = await openBetween([{ content: text }]);
  await message(ui.page, 1).locator(".prose").waitFor();
  await expect.poll(async () => (await message(ui.page, 1).locator(".prose").textContent())!.replace(NOTE, "").trim())
    .toBe(text);
  await deleteMessage(ui, 1);
});

test("edits and copies a message over the limits, and formats it once it's within them", {
  tags: ["F02"],
}, async () => {
  const text = `${">".repeat(6000)} x`;
  await using ui = await openBetween([{ content: text }], { permissions: ["clipboard-read", "clipboard-write"] });
  await message(ui.page, 1).getByText(NOTE).waitFor();
  await message(ui.page, 1).hover();
  await message(ui.page, 1).getByRole("button", { name: "Copy", exact: true }).click();
  await eventually(() => ui.page.evaluate(() => navigator.clipboard.readText()), (copied) => copied === text);
  await message(ui.page, 1).getByRole("button", { name: "Edit", exact: true }).click();
  const field = ui.page.getByRole("textbox", { name: "Message text" });
  await expect.poll(() => field.inputValue()).toBe(text);
  await field.fill("> *short*");
  await field.press("Control+Enter");
  await message(ui.page, 1).locator("blockquote em", { hasText: "short" }).waitFor();
  await expect.poll(() => message(ui.page, 1).getByText(NOTE).count()).toBe(0);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

test("formats long well-formed HTML", { tags: ["F02"] }, async () => {
  const panel = `<div><table>${"<tr><td title='a'>x</td><td><b>y</b></td></tr>".repeat(400)}</table></div>`;
  // The limits of tags count here, not the time that a busy machine takes.
  await using ui = await openWithClock(0.001, panel);
  await eventually(() => message(ui.page, 0).locator("td b").count(), (count) => count === 400);
});

test(
  "a reply that grows over the limits keeps formatted blocks, and is plain text at its end",
  { tags: ["F02"] },
  async () => {
    await using ui = await bench.open("/c/c1", {
      prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
    });
    // The limits of depth count here, not the time that a busy machine takes.
    await ui.page.addInitScript(clockOf(0.001));
    await ui.page.reload();
    const reply = ui.api.startReply("c1", "r1");
    await ui.page.getByRole("button", { name: "Stop" }).waitFor();
    const prose = ui.page.locator(".reply .prose");
    reply.say("A *formatted* start.\n\nThen:\n\n");
    await prose.locator("em", { hasText: "formatted" }).waitFor();
    for (let n = 0; n < 40; n++) reply.say(">".repeat(100));
    reply.say(" deep");
    await prose.locator(".plain-text", { hasText: "deep" }).waitFor();
    await expect.poll(() => prose.locator("em", { hasText: "formatted" }).count()).toBe(1);
    reply.end("complete");
    await ui.page.locator(".reply").getByText(NOTE).waitFor();
    await expect.poll(() => prose.locator(".plain-text").textContent()).toBe(reply.message.content);
    await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  },
);

test("shows a message whose view throws as plain text, which can be deleted", { tags: ["F02"] }, async () => {
  const content = "Its list of images is damaged";
  await using ui = await openBetween([{ content, attachments: 5 as unknown as string[] }]);
  await message(ui.page, 1).getByText(NOTE).waitFor();
  await expect.poll(() => message(ui.page, 1).locator(".plain-text").textContent()).toBe(content);
  await deleteMessage(ui, 1);
});

/** Advances the page's clock by a fixed step on each read, so that time limits don't depend on the machine. */
function clockOf(stepMs: number): string {
  return `let now = 0; performance.now = () => now += ${stepMs};`;
}

/** Opens a chat with one reply on a page whose clock advances when read. */
async function openWithClock(stepMs: number, content: string): Promise<Opened> {
  const ui = await bench.open("/c/none", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "assistant", content }]),
  });
  await ui.page.addInitScript(clockOf(stepMs));
  await ui.page.goto(`${ui.api.origin}/c/c1`);
  await message(ui.page, 0).waitFor();
  return ui;
}

test("shows a message that exceeds its time budget as plain text", { tags: ["F02"] }, async () => {
  // Each token takes a millisecond, and 300 paragraphs have more than 300 tokens.
  await using ui = await openWithClock(1, "One *word*.\n\n".repeat(300));
  await message(ui.page, 0).getByText(NOTE).waitFor();
  await expect.poll(() => message(ui.page, 0).locator("em").count()).toBe(0);
});

test(
  "finishes a partly rendered message when the page is idle",
  { tags: ["F02"] },
  async () => {
    const paragraphs = Array.from({ length: 300 }, (_, n) => `Number *${n}*.`);
    // Parsing takes half of the budget, and rendering more than the other half.
    await using ui = await openWithClock(0.07, paragraphs.join("\n\n"));
    await message(ui.page, 0).locator("em", { hasText: "299" }).waitFor();
    await expect.poll(() => message(ui.page, 0).locator("p em").count()).toBe(300);
    await expect.poll(() => message(ui.page, 0).getByText(NOTE).count()).toBe(0);
  },
);

/** Opens a chat with one reply on a page where each reading of the clock takes 2 ms until an attempt in idle time. */
async function openBusy(content: string, lastBusyAttempt: number): Promise<Opened> {
  const ui = await bench.open("/c/none", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "assistant", content }]),
  });
  await ui.page.addInitScript((last) => {
    let [now, stepMs, attempts] = [0, 2, 0];
    performance.now = () => now += stepMs;
    const request = globalThis.requestIdleCallback.bind(globalThis);
    globalThis.requestIdleCallback = (work, options) =>
      request((deadline) => {
        if (++attempts === last) stepMs = 0;
        work(deadline);
      }, options);
  }, lastBusyAttempt);
  await ui.page.goto(`${ui.api.origin}/c/c1`);
  return ui;
}

test("renders a formula that was late twice because the machine was busy", { tags: ["F03"] }, async () => {
  await using ui = await openBusy(`A sum: $${"a+".repeat(60)}a$`, 2);
  await message(ui.page, 0).locator("math").waitFor();
});

test("formats a message for which a busy machine had no time in four attempts", { tags: ["F02"] }, async () => {
  await using ui = await openBusy("One *word*.\n\n".repeat(300), 5);
  await message(ui.page, 0).getByText(NOTE).waitFor();
  await expect.poll(() => message(ui.page, 0).locator("em").count()).toBe(300);
  await expect.poll(() => message(ui.page, 0).getByText(NOTE).count()).toBe(0);
});

const USES = String.raw`\a`;

test.each([
  ["a macro that expands to itself", String.raw`\def\a{\a\a}\a`],
  ["two macros that expand to each other", String.raw`\def\a{\b x}\def\b{\a x}\a`],
  ["1,900 uses of a macro", String.raw`\def\a{xx}` + USES.repeat(1900)],
  ["a macro that doubles five times", String.raw`\def\a#1{#1#1#1#1#1#1#1#1#1#1}\a{\a{\a{\a{\a{x}}}}}`],
  ["an argument copied 300 times", String.raw`\def\a#1{${"#1".repeat(300)}}\a{${"x".repeat(300)}}\a{${"y".repeat(9)}}`],
  ["1,900 levels of braces", "{".repeat(1900) + "x" + "}".repeat(1900)],
  ["500 levels of roots", String.raw`\sqrt`.repeat(500) + " x"],
  ["a matrix of 3,000 cells", String.raw`\begin{matrix}${`${"a&".repeat(60)}a\\`.repeat(25)}\end{matrix}`],
])("shows the source of a formula with %s, and renders other formulas", { tags: ["F03"] }, async (_, tex) => {
  await using ui = await openBetween([{ content: `Before $${tex}$ after` }, { content: "And $y^2$" }]);
  await message(ui.page, 2).locator("math").waitFor();
  await expect.poll(() => message(ui.page, 1).locator("math").count()).toBe(0);
  await expect.poll(() => message(ui.page, 1).locator("code").textContent()).toBe(`$${tex}$`);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

test.each([
  ["20,000 uses of a macro", String.raw`$$\def\a{xx}` + USES.repeat(20_000) + "$$"],
  ["1 MB of TeX", `$$${"x^2+".repeat(250_000)}x$$`],
])("shows %s as it was written, and renders other formulas", { tags: ["F03"] }, async (_, text) => {
  await using ui = await openBetween([{ content: text }, { content: "And $y^2$" }]);
  await message(ui.page, 2).locator("math").waitFor();
  await expect.poll(() => message(ui.page, 1).locator("math").count()).toBe(0);
  await expect.poll(async () => (await message(ui.page, 1).locator(".prose").textContent())!.replace(NOTE, "").trim())
    .toBe(text);
  await deleteMessage(ui, 1);
});
