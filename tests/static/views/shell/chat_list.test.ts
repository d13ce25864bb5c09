import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, findSmallTargets, holdToasts } from "../../../helpers/browser/browser.ts";
import { PATIENCE_MS, TEST_MS } from "../../../helpers/app/patience.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, PHONE, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const DAY_MS = 24 * 60 * 60 * 1000;

/** Chats of several days, one pinned, two in a folder. */
function fill(api: FakeApi): void {
  const ago = (days: number) => new Date(Date.now() - days * DAY_MS);
  // What is later than now is listed under Today, also if midnight comes during the test.
  api.addConversation("new", "The newest", [], ago(-0.5));
  api.addConversation("old", "An old one", [], ago(400));
  Object.assign(api.addConversation("pin", "A pinned one", [], ago(300)), { pinned: true });
  Object.assign(api.addConversation("f1", "Filed first", [], ago(3)), { folder: "Work" });
  Object.assign(api.addConversation("f2", "Filed second", [], ago(200)), { folder: "Work" });
}

/** A new chat lists the last chats, too. */
const sidebar = (page: Page) => page.getByRole("navigation", { name: "Chats and settings" });

test("groups chats by Pinned, their folders, and their days", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const list = ui.page.getByRole("list", { name: "Chats" });
  await list.getByRole("link", { name: "The newest" }).waitFor();
  const rows = await list.locator("li").evaluateAll((all) =>
    all.map((row) => (row.querySelector(".chat-title") ?? row).textContent)
  );
  expect(rows.slice(0, 7)).toEqual([
    "Pinned",
    "A pinned one",
    "Work",
    "Filed first",
    "Filed second",
    "Today",
    "The newest",
  ]);
  expect(rows[7]).toMatch(/^\w+ 20\d\d$/);
  expect(rows[8]).toBe("An old one");
});

test("groups chats by the time of their last message, not of their import", async () => {
  const said = [{ role: "user", content: "Long ago", created_at: "2020-05-06T07:08:09.000Z" }];
  const prepare = (api: FakeApi) => {
    // Later than now, so that midnight during the test changes nothing.
    const soon = Date.now() + DAY_MS / 2;
    api.addConversation("now", "Of today", [{ role: "user", content: "Hello" }], new Date(soon - 1000));
    api.addConversation("imported", "Imported", said, new Date(soon));
  };
  await using ui = await bench.open("/new", { prepare });
  const list = ui.page.getByRole("list", { name: "Chats" });
  await list.getByRole("link", { name: "Imported" }).waitFor();
  const rows = await list.locator("li").evaluateAll((all) =>
    all.map((row) => (row.querySelector(".chat-title") ?? row).textContent)
  );
  expect(rows).toEqual(["Today", "Of today", "May 2020", "Imported"]);
});

test.each(WIDTHS)("a chat's name has its line to itself, and the time is below it (%s)", async (width, form) => {
  const prepare = (api: FakeApi) => void api.addConversation("c1", "Ferry", [{ role: "user", content: "When?" }]);
  await using ui = await bench.open("/new", { ...form, prepare });
  if (width === "narrow") await ui.page.getByRole("button", { name: "Open the chat list" }).click();
  const row = ui.page.getByRole("list", { name: "Chats" }).locator(".chat-row");
  await row.getByRole("link", { name: "Ferry" }).waitFor();
  const isBelow = await row.evaluate((row) => {
    const bottom = row.querySelector(".chat-title")!.getBoundingClientRect().bottom;
    const time = row.querySelector("time")!.getBoundingClientRect();
    return time.height > 0 && time.top >= bottom - 1 && time.bottom <= row.getBoundingClientRect().bottom;
  });
  expect(isBelow).toBe(true);
});

test("a branch is marked next to its name, with a label for screen readers", async () => {
  const prepare = (api: FakeApi) => {
    api.addConversation("c1", "Forest", [{ role: "user", content: "Hello" }]);
    Object.assign(api.addConversation("c2", "Clearing", [{ role: "user", content: "Hi" }]), { is_branch: true });
  };
  await using ui = await bench.open("/new", { prepare });
  const list = ui.page.getByRole("list", { name: "Chats" });
  await list.getByRole("link", { name: "Clearing" }).getByRole("img", { name: "Branch", exact: true }).waitFor();
  await expect.poll(() => list.getByRole("link", { name: "Forest" }).getByRole("img").count()).toBe(0);
});

test("collapses a folder, and keeps it collapsed after a reload", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const folder = ui.page.getByRole("button", { name: "Work" });
  await folder.click();
  await sidebar(ui.page).getByRole("link", { name: "Filed first" }).waitFor({ state: "detached" });
  await ui.page.reload();
  await folder.waitFor();
  await expect.poll(() => folder.getAttribute("aria-expanded")).toBe("false");
  await folder.click();
  await sidebar(ui.page).getByRole("link", { name: "Filed first" }).waitFor();
});

test("exports a chat from its menu in three formats", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.addConversation("c1", "Plain") });
  await sidebar(ui.page).getByRole("button", { name: "Actions for “Plain”" }).click();
  for (const [name, format] of [["Markdown", "markdown"], ["JSONL", "tavern"], ["JSON", "json"]]) {
    const item = ui.page.getByRole("menuitem", { name: `Export as ${name}`, exact: true });
    await expect.poll(() => item.getAttribute("href")).toBe(`/api/conversations/c1/export?format=${format}`);
  }
});

test("renames, pins, files and unfiles a chat from its menu, by keyboard alone", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.addConversation("c1", "Plain") });
  const { page, api } = ui;
  const choose = async (name: string, item: string) => {
    await page.getByRole("button", { name: `Actions for “${name}”` }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: item }).focus();
    await page.keyboard.press("Enter");
  };
  await choose("Plain", "Rename");
  await expect.poll(() => page.getByLabel("Title").evaluate((field) => field === document.activeElement)).toBe(true);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Renamed");
  await page.keyboard.press("Enter");
  await sidebar(page).getByRole("link", { name: "Renamed" }).waitFor();
  await choose("Renamed", "Pin");
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  await choose("Renamed", "Unpin");
  await page.getByRole("heading", { name: "Pinned" }).waitFor({ state: "detached" });
  await choose("Renamed", "Move to folder");
  await page.getByRole("combobox", { name: "Folder" }).waitFor();
  await page.keyboard.type("Letters");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Letters" }).waitFor();
  await eventually(() => api.conversations.get("c1"), (chat) => Reflect.get(chat!, "folder") === "Letters");
  await choose("Renamed", "Move to folder");
  await page.getByRole("button", { name: "Remove from folder" }).click();
  await page.getByRole("button", { name: "Letters" }).waitFor({ state: "detached" });
  const changes = await eventually(() => api.seen("PATCH", "/api/conversations/c1"), ({ length }) => length === 5);
  expect(changes.map(({ body }) => body)).toEqual([
    { title: "Renamed" },
    { pinned: true },
    { pinned: null },
    { folder: "Letters" },
    { folder: null },
  ]);
});

test("reverts a refused change with a toast", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      api.addConversation("c1", "Plain");
      api.refuse("PATCH /api/conversations/c1", { status: 507, code: "storage_full", message: "The disk is full" });
    },
  });
  await sidebar(ui.page).getByRole("link", { name: "Plain" }).hover();
  await ui.page.getByRole("button", { name: "Actions for “Plain”" }).click();
  await ui.page.getByRole("menuitem", { name: "Pin" }).click();
  await ui.page.getByText("The disk is full").waitFor();
  await expect.poll(() => ui.page.getByRole("heading", { name: "Pinned" }).count()).toBe(0);
});

test("after deleting a chat by keyboard, its neighbor has the focus", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  await ui.page.getByRole("button", { name: "Actions for “Filed first”" }).focus();
  await ui.page.keyboard.press("Enter");
  await ui.page.keyboard.press("End");
  await ui.page.keyboard.press("Enter");
  await sidebar(ui.page).getByRole("link", { name: "Filed first" }).waitFor({ state: "detached" });
  await expect.poll(() => ui.page.evaluate(() => document.activeElement?.textContent)).toBe("Filed second");
});

test("selects a range of chats and all of it moves to a folder, with one Undo", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page, api } = ui;
  await sidebar(page).getByRole("link", { name: "Filed first" }).click({ modifiers: ["Shift"] });
  const box = (name: string) => sidebar(page).getByRole("checkbox", { name });
  await sidebar(page).getByRole("status").getByText("1 selected").waitFor();
  await expect.poll(() => box("Filed first").isChecked()).toBe(true);
  await box("The newest").click({ modifiers: ["Shift"] });
  await sidebar(page).getByRole("status").getByText("3 selected").waitFor();
  await expect.poll(() => box("Filed second").isChecked()).toBe(true);
  await box("Filed second").click();
  await sidebar(page).getByRole("status").getByText("2 selected").waitFor();
  await page.getByRole("button", { name: "Move to folder" }).click();
  await page.getByRole("heading", { name: "Move 2 chats to folder" }).waitFor();
  await holdToasts(page);
  await page.getByRole("combobox", { name: "Folder" }).fill("Letters");
  await page.keyboard.press("Enter");
  await page.getByText("2 chats moved").waitFor();
  const folderOf = (id: string) => Reflect.get(api.conversations.get(id)!, "folder");
  expect(["f1", "f2", "new"].map(folderOf)).toEqual(["Letters", "Work", "Letters"]);
  await page.getByRole("button", { name: "Undo" }).click();
  await eventually(() => ["f1", "f2", "new"].map(folderOf), (all) => `${all}` === "Work,Work,");
});

test("selects by keyboard: Space selects, Shift and Space a range, Escape leaves and the focus stays", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page, api } = ui;
  await page.getByRole("button", { name: "Actions for “A pinned one”" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Select" }).press("Enter");
  const box = (name: string) => sidebar(page).getByRole("checkbox", { name });
  await eventually(() => box("A pinned one").evaluate((field) => field === document.activeElement), Boolean);
  await box("Filed second").focus();
  await page.keyboard.press("Shift+Space");
  await sidebar(page).getByRole("status").getByText("3 selected").waitFor();
  await page.keyboard.press("Space");
  await sidebar(page).getByRole("status").getByText("2 selected").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await holdToasts(page);
  await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
  await page.getByText("2 chats deleted").waitFor();
  await sidebar(page).getByRole("link", { name: "Filed first" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await sidebar(page).getByRole("link", { name: "Filed first" }).waitFor();
  await expect.poll(() => api.seen("DELETE", /./)).toEqual([]);
  await page.getByRole("button", { name: "Actions for “An old one”" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Select" }).press("Enter");
  await eventually(() => box("An old one").evaluate((field) => field === document.activeElement), Boolean);
  await page.keyboard.press("Escape");
  await box("An old one").waitFor({ state: "detached" });
  await eventually(() => page.evaluate(() => document.activeElement?.textContent), (text) => text === "An old one");
});

test("exports the selected chats as one file, and deletes them when Undo is over", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  const { page, api } = ui;
  await sidebar(page).getByRole("link", { name: "Filed first" }).click({ modifiers: ["Shift"] });
  await page.getByRole("button", { name: "Select all" }).click();
  await sidebar(page).getByRole("status").getByText("5 selected").waitFor();
  await page.getByRole("button", { name: "Export", exact: true }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as Markdown" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^parlor-.*\.zip$/);
  await expect.poll(() => api.seen("POST", "/api/export").map(({ body }) => body)).toEqual([
    { kind: "conversations", ids: ["new", "f1", "f2", "pin", "old"], format: "markdown" },
  ]);
  await holdToasts(page);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("5 chats deleted").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await eventually(() => api.conversations.size, (size) => size === 0);
});

test("on phones a long press starts selecting, and the targets are large enough", async () => {
  await using ui = await bench.open("/new", { ...PHONE, prepare: fill });
  const { page } = ui;
  await page.getByRole("button", { name: "Open the chat list" }).click();
  const link = sidebar(page).getByRole("link", { name: "The newest" });
  await link.evaluate((element) =>
    element.dispatchEvent(
      new PointerEvent("contextmenu", { pointerType: "touch", bubbles: true, cancelable: true }),
    )
  );
  await sidebar(page).getByRole("status").getByText("1 selected").waitFor();
  await expect.poll(() => findSmallTargets(page)).toEqual([]);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await link.waitFor();
});

test("lists 3,000 chats, and mounts a screenful", { timeout: 2 * TEST_MS }, async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      for (let n = 0; n < 3000; n++) {
        api.addConversation(`c${n}`, `Chat ${n}`, [], new Date(Date.now() - n * DAY_MS / 10));
      }
      Object.assign(api.conversations.get("c2999")!, { pinned: true });
    },
  });
  // The page asks for 30 pages of the list, one after another.
  const whole = { timeout: 3 * PATIENCE_MS };
  // The oldest chat is pinned: it shows that the last page was loaded.
  await ui.page.getByRole("heading", { name: "Pinned" }).waitFor(whole);
  const list = ui.page.getByRole("list", { name: "Chats" });
  // After an outage the list is read again from its start: then its end comes once more.
  await expect.poll(async () => {
    await list.locator("xpath=..").evaluate((box) => box.scrollTop = box.scrollHeight);
    return await list.getByText("Chat 2998", { exact: true }).isVisible();
  }, whole).toBe(true);
  await expect.poll(() => list.getByRole("listitem").count()).toBeLessThan(80);
  await ui.page.goto(`${ui.api.origin}/c/c1500`);
  await list.getByText("Chat 1500", { exact: true }).waitFor(whole);
});

test("removes a chat that another device deletes, however old", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) => {
      for (let n = 0; n < 100; n++) api.addConversation(`c${n}`, `Chat ${n}`, [], new Date(Date.now() - n * DAY_MS));
      Object.assign(api.conversations.get("c99")!, { pinned: true });
    },
  });
  await ui.page.getByRole("heading", { name: "Pinned" }).waitFor();
  ui.api.conversations.delete("c99");
  ui.api.publish("conversation", "c99");
  await ui.page.getByRole("heading", { name: "Pinned" }).waitFor({ state: "detached" });
});

test("on phones a chat's menu is a sheet", async () => {
  await using ui = await bench.open("/new", { ...PHONE, prepare: fill });
  await ui.page.getByRole("button", { name: "Open the chat list" }).click();
  await ui.page.getByRole("button", { name: "Actions for “The newest”" }).click();
  await ui.page.getByRole("menuitem", { name: "Rename" }).click();
  await ui.page.getByLabel("Title").fill("Renamed");
  await ui.page.getByRole("button", { name: "Save", exact: true }).click();
  await sidebar(ui.page).getByRole("link", { name: "Renamed" }).waitFor();
});
