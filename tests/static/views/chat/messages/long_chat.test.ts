import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  type Opened,
  openUiBench,
  sendMessage,
  type UiBench,
} from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const COUNT = 700;
const MESSAGES = Array.from({ length: COUNT }, (_, n) => ({
  id: `m${n}`,
  role: n % 2 === 0 ? "user" : "assistant",
  content: `Message ${n}.${n % 7 === 0 ? "\n\nAnd a second paragraph of it.".repeat(n % 5) : ""}${
    n === 100 ? " A needle" : ""
  }`,
}));

const open = (path: string) => bench.open(path, { prepare: (api) => api.addConversation("c1", "Long", MESSAGES) });

async function openLong(path = "/c/c1") {
  const ui = await open(path);
  await settle(ui);
  return ui;
}

/** Waits for a note that comes with the connections: who scrolls in the frame that adds it stays at the end. */
const settle = ({ page }: Opened) => page.locator(".composer-note").waitFor();

const pagesAsked = (ui: Awaited<ReturnType<typeof openLong>>) => ui.api.seen("GET", "/api/conversations/c1/messages");

test("opens a long chat at its end with only the last messages", async () => {
  await using ui = await openLong();
  await ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true }).waitFor();
  await expect.poll(() => ui.page.locator(".message").count()).toBeLessThan(100);
  // The conversation and its messages in one request.
  const asked = ui.api.seen("GET", "/api/conversations/c1").map(({ query }) => query.toString());
  expect(asked).toEqual(["view=recent&limit=60"]);
  const box = ui.page.locator(".message-scroll");
  await eventually(
    () => box.evaluate((b) => Math.round(b.scrollHeight - b.scrollTop - b.clientHeight)),
    (px) => px < 2,
  );
});

test("loads older messages above without moving the reader, up to the first", async () => {
  await using ui = await openLong();
  await ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true }).waitFor();
  const box = ui.page.locator(".message-scroll");
  // Scrolls up a screen at a time, and checks in every frame that nothing in view has jumped.
  const jumps = await box.evaluate(async (scroll) => {
    const jumps: number[] = [];
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const inView = () => {
      const top = scroll.getBoundingClientRect().top;
      const all = [...scroll.querySelectorAll<HTMLElement>(".message")];
      return all.find((each) => each.getBoundingClientRect().top >= top + 20);
    };
    for (let step = 0; step < 10_000 && !scroll.querySelector('[data-message-id="m0"]'); step++) {
      scroll.scrollTop -= 1000;
      // Elements that come into view are measured in the next frame.
      for (let n = 0; n < 3; n++) await frame();
      const seen = inView();
      const before = seen?.getBoundingClientRect().top ?? 0;
      for (let n = 0; n < 3; n++) await frame();
      if (seen?.isConnected) jumps.push(Math.abs(seen.getBoundingClientRect().top - before));
    }
    return jumps;
  });
  await ui.page.locator('[data-message-id="m0"]').waitFor({ state: "attached" });
  expect(Math.max(...jumps)).toBeLessThan(2);
  await expect.poll(() => ui.page.locator(".message").count()).toBe(COUNT);
  await expect.poll(() => ui.page.getByRole("button", { name: "Show earlier messages" }).count()).toBe(0);
  const ids = await ui.page.locator(".message").evaluateAll((all) =>
    all.map((each) => each.getAttribute("data-message-id"))
  );
  expect(ids).toEqual(MESSAGES.map(({ id }) => id));
});

test("a link to a message scrolls to it, one step from the end", async () => {
  await using ui = await openLong("/c/c1#m100");
  const target = ui.page.locator('[data-message-id="m100"]');
  await target.waitFor();
  await eventually(() =>
    target.evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top > 40 && bottom < innerHeight - 60;
    }), (isInView) => isInView);
  await expect.poll(() => ui.page.locator(".message").count()).toBeLessThan(200);
  await ui.page.getByRole("button", { name: /^Jump to latest/ }).click();
  const last = ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true });
  await last.waitFor();
  await eventually(
    () => last.evaluate((element) => element.getBoundingClientRect().bottom < innerHeight),
    (isIn) => isIn,
  );
});

test.each(["no-preference", "reduce"] as const)(
  "a message that a link leads to is highlighted for two seconds, reduced motion: %s",
  async (reducedMotion) => {
    await using ui = await bench.open("/new", {
      reducedMotion,
      prepare: (api) => api.addConversation("c1", "Short", MESSAGES.slice(0, 4)),
    });
    const { page, api } = ui;
    await page.clock.install();
    await page.goto(`${api.origin}/c/c1`);
    const target = page.locator('[data-message-id="m1"]');
    await target.waitFor();
    await page.clock.pauseAt(Date.now() + 60_000);
    const getColor = () => target.evaluate((element) => getComputedStyle(element).backgroundColor);
    const plain = await getColor();
    await target.evaluate((element) => {
      element.addEventListener("animationend", ({ target }) => {
        if (target === element) element.setAttribute("data-faded", "");
      });
      location.hash = "m1";
    });
    await page.clock.runFor(500);
    await page.locator(".message.is-target").waitFor();
    await expect.poll(() => getColor()).not.toBe(plain);
    await page.clock.runFor(1400);
    await expect.poll(() => page.locator(".message.is-target").count()).toBe(1);
    await page.clock.runFor(700);
    await expect.poll(() => page.locator(".message.is-target").count()).toBe(0);
    if (reducedMotion === "no-preference") await page.locator(".message[data-faded]").waitFor();
    await expect.poll(() => getColor()).toBe(plain);
  },
);

test("loads the following messages on scrolling down from a message far back", async () => {
  await using ui = await openLong("/c/c1#m100");
  await ui.page.locator('[data-message-id="m100"]').waitFor();
  const box = ui.page.locator(".message-scroll");
  await eventually(async () => {
    await box.evaluate((scroll) => scroll.scrollTop += 400);
    return await ui.page.locator('[data-message-id="m180"]').count();
  }, (count) => count === 1);
  const ids = await ui.page.locator(".message").evaluateAll((all) =>
    all.map((each) => Number(each.getAttribute("data-message-id")!.slice(1)))
  );
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, n) => ids[0]! + n));
});

test("a link to a deleted message says so and shows the end", async () => {
  await using ui = await open("/c/c1#nonesuch");
  await ui.page.getByText("That message is no longer in this chat.").waitFor();
  await ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true }).waitFor();
});

test("Ctrl+F searches the whole chat, steps through the hits, and pressed again is the browser's own", async () => {
  await using ui = await openLong();
  await ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true }).waitFor();
  await ui.page.keyboard.press("Control+f");
  const field = ui.page.getByRole("searchbox", { name: "Search in this chat" });
  await field.pressSequentially("needle");
  await ui.page.locator(".chat-search-count").getByText("1 of 1").waitFor();
  await eventually(() => ui.page.locator('[data-message-id="m100"]').isVisible(), (isVisible) => isVisible);
  // Highlights appear one frame after the message.
  await eventually(() => ui.page.evaluate(() => CSS.highlights.get("found")?.size), (size) => size === 1);

  await field.fill("second paragraph");
  await ui.page.locator(".chat-search-count").getByText("1 of 2+").waitFor();
  await field.press("Enter");
  await ui.page.locator(".chat-search-count").getByText("2 of 2+").waitFor();
  await field.press("Enter");
  await ui.page.locator(".chat-search-count").getByText("3 of 4+").waitFor();
  await field.press("Shift+Enter");
  await ui.page.locator(".chat-search-count").getByText("2 of 4+").waitFor();

  // The browser's own search opens if the page ignores the key.
  const isTaken = await ui.page.evaluate(() =>
    !document.dispatchEvent(new KeyboardEvent("keydown", { key: "f", ctrlKey: true, cancelable: true, bubbles: true }))
  );
  expect(isTaken).toBe(false);
  await field.fill("nonesuch");
  await ui.page.locator(".chat-search-count").getByText("No results").waitFor();
  await field.fill("needle");
  await eventually(() => ui.page.evaluate(() => CSS.highlights.get("found")?.size), (size) => size === 1);
  await field.press("Escape");
  await field.waitFor({ state: "detached" });
  await eventually(() => ui.page.evaluate(() => CSS.highlights.has("found")), (has) => !has);
  await eventually(
    () => ui.page.evaluate(() => document.activeElement?.getAttribute("aria-label")),
    (label) => label === "Message",
  );
});

test("highlights what a search found in a message, not in its time", async () => {
  const message = { id: "m1", role: "user", content: "Platform 47", created_at: "2026-01-02T10:47:00Z" };
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Trains", [message, { role: "assistant", content: "Thanks" }]),
    hasTouch: true,
    isMobile: true,
    viewport: { width: 390, height: 844 },
  });
  await ui.page.locator('[data-message-id="m1"]').getByText(":47").waitFor();
  await ui.page.keyboard.press("Control+f");
  await ui.page.getByRole("searchbox", { name: "Search in this chat" }).fill("47");
  await eventually(() => ui.page.evaluate(() => CSS.highlights.get("found")?.size), (size) => size === 1);
});

test("shows another device's changes far from the end where they are loaded", async () => {
  await using ui = await openLong("/c/c1#m100");
  await ui.page.locator('[data-message-id="m100"]').waitFor();
  const conversation = ui.api.conversations.get("c1")!;
  conversation.messages[100]!.content = "Changed on the phone";
  ui.api.publish("conversation", "c1", ++conversation.revision);
  await ui.page.getByText("Changed on the phone").waitFor();
  conversation.messages.splice(101, 1);
  ui.api.publish("conversation", "c1", ++conversation.revision);
  await ui.page.locator('[data-message-id="m101"]').waitFor({ state: "detached" });
  await expect.poll(() => ui.page.getByText("Changed on the phone").isVisible()).toBe(true);
});

test("scrolls to the end after sending from far back", async () => {
  await using ui = await openLong("/c/c1#m100");
  await ui.page.locator('[data-message-id="m100"]').waitFor();
  await sendMessage(ui.page, "And now?");
  await ui.page.getByText("And now?").waitFor();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  expect(pagesAsked(ui).length).toBeGreaterThan(0);
});

test("loads older messages where a busy browser reports old places of the list's end together with the last one", async () => {
  await using ui = await openLong();
  await ui.page.addInitScript(() => {
    globalThis.IntersectionObserver = class extends IntersectionObserver {
      constructor(callback: IntersectionObserverCallback, options?: IntersectionObserverInit) {
        super((entries, observer) => {
          const old = { ...entries[0]!, isIntersecting: !entries[0]!.isIntersecting };
          callback([old, ...entries], observer);
        }, options);
      }
    };
  });
  await ui.page.reload();
  await settle(ui);
  await ui.page.getByText(`Message ${COUNT - 1}.`, { exact: true }).waitFor();
  const getFirst = () => ui.page.locator(".message").first().getAttribute("data-message-id");
  for (let round = 0; round < 3; round++) {
    const before = await getFirst();
    await ui.page.locator(".message-scroll").evaluate((scroll) => scroll.scrollTop = 0);
    await eventually(getFirst, (id) => id !== before);
  }
});

test("the reading position holds when a taller block replaces the one at the top, as a diagram replaces its source", async () => {
  const paragraphs = Array.from(
    { length: 40 },
    (_, n) => `Paragraph ${n}. ${"The tide went out before noon. ".repeat(4)}`,
  );
  const source = `\`\`\`text\n${"A line\n".repeat(6)}\`\`\``;
  const content = [...paragraphs.slice(0, 20), source, ...paragraphs.slice(20)].join("\n\n");
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      const question = { id: "q", role: "user", content: "Tell me" } as const;
      api.addConversation("c2", "Replaced", [question, { id: "a", role: "assistant", content }]);
    },
  });
  const { page, api } = ui;
  // As in Safari, which holds nothing by itself.
  await page.addInitScript(() => {
    const { supports } = CSS;
    CSS.supports = (...args: unknown[]) => args[0] !== "overflow-anchor" && Reflect.apply(supports, CSS, args);
  });
  await page.goto(`${api.origin}/c/c2`);
  await page.locator(".composer-note").waitFor();
  await page.locator(".reply .code-block").waitFor({ state: "attached" });
  const box = page.locator(".message-scroll");
  await box.evaluate((box: HTMLElement) => box.style.overflowAnchor = "none");
  // Its last lines are seen.
  const leave = () =>
    box.evaluate((box) => {
      const px = box.querySelector(".code-block")!.getBoundingClientRect().bottom - box.getBoundingClientRect().top -
        60;
      box.scrollTop += px;
      return Math.abs(px);
    });
  await expect.poll(leave).toBeLessThan(1);
  const moved = await box.evaluate(async (box) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const block = box.querySelector<HTMLElement>(".code-block")!;
    const next = block.nextElementSibling!;
    for (let n = 0; n < 3; n++) await frame();
    const before = next.getBoundingClientRect().top;
    const drawn = document.createElement("div");
    drawn.style.height = `${block.offsetHeight + 200}px`;
    block.replaceWith(drawn);
    for (let n = 0; n < 5; n++) await frame();
    return Math.round(next.getBoundingClientRect().top - before);
  });
  expect(Math.abs(moved)).toBeLessThanOrEqual(2);
});
