import { afterAll, beforeAll, expect, test } from "vitest";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { openUiBench, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

function fill(api: FakeApi): void {
  api.addConversation("c1", "About ducks", [
    { role: "user", content: "Where do the ducks go in winter?" },
    { role: "assistant", content: "The ducks go south." },
  ]);
  api.addConversation("c2", "Cooking", [{ role: "user", content: "Soup" }]);
}

test("shows hits while typing, highlights the words, and opens the message", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page } = ui;
  await page.getByRole("link", { name: "Search", exact: true }).click();
  const field = page.getByLabel("Search all chats");
  await page.getByText("Search your chats").waitFor();
  await expect.poll(() => field.evaluate((input) => input === document.activeElement)).toBe(true);
  await field.pressSequentially("ducks go");
  const hits = page.getByRole("list", { name: "Results" });
  await hits.getByText("south").waitFor();
  await page.getByText("2 results", { exact: true }).waitFor();
  // Hits of "ducks g" may come first.
  await expect.poll(() => hits.locator("mark").allInnerTexts()).toEqual(["ducks", "go", "ducks", "go"]);
  await expect.poll(() => new URL(page.url()).search).toBe("?q=ducks+go");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "About ducks" }).waitFor();
  await page.waitForURL(`${ui.api.origin}/c/c1#c1-m0`);
  await page.goBack();
  await hits.getByText("south").waitFor();
  await expect.poll(() => field.inputValue()).toBe("ducks go");
});

test("a found title opens the chat", async () => {
  await using ui = await bench.open("/search?q=cooking", { prepare: fill });
  const hit = ui.page.getByRole("list", { name: "Results" }).getByRole("link");
  await hit.waitFor();
  await expect.poll(() => hit.getAttribute("href")).toBe("/c/c2");
});

test("loads more hits near the end of the list", async () => {
  await using ui = await bench.open("/search?q=word", {
    prepare: (api) => {
      const messages = Array.from({ length: 90 }, (_, n) => ({ role: "user", content: `word ${n}` }));
      api.addConversation("c1", "Long", messages);
      api.house.hitsPerPage = 30;
    },
  });
  await ui.page.getByText("30 results so far").waitFor();
  await ui.page.locator(".hits").evaluate((box) => box.scrollTop = box.scrollHeight);
  await ui.page.getByText("60 results so far").waitFor();
  await ui.page.locator(".hits").evaluate((box) => box.scrollTop = box.scrollHeight);
  await ui.page.getByText("90 results", { exact: true }).waitFor();
});

test("shows an empty result and a failed search, and keeps the query", async () => {
  await using ui = await bench.open("/search?q=nowhere", { prepare: fill });
  await ui.page.getByText("No results").waitFor();
  ui.api.refuse("GET /api/search", { status: 500, code: "internal", message: "The search broke" });
  await ui.page.getByLabel("Search all chats").fill("ducks");
  await ui.page.getByRole("alert").getByText("The search broke").waitFor();
  ui.api.allow("GET /api/search");
  await ui.page.getByRole("button", { name: "Try again" }).click();
  await ui.page.getByText("3 results", { exact: true }).waitFor();
  await expect.poll(() => ui.page.getByLabel("Search all chats").inputValue()).toBe("ducks");
});
