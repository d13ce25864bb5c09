/** Pictures, sound and sources that a model returns, on the page. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, gather, useModel } from "../../../../helpers/app/chat_client.ts";
import { openTestApp } from "../../../../helpers/app/test_app.ts";
import { findAxeProblems, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { WIDTHS } from "../../../../helpers/browser/ui_page.ts";
import { openMediaModel, SOURCE } from "../../../../helpers/fakes/llm/fake_media_model.ts";
import { noise, picturePart, putPicture } from "../../../../helpers/files/pictures.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test.each(WIDTHS)("shows the picture, the sound and the numbered sources of a reply, %s", async (_width, size) => {
  await using model = openMediaModel({
    images: [noise(320, 200).toBase64()],
    sound: { seconds: 0.5, transcript: "It rains where foxes sleep." },
    sources: [SOURCE, { url: "https://example.org/foxes?page=2", title: "Foxes in the rain" }],
  });
  await using app = await openTestApp();
  await useModel(app, model);
  await app.put("/api/setup/complete", {});
  const { page, foreign } = await openPage(browser, app.url, size);
  await gather(await ask(app, 1, { context: "server", model: "m" }));
  await page.goto(`${app.url}/c/c1`);
  const reply = page.locator("article.reply");
  const picture = reply.locator("img");
  await picture.waitFor();
  await expect.poll(() => picture.evaluate((img: HTMLImageElement) => [img.naturalWidth, img.naturalHeight]))
    .toEqual([320, 200]);
  const player = reply.locator("audio");
  await expect.poll(() => player.evaluate((audio: HTMLAudioElement) => audio.duration)).toBeCloseTo(0.5, 1);
  await expect.poll(() => player.getAttribute("aria-label")).toBe("Recording 1");
  const starts = await Promise.all([picture, player].map(async (one) => (await one.boundingBox())!.x));
  expect(starts[0], "both begin where the reply does").toBe(starts[1]);
  const sources = reply.locator("ol li");
  await expect.poll(() => sources.allInnerTexts()).toEqual([
    expect.stringContaining("Wet"),
    expect.stringContaining("Foxes in the rain"),
  ]);
  await expect.poll(() => sources.locator("a").evaluateAll((links) => links.map((link) => link.getAttribute("href"))))
    .toEqual([
      SOURCE.url,
      "https://example.org/foxes?page=2",
    ]);

  await page.reload();
  await reply.locator("img").waitFor();
  await reply.locator("audio").waitFor();
  await expect.poll(() => sources.count()).toBe(2);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  expect(foreign).toEqual([]);
});

test.each(WIDTHS)("a picture has its place before it's loaded, %s", async (_width, size) => {
  await using app = await openTestApp();
  await app.put("/api/setup/complete", {});
  await putPicture(app, "wide.png", noise(800, 500));
  await putPicture(app, "tall.png", noise(100, 700));
  await putPicture(app, "small.png", noise(30, 20));
  const result = [picturePart("/api/attachments/small.png")];
  const stored = await app.put("/api/conversations/c1", {
    title: "Pictures",
    messages: [
      { id: "m0", role: "user", content: [picturePart("/api/attachments/wide.png")] },
      { id: "m1", role: "assistant", content: "Here", attachments: ["tall.png"] },
      {
        ...{ id: "m2", role: "assistant", content: "", reply_id: "m4" },
        tool_calls: [{ id: "call", type: "function", function: { name: "draw", arguments: "{}" } }],
      },
      { id: "m3", role: "tool", tool_call_id: "call", content: result, reply_id: "m4" },
      { id: "m4", role: "assistant", content: "Drawn" },
    ],
  });
  expect(stored.status).toBe(201);
  const { page } = await openPage(browser, app.url, size);
  const held: (() => Promise<void>)[] = [];
  await page.route("**/api/attachments/*.png", (route) => void held.push(() => route.continue()));
  await page.goto(`${app.url}/c/c1`);
  const pictures = page.locator(".message img");
  const boxes = () =>
    pictures.evaluateAll((all) =>
      (all as HTMLImageElement[]).map((img) => [img.complete, Math.round(img.width), Math.round(img.height)])
    );
  await expect.poll(() => held.length).toBe(3);
  const before = await boxes();
  expect(before.map(([isLoaded]) => isLoaded)).toEqual([false, false, false]);
  for (const load of held) await load();
  await expect.poll(async () => (await boxes()).map(([isLoaded]) => isLoaded)).toEqual([true, true, true]);
  expect((await boxes()).map(([, ...box]) => box)).toEqual(before.map(([, ...box]) => box));
  expect(before.map(([, width, height]) => width as number / (height as number))).toEqual([
    expect.closeTo(1.6, 1),
    expect.closeTo(1 / 7, 1),
    expect.closeTo(1.5, 1),
  ]);
});
