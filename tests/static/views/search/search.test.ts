import { afterAll, beforeAll, expect, test } from "vitest";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { findAxeProblems } from "../../../helpers/browser/browser.ts";
import { eventually, openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

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

test("groups hits by chat, and narrows them to a character, a role and a time", async () => {
  const prepare = (api: FakeApi) => {
    fill(api);
    api.people.add("mira", { name: "Mira" });
    Object.assign(api.conversations.get("c1")!, { character_ids: ["mira"] });
  };
  await using ui = await bench.open("/search?q=ducks&role=user", { prepare, ...PHONE });
  const { page, api } = ui;
  const asked = () => Object.fromEntries(api.seen("GET", "/api/search").at(-1)?.query ?? []) as Record<string, string>;
  const hits = page.getByRole("list", { name: "Results" });
  await page.getByLabel("Who wrote it").waitFor();
  await expect.poll(() => page.getByLabel("Who wrote it").inputValue()).toBe("user");
  await eventually(asked, ({ q, role }) => q === "ducks" && role === "user");
  await page.getByLabel("Who wrote it").selectOption({ label: "All messages" });
  await eventually(asked, ({ role }) => role === undefined);
  // The name of the chat stands once, as the first hit or above it.
  await eventually(() => hits.locator(".hit").count(), (count) => count === 3);
  await expect.poll(() => hits.getByText("About ducks").count()).toBe(1);
  await page.getByLabel("Character").selectOption({ label: "Mira" });
  await eventually(asked, ({ character_id }) => character_id === "mira");
  await page.getByLabel("Time").selectOption({ label: "Last 30 days" });
  const { since } = await eventually(asked, (query) => query.since !== undefined);
  expect(Date.now() - Date.parse(since!)).toBeGreaterThan(29 * 86_400_000);
  await expect.poll(() => new URL(page.url()).search).toBe("?q=ducks&character=mira&days=30");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  const before = api.seen("GET", "/api/search").length;
  await page.reload();
  await eventually(() => api.seen("GET", "/api/search").length, (count) => count > before);
  await expect.poll(() => page.getByLabel("Character").inputValue()).toBe("mira");
  await eventually(asked, (query) => query.character_id === "mira" && query.since !== undefined);
});
