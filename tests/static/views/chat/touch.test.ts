/** Touch gestures in a chat on a phone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findSmallTargets } from "../../../helpers/browser/browser.ts";
import { eventually, openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

test(
  "a drag on a reply switches versions and stays on the page; nothing raises the keyboard",
  { timeout: 180_000 },
  async () => {
    await using ui = await bench.open("/settings/general", {
      ...PHONE,
      prepare(api) {
        const reply = { role: "assistant" as const, content: "First", variant_count: 2, active_variant: 0 };
        api.addConversation("c1", "A story", [{ role: "user", content: "Go" }, { id: "m1", ...reply }]);
        api.variants.set("m1", ["First", "Second"]);
      },
    });
    const { page, api } = ui;
    await page.goto(`${api.origin}/c/c1`);
    const reply = page.locator(".message.reply");
    await reply.waitFor();
    await expect.poll(() => reply.evaluate((element) => getComputedStyle(element).touchAction)).toContain("pan-y");
    await expect.poll(() => page.evaluate(() => getComputedStyle(document.documentElement).overscrollBehaviorX)).toBe(
      "none",
    );
    await expect.poll(() => findSmallTargets(page)).toEqual([]);

    await reply.getByRole("button", { name: "Message actions" }).tap();
    await page.getByRole("menuitem", { name: "Continue" }).waitFor();
    await expect.poll(() => page.getByText("Alt C").count()).toBe(0);
    await page.keyboard.press("Escape");

    await page.getByRole("button", { name: /^Model: / }).tap();
    const filter = page.getByLabel("Find or enter a model");
    await filter.waitFor();
    await expect.poll(() => filter.evaluate((input) => input === document.activeElement)).toBe(false);
    await page.keyboard.press("Escape");
    await filter.waitFor({ state: "detached" });

    const box = (await reply.boundingBox())!;
    const touch = await page.context().newCDPSession(page);
    const drag = async (from: number, to: number) => {
      const y = box.y + box.height / 2;
      await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: from, y }] });
      for (const part of [0.25, 0.5, 0.75, 1]) {
        await touch.send("Input.dispatchTouchEvent", {
          type: "touchMove",
          touchPoints: [{ x: from + (to - from) * part, y }],
        });
      }
      await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    };
    await drag(300, 60);
    const switches = () => api.seen("PATCH", /^\/api\/conversations\/c1\/messages\//).map(({ body }) => body);
    await eventually(switches, (bodies) => bodies.length === 1);
    await reply.getByText("2/2").waitFor();
    await drag(60, 300);
    await eventually(switches, (bodies) => bodies.length === 2);
    expect(switches()).toEqual([{ active_variant: 1 }, { active_variant: 0 }]);
    expect(new URL(page.url()).pathname).toBe("/c/c1");

    // Space that the buttons leave in the header.
    const title = (await page.locator(".chat-title-box").boundingBox())!;
    expect(title.width).toBeGreaterThan(page.viewportSize()!.width / 2);
    const fresh = page.locator(".chat-head").getByRole("button", { name: "New chat" });
    expect(Math.min((await fresh.boundingBox())!.width, (await fresh.boundingBox())!.height)).toBeGreaterThanOrEqual(
      44,
    );
    const model = (await page.getByRole("button", { name: /^Model: / }).boundingBox())!;
    expect(model.height).toBeGreaterThanOrEqual(44);
    await fresh.click();
    await page.waitForURL(`${api.origin}/new`, { waitUntil: "commit" });
  },
);

test("the actions of one's own message appear on a tap, and take no row before; the facts have one line", async () => {
  const folder = Deno.env.get("SCREENSHOTS");
  await using ui = await bench.open("/c/c1", {
    ...PHONE,
    prepare: (api) =>
      api.addConversation("c1", "A story", [
        { role: "user", content: "Go" },
        { role: "assistant", content: "Gone", model: "a-model-with-a-name-as-long-as-those-of-quantized-finetunes-q4" },
        { role: "user", content: "Go on" },
        { role: "assistant", content: "Going", variant_count: 3, active_variant: 1, model: "a-model-with-a-long-name" },
      ]),
  });
  const { page } = ui;
  const own = page.locator(".user-message");
  const actions = own.first().getByRole("group", { name: "Message actions" });
  await own.last().waitFor();
  const heightOf = async () => (await own.first().boundingBox())!.height;
  const before = await heightOf();
  expect((await actions.boundingBox())!.height).toBe(1);
  for (const facts of await page.locator(".reply .message-facts").all()) {
    expect((await facts.boundingBox())!.height).toBeLessThan(30);
  }
  if (folder) await page.screenshot({ path: `${folder}/own-folded.png` });
  await own.first().getByText("Go").tap();
  await actions.getByRole("button", { name: "Edit" }).waitFor();
  await eventually(heightOf, (px) => px >= before + 30);
  await expect.poll(() => findSmallTargets(page)).toEqual([]);
  if (folder) await page.screenshot({ path: `${folder}/own-tapped.png` });
  // Another tap folds them, and only one message has them.
  await own.last().getByText("Go on").tap();
  await eventually(heightOf, (px) => px === before);
  await own.last().getByRole("button", { name: "Edit" }).waitFor();
  await own.last().getByText("Go on").tap();
  await eventually(async () => (await own.last().boundingBox())!.height, (px) => px === before);
  // With the keyboard they're there, too.
  await own.first().getByRole("button", { name: "Message actions" }).focus();
  await eventually(heightOf, (px) => px >= before + 30);
});

test("a swipe from the left edge opens the chat list, and a tap on a menu highlights no row", async () => {
  await using ui = await bench.open("/c/c1", {
    ...PHONE,
    prepare: (api) => api.addConversation("c1", "A story", [{ role: "user", content: "Go" }]),
  });
  const { page } = ui;
  await page.locator(".user-message").waitFor();
  await page.getByRole("button", { name: "Chat actions" }).tap();
  const first = page.getByRole("menuitem", { name: "Rename" });
  await first.waitFor();
  const colorOf = (name: string) =>
    page.getByRole("menuitem", { name }).evaluate((row) => getComputedStyle(row).backgroundColor);
  await expect.poll(() => colorOf("Rename")).toBe(await colorOf("Move to folder"));
  await page.keyboard.press("ArrowDown");
  await eventually(() => colorOf("Pin"), async (color) => color !== await colorOf("Move to folder"));
  await page.keyboard.press("Escape");
  await first.waitFor({ state: "detached" });

  const touch = await page.context().newCDPSession(page);
  const swipe = async (from: number, to: number) => {
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: from, y: 400 }] });
    await touch.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x: to, y: 410 }] });
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  };
  const drawer = page.getByRole("dialog", { name: "Chats and settings" });
  await swipe(200, 330);
  await swipe(10, 40);
  await expect.poll(() => drawer.count()).toBe(0);
  await swipe(8, 150);
  await drawer.waitFor();
});

test("a text of several lines has the whole width of the phone, until it is empty", async () => {
  await using ui = await bench.open("/c/c1", {
    ...PHONE,
    prepare: (api) => api.addConversation("c1", "A story", [{ role: "user", content: "Go" }]),
  });
  const { page } = ui;
  const box = page.getByLabel("Message", { exact: true });
  const width = async () => (await box.boundingBox())!.width;
  await box.fill("Hello");
  await eventually(width, (px) => px < 250);
  await box.fill("Once upon a time there was a dragon who kept bees.");
  await eventually(width, (px) => px > 320);
  // Shorter than one line of the wider box: it doesn't jump while it is edited.
  await box.fill("Once upon a time");
  await expect.poll(async () => {
    const send = (await page.getByRole("button", { name: "Send" }).boundingBox())!;
    const text = (await box.boundingBox())!;
    return [send.y >= text.y + text.height, send.x + send.width > 360];
  }).toEqual([true, true]);
  await box.fill("");
  await eventually(width, (px) => px < 250);
});
