/** The commands of the open chat in the palette, the slash menu and the menu of the title. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems } from "../../../helpers/browser/browser.ts";
import { demoConnection, type FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

function fill(api: FakeApi): void {
  api.addConversation("c1", "A story", [{ role: "user", content: "Go" }, { role: "assistant", content: "Gone" }]);
}
const FOLDER = Deno.env.get("SCREENSHOTS");

test.each(WIDTHS)("the title opens a menu of what can be done with the chat (%s)", async (width, form) => {
  await using ui = await bench.open("/c/c1", { ...form, prepare: fill });
  const { page, api } = ui;
  await page.getByText("Gone").waitFor();
  const open = () => page.getByRole("button", { name: "Chat actions" }).click();
  const changes = () => api.seen("PATCH", "/api/conversations/c1").map(({ body }) => body);
  await open();
  const items = page.getByRole("menuitem");
  const shown = ["Rename", "Pin", "Move to folder", "Branch from the last message"];
  const more = [
    "Export as Markdown",
    "Export as JSONL",
    "Export as JSON",
    "Print",
    "Prompt preview",
    "Earlier versions",
  ];
  const files = "Documents and images";
  const panels = width === "narrow" ? ["Search in this chat", files, "Chat options"] : [files];
  await eventually(() => items.allInnerTexts(), (all) => all.length > 0);
  await expect.poll(() => items.allInnerTexts()).toEqual([...shown, ...panels, ...more, "Delete"]);
  // No glyph stands for two actions, in the menu or around it.
  const glyphs = await page.evaluate(() =>
    [...document.querySelectorAll("[role=menuitem], .chat-head .icon-button, .composer .icon-button")].flatMap(
      (control) => {
        const path = control.querySelector("path")?.getAttribute("d");
        return path && control.checkVisibility()
          ? [[(control.ariaLabel || control.textContent)!.split(" as ")[0]!, path]]
          : [];
      },
    )
  );
  const named = Object.groupBy(glyphs, ([, path]) => path!);
  const shared = Object.values(named).map((all) => [...new Set(all!.map(([name]) => name))]).filter((all) =>
    all.length > 1
  );
  expect(shared).toEqual([]);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    if (FOLDER) await page.screenshot({ path: `${FOLDER}/title-menu-${width}-${colorScheme}.png` });
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
  }
  await items.getByText("Pin", { exact: true }).click();
  await eventually(changes, (all) => all.length === 1);
  expect(changes()).toEqual([{ pinned: true }]);
  await open();
  await items.getByText("Unpin", { exact: true }).waitFor();
  await items.getByText("Rename", { exact: true }).click();
  await page.getByLabel("Title").fill("Another story");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Another story" }).waitFor();
  await open();
  await items.getByText("Delete", { exact: true }).click();
  await page.getByText("Chat deleted").waitFor();
  await page.waitForURL(`${api.origin}/new`);
  expect(ui.errors).toEqual([]);
});

test("the palette has all commands of the slash menu, and a command typed there does the same", async () => {
  await using ui = await bench.open("/c/c1", { prepare: fill });
  const { page, api } = ui;
  await page.getByText("Gone").waitFor();
  const box = page.getByLabel("Message", { exact: true });
  await box.fill("/");
  const listed = page.getByRole("listbox", { name: "Commands" }).getByRole("option");
  await eventually(() => listed.count(), (n) => n > 10);
  const names = await listed.locator("code").allInnerTexts();
  await box.fill("");
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Commands" });
  await palette.getByRole("group", { name: "This chat" }).waitFor();
  const listHints = async () =>
    (await palette.locator(".palette-hint").allInnerTexts()).map((hint) => hint.split(" ")[0]);
  const elsewhere = ["/new", "/temporary"]; // global commands
  const wanted = expect.arrayContaining(names.filter((each) => !elsewhere.includes(each)));
  await expect.poll(listHints).toEqual(wanted);
  for (const name of ["New chat", "Temporary chat (not saved)"]) {
    await expect.poll(() => palette.getByRole("option", { name }).count()).toBe(1);
  }
  // A slash alone lists as many as in the composer.
  await page.getByRole("combobox", { name: "Commands" }).fill("/");
  await palette.getByRole("option", { name: "Search all chats for “/”" }).waitFor();
  await expect.poll(listHints).toEqual(wanted);
  await page.getByRole("combobox", { name: "Commands" }).fill("pin this");
  await page.getByRole("option", { name: /^Pin this chat/ }).waitFor();
  await page.keyboard.press("Enter");
  const changes = () => api.seen("PATCH", "/api/conversations/c1").map(({ body }) => body);
  await eventually(changes, (all) => all.length === 1);
  await palette.waitFor({ state: "detached" });
  await box.fill("/pin");
  await page.keyboard.press("Enter");
  await eventually(changes, (all) => all.length === 2);
  expect(changes()).toEqual([{ pinned: true }, { pinned: null }]);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Commands" }).fill("generate an image");
  await page.getByRole("option", { name: /^Generate an image/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Generate image" }).waitFor();
});

test("the palette finds the models of all connections, and chooses one for the open chat or a new one", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare(api) {
      fill(api);
      const server = { ...demoConnection(), kind: "openai" as const, base_url: "http://127.0.0.1:9/v1" };
      api.connections = [{ ...server, id: "one", name: "One" }, { ...server, id: "two", name: "Two", active: false }];
      api.testResult = { ...api.testResult, models: ["qwen-large", "llama-small"] };
    },
  });
  const { page, api } = ui;
  await page.getByText("Gone").waitFor();
  const choose = async () => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Commands" }).fill("qwen two");
    await page.getByRole("option", { name: /qwen-large.*Two/ }).click();
  };
  await choose();
  const changes = () => api.seen("PATCH", "/api/conversations/c1").map(({ body }) => body);
  await eventually(changes, (all) => all.length === 1);
  expect(changes()).toEqual([{ connection_id: "two", model: "qwen-large" }]);
  await page.goto(`${api.origin}/activity`);
  await page.getByRole("heading", { name: "Activity" }).waitFor();
  await choose();
  await page.waitForURL(`${api.origin}/new`);
  await page.getByRole("button", { name: /^Model: qwen-large · Two/ }).waitFor();
});
