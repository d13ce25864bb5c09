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
    await page.getByRole("menuitem", { name: "Regenerate" }).waitFor();
    await expect.poll(() => page.getByText("Alt R").count()).toBe(0);
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
    await page.getByRole("button", { name: "Chat actions" }).click();
    await page.getByRole("menuitem", { name: "New chat" }).click();
    await page.waitForURL(`${api.origin}/new`, { waitUntil: "commit" });
  },
);

test("a text of several lines has the whole width of the phone, until it is empty", async () => {
  await using ui = await bench.open("/c/c1", {
    ...PHONE,
    prepare: (api) => api.addConversation("c1", "A story", [{ role: "user", content: "Go" }]),
  });
  const { page } = ui;
  const box = page.getByLabel("Message", { exact: true });
  const width = async () => (await box.boundingBox())!.width;
  await box.fill("Hello");
  expect(await width()).toBeLessThan(250);
  await box.fill("Once upon a time there was a dragon who kept bees.");
  await eventually(width, (px) => px > 320);
  // Shorter than one line of the wider box: it doesn't jump while it is edited.
  await box.fill("Once upon a time");
  const send = (await page.getByRole("button", { name: "Send" }).boundingBox())!;
  const text = (await box.boundingBox())!;
  expect(send.y).toBeGreaterThanOrEqual(text.y + text.height);
  expect(send.x + send.width).toBeGreaterThan(360);
  await box.fill("");
  await eventually(width, (px) => px < 250);
});
