/** Pictures, sound and sources that a model returns, on the page. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, gather, useModel } from "../../../../helpers/app/chat_client.ts";
import { openTestApp } from "../../../../helpers/app/test_app.ts";
import { findAxeProblems, openBrowser, openPage } from "../../../../helpers/browser/browser.ts";
import { builtUi } from "../../../../helpers/browser/built_ui.ts";
import { WIDTHS } from "../../../../helpers/browser/ui_page.ts";
import { openMediaModel, SOURCE } from "../../../../helpers/fakes/llm/fake_media_model.ts";
import { noise } from "../../../../helpers/files/pictures.ts";

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
