/** @slow Every action of a character is done on its own page. */
import { Buffer } from "node:buffer";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  findAxeProblemsInBothSchemes,
  findSmallTargets,
  holdToasts,
} from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, PHONE, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

/** Ada, Fox and Mira; the fox has three greetings. */
function fill({ people }: FakeApi): void {
  people.add("ada", { name: "Ada", tags: ["science"] });
  people.add("fox", {
    name: "Fox",
    tags: ["forest"],
    creator: "somebody",
    first_mes: "Hello **{{user}}**, I am {{char}}.",
    alternate_greetings: ["Good evening.", "Psst!"],
  });
  people.add("mira", { name: "Mira", tags: ["science", "slow"] }, { has_avatar: false });
}

test("the gallery lists characters by name, searches while typing, and filters by tag", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  const cards = ui.page.getByRole("list", { name: "Characters" }).getByRole("link");
  await ui.page.getByRole("link", { name: "Fox" }).waitFor();
  await expect.poll(() => cards.allInnerTexts()).toEqual(["Ada", "Fox", "Mira"]);
  // The pointer changes nothing but the name's line.
  await ui.page.getByRole("link", { name: "Fox" }).hover();
  await expect.poll(() =>
    cards.nth(1).locator(".tile-name").evaluate((name) => getComputedStyle(name).textDecorationLine)
  )
    .toBe("underline");
  const opacities = () =>
    cards.nth(1).locator("*").evaluateAll((all) => all.map((each) => getComputedStyle(each).opacity));
  await expect.poll(async () => new Set(await opacities())).toEqual(new Set(["1"]));
  await ui.page.getByLabel("Search characters").fill("fo");
  await eventually(() => cards.count(), (count) => count === 1);
  await expect.poll(() => ui.api.seen("GET", "/api/characters").at(-1)!.query.get("q")).toBe("fo");
  await ui.page.getByLabel("Search characters").fill("zzz");
  await ui.page.getByText("No matches").waitFor();
  await ui.page.getByRole("button", { name: "Show all" }).click();
  await ui.page.getByRole("link", { name: "Ada" }).waitFor();
  await ui.page.getByLabel("Tag").selectOption("science");
  await eventually(() => cards.count(), (count) => count === 2);
});

test("the gallery shows first who was talked to last", async () => {
  const prepare = (api: FakeApi) => {
    fill(api);
    for (const [id, minutesAgo] of [["mira", 1], ["fox", 2]] as const) {
      const at = new Date(Date.now() - minutesAgo * 60_000);
      const chat = api.addConversation(`with-${id}`, "Talk", [{ role: "user", content: "Hello" }], at);
      Object.assign(chat, { character_ids: [id] });
    }
  };
  await using ui = await bench.open("/characters", { prepare });
  const cards = ui.page.getByRole("list", { name: "Characters" }).getByRole("link");
  await eventually(() => ui.page.locator(".chat-row").count(), (count) => count === 2);
  await ui.page.getByLabel("Sort by").selectOption({ label: "Recently talked to" });
  await eventually(() => cards.allInnerTexts(), (names) => names.join() === "Mira,Fox,Ada");
  await ui.page.getByLabel("Tag").selectOption("science");
  await eventually(() => cards.allInnerTexts(), (names) => names.join() === "Mira,Ada");
  expect(ui.errors).toEqual([]);
});

test("more characters are loaded after a page of them failed and the list was tried again", async () => {
  await using ui = await bench.open("/new", {
    prepare({ people }) {
      for (let n = 0; n < 150; n++) people.add(`c${n}`, { name: `Character ${n}` });
    },
  });
  const { page } = ui;
  await page.route(/\/api\/characters\?.*cursor=/, (route) => route.abort(), { times: 1 });
  await page.goto(`${ui.api.origin}/characters`);
  const tile = page.getByRole("list", { name: "Characters" }).getByRole("listitem").first();
  const retry = page.getByRole("button", { name: "Try again" });
  // The first page fills the screen, so the next is asked for where the list comes near its end.
  await tile.waitFor();
  await page.getByRole("link", { name: "Character 0", exact: true }).focus();
  await page.keyboard.press("End");
  const whole = eventually(() => tile.getAttribute("aria-setsize"), (count) => count === "150");
  // The page also tries again by itself, so the button may be gone by now.
  await Promise.race([retry.click(), whole]);
  await whole;
});

test("a star makes a character a favorite, on its tile and its page, and the gallery shows favorites alone", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  const cards = ui.page.getByRole("list", { name: "Characters" }).getByRole("link");
  await ui.page.getByRole("link", { name: "Fox" }).focus();
  await ui.page.keyboard.press("Tab");
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("button", { name: "Remove Fox from favorites", pressed: true }).waitFor();
  await eventually(() => ui.api.people.characters.get("fox")!.card.data.extensions.fav, (fav) => fav === true);
  await ui.page.getByRole("button", { name: "Only favorites" }).click();
  await eventually(() => cards.count(), (count) => count === 1);
  await cards.first().click();
  await ui.page.getByRole("button", { name: "Remove Fox from favorites" }).click();
  await ui.page.getByRole("button", { name: "Add Fox to favorites", pressed: false }).waitFor();
  await ui.page.goBack();
  await ui.page.getByText("No matches").waitFor();
  await ui.page.getByRole("button", { name: "Show all" }).click();
  await eventually(() => cards.count(), (count) => count === 3);
});

test("selects several characters by mouse and keyboard; star, export and delete apply to all, with one Undo", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  const { page, api } = ui;
  const status = page.getByRole("main").getByRole("status");
  const box = (name: string) => page.getByRole("checkbox", { name });
  await page.getByRole("link", { name: "Ada" }).click({ modifiers: ["Shift"] });
  await status.getByText("1 selected").waitFor();
  await eventually(() => box("Ada").evaluate((field) => field === document.activeElement), Boolean);
  await page.keyboard.press("ArrowRight");
  await eventually(() => box("Fox").evaluate((field) => field === document.activeElement), Boolean);
  await page.keyboard.press("Shift+Space");
  await status.getByText("2 selected").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await holdToasts(page);
  await page.getByRole("button", { name: "Add to favorites" }).click();
  await page.getByText("2 characters added to favorites").waitFor();
  const favorites = () => ["ada", "fox", "mira"].map((id) => api.people.characters.get(id)!.favorite);
  expect(favorites()).toEqual([true, true, false]);
  await page.getByRole("button", { name: "Undo" }).click();
  await eventually(favorites, (all) => !all.includes(true));

  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: "Select" }).click();
  await status.getByText("0 selected").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Delete", exact: true }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Select all" }).click();
  await status.getByText("3 selected").waitFor();
  await page.getByRole("button", { name: "Export", exact: true }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as PNG" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^parlor-.*\.zip$/);
  await expect.poll(() => api.seen("POST", "/api/export").map(({ body }) => body)).toEqual([
    { kind: "characters", ids: ["ada", "fox", "mira"], format: "png" },
  ]);
  await page.getByRole("button", { name: "Export", exact: true }).click();
  await page.getByRole("menuitem", { name: "Export with the image’s place and prompt (PNG)" }).click();
  await expect.poll(() => api.seen("POST", "/api/export").at(1)?.body).toEqual(
    { kind: "characters", ids: ["ada", "fox", "mira"], format: "png", image_metadata: "keep" },
  );
  await box("Fox").click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("2 characters deleted").waitFor();
  await page.getByRole("link", { name: "Ada" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("link", { name: "Ada" }).waitFor();
  await expect.poll(() => api.people.characters.size).toBe(3);
});

test.each([["desktops", {}], ["phones", PHONE]] as const)(
  "folders: moved together, undone, filtered (on %s)",
  async (name, device) => {
    await using ui = await bench.open("/characters", { ...device, prepare: fill });
    const { page, api } = ui;
    const folders = () => ["ada", "fox", "mira"].map((id) => api.people.characters.get(id)!.folder);
    const cards = page.getByRole("list", { name: "Characters" }).getByRole("link");
    await page.getByRole("link", { name: "Ada" }).waitFor();
    await expect.poll(() => page.getByLabel("Folder", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Select" }).click();
    for (const name of ["Ada", "Mira"]) await page.getByRole("checkbox", { name }).click();
    await page.getByRole("button", { name: "Move to folder" }).click();
    await holdToasts(page);
    await page.getByRole("dialog", { name: "Move 2 characters to folder" }).getByLabel("Folder").fill("Science");
    await page.keyboard.press("Enter");
    await page.getByText("2 characters moved").waitFor();
    expect(folders()).toEqual(["Science", null, "Science"]);
    await page.getByLabel("Folder", { exact: true }).selectOption({ label: "Science (2)" });
    await eventually(() => cards.allInnerTexts(), (shown) => shown.join() === "Ada,Mira");
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if (name === "phones") await expect.poll(() => findSmallTargets(page)).toEqual([]);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/folders-${name}.png` });
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(folders, (all) => all.every((folder) => folder === null));
    await page.getByText("No matches").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await eventually(() => cards.count(), (count) => count === 3);

    await page.getByRole("link", { name: "Fox" }).click();
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("menuitem", { name: "Move to folder" }).click();
    const dialog = page.getByRole("dialog", { name: "Move character to folder" });
    await dialog.getByLabel("Folder").fill("Wood");
    await dialog.getByRole("button", { name: "Save" }).click();
    await eventually(folders, ([, fox]) => fox === "Wood");
    // The page knows the folder once it has read the character again.
    const reopen = async () => {
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Move to folder" }).click();
      const folder = await dialog.getByLabel("Folder").inputValue();
      if (folder === "") await dialog.press("Escape");
      return folder;
    };
    await eventually(reopen, (folder) => folder === "Wood");
    await dialog.getByRole("button", { name: "Remove from folder" }).click();
    await eventually(folders, ([, fox]) => fox === null);
    await expect.poll(() => api.people.characters.get("fox")!.card.data.extensions).toEqual({});
    expect(ui.errors).toEqual([]);
  },
);

test("on phones a long press selects a character, and Escape ends it", async () => {
  await using ui = await bench.open("/characters", { ...PHONE, prepare: fill });
  await ui.page.getByRole("link", { name: "Fox" }).evaluate((element) =>
    element.dispatchEvent(
      new PointerEvent("contextmenu", { pointerType: "touch", bubbles: true, cancelable: true }),
    )
  );
  await ui.page.getByRole("main").getByRole("status").getByText("1 selected").waitFor();
  await expect.poll(() => ui.page.getByRole("checkbox", { name: "Fox" }).isChecked()).toBe(true);
  await expect.poll(() => findSmallTargets(ui.page)).toEqual([]);
  await ui.page.keyboard.press("Escape");
  await ui.page.getByRole("link", { name: "Fox" }).waitFor();
});

test("mounts few of twenty thousand characters, and a key reaches the last", async () => {
  await using ui = await bench.open("/characters", {
    prepare: ({ people }) => {
      for (let n = 0; n < 20_000; n++) {
        people.add(`c${n}`, { name: `Character ${String(n).padStart(5, "0")}` }, { has_avatar: n % 2 === 0 });
      }
    },
  });
  const cards = ui.page.getByRole("list", { name: "Characters" }).getByRole("link");
  await ui.page.getByRole("link", { name: "Character 00000" }).focus();
  const size = async () => Number(await cards.first().locator("..").getAttribute("aria-setsize"));
  // Each End scrolls to the end of what is loaded and so loads more.
  for (let known = 0; known < 20_000;) {
    await ui.page.keyboard.press("End");
    known = await eventually(size, (count) => count > known);
  }
  await ui.page.keyboard.press("End");
  await eventually(
    () => ui.page.evaluate(() => document.activeElement?.textContent),
    (text) => text?.endsWith("19999") === true,
  );
  await expect.poll(() => cards.count()).toBeLessThan(120);
  await expect.poll(() => ui.page.locator("li[aria-posinset='20000']").getAttribute("aria-setsize")).toBe("20000");
});

test("the grid is one tab stop, and arrow keys move between cards", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  await ui.page.getByRole("link", { name: "Ada" }).focus();
  await ui.page.keyboard.press("ArrowRight");
  await ui.page.keyboard.press("ArrowRight");
  await expect.poll(() => ui.page.evaluate(() => document.activeElement?.textContent)).toContain("Mira");
  await ui.page.keyboard.press("ArrowLeft");
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
  expect(new URL(ui.page.url()).pathname).toBe("/characters/fox");
});

test("doesn't reload a portrait until it changes", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  const asked = () => ui.api.seen("GET", "/api/characters/ada/avatar").length;
  await eventually(asked, (count) => count === 1);
  // Leaving the page earlier would end the download.
  const picture = ui.page.locator(".tile img").first();
  await eventually(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), (px) => px > 0);
  await ui.page.getByRole("link", { name: "Mira" }).click();
  await ui.page.getByRole("heading", { name: "Mira", level: 2 }).waitFor();
  await ui.page.goBack();
  await ui.page.locator(".tile img").first().waitFor();
  expect(asked()).toBe(1);
  const ada = ui.api.people.characters.get("ada")!;
  ada.updated_at = ui.api.people.now();
  ui.api.publish("character", "ada");
  await eventually(asked, (count) => count === 2);
});

test("imports several files one after another, and names one that isn't a card, with the reason", async () => {
  await using ui = await bench.open("/characters");
  await ui.page.getByText("No characters yet").waitFor();
  const file = (name: string, text: string) => ({
    name,
    mimeType: "application/json",
    buffer: Buffer.from(text),
  });
  await ui.page.locator("input[type=file]").setInputFiles(
    [
      file("one.json", JSON.stringify({ name: "One" })),
      file("broken.txt", "?"),
      file("two.json", JSON.stringify({ name: "Two" })),
    ],
  );
  await ui.page.getByText("2 characters imported").waitFor();
  await ui.page.getByText("Couldn’t import 1 file").waitFor();
  await ui.page.getByText("This file holds no readable card").waitFor();
  await ui.page.locator(".gallery").getByRole("link", { name: "One" }).waitFor();
  await ui.page.locator(".gallery").getByRole("link", { name: "Two" }).waitFor();
  const imported = ui.page.getByRole("list", { name: "Imported characters" });
  await expect.poll(() => imported.getByRole("link", { name: "Two" }).getAttribute("href")).toMatch(/^\/characters\//);
  // The other program's own kind of file belongs on another page.
  await ui.page.locator("input[type=file]").setInputFiles([file("broken.txt", '{"type":"risu","data":[]}')]);
  const notice = ui.page.getByRole("link", { name: "This is another program’s data, not a character: open Import" });
  await expect.poll(() => notice.getAttribute("href")).toBe("/settings/data/import");
});

test("imports dropped files, and highlights the drop area", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  await ui.page.getByRole("link", { name: "Fox" }).waitFor();
  const files = await ui.page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([JSON.stringify({ name: "Dropped" })], "dropped.json", { type: "application/json" }));
    return transfer;
  });
  await ui.page.dispatchEvent(".gallery", "dragenter", { dataTransfer: files });
  await ui.page.getByText("Drop card files here").waitFor();
  await holdToasts(ui.page);
  await ui.page.dispatchEvent(".gallery", "drop", { dataTransfer: files });
  await ui.page.getByText("Drop card files here").waitFor({ state: "detached" });
  await ui.page.getByText("1 character imported").waitFor();
  await ui.page.getByRole("button", { name: "Open", exact: true }).click();
  await ui.page.getByRole("heading", { name: "Dropped", level: 2 }).waitFor();
});

test("names a dropped folder, and imports the files", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  await ui.page.getByRole("link", { name: "Fox" }).waitFor();
  await ui.page.locator(".drop-area").evaluate((area) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["{}"], "My cards"));
    dataTransfer.items.add(new File([JSON.stringify({ name: "Dropped" })], "dropped.json"));
    // Only a real drop has file system entries.
    DataTransferItem.prototype.webkitGetAsEntry = function () {
      const name = this.getAsFile()!.name;
      return { isDirectory: !name.includes("."), name } as FileSystemEntry;
    };
    area.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
  });
  await ui.page.getByText("1 character imported").waitFor();
  const refused = ui.page.getByRole("alert").filter({ hasText: "My cards" });
  await refused.getByText("Folders can’t be imported").waitFor();
});

test("keeps the link of a failed import with the reason; then succeeds and returns the focus", async () => {
  await using ui = await bench.open("/characters", { prepare: fill });
  const menu = ui.page.getByRole("button", { name: "More" });
  await menu.click();
  await ui.page.getByRole("menuitem", { name: "Import from a link" }).click();
  ui.api.refuse("POST /api/characters/import-url", {
    status: 502,
    code: "upstream_error",
    message: "The address could not be reached",
  });
  await ui.page.getByRole("textbox", { name: "Link" }).fill("https://cards.example/Wanderer");
  await ui.page.keyboard.press("Enter");
  await ui.page.getByText("The address could not be reached").waitFor();
  await expect.poll(() => ui.page.getByRole("textbox", { name: "Link" }).inputValue()).toBe(
    "https://cards.example/Wanderer",
  );
  ui.api.allow("POST /api/characters/import-url");
  await ui.page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await ui.page.getByText("1 character imported").waitFor();
  await ui.page.getByRole("link", { name: "Wanderer" }).waitFor();
  await expect.poll(() => menu.evaluate((button) => button === document.activeElement)).toBe(true);
});

test("restores the built-in character from the menu", async () => {
  await using ui = await bench.open("/characters");
  await ui.page.getByRole("button", { name: "More" }).click();
  await ui.page.getByRole("menuitem", { name: "Restore the built-in character" }).click();
  await ui.page.getByText("Parlor restored to its original version").waitFor();
  await ui.page.getByRole("link", { name: "Parlor" }).waitFor();
});

test("previews greetings with the names inserted, and starts a chat with the selected one", async () => {
  await using ui = await bench.open("/characters/fox", {
    prepare: (api) => {
      fill(api);
      api.settings.display_name = "Robin";
    },
  });
  await ui.page.getByText("Hello Robin, I am Fox.").waitFor();
  await expect.poll(() => ui.page.locator(".greeting strong").innerText()).toBe("Robin");
  await ui.page.getByRole("button", { name: "Next greeting" }).click();
  await ui.page.getByText("Good evening.").waitFor();
  await ui.page.getByRole("button", { name: "Start chat" }).click();
  await eventually(() => new URL(ui.page.url()).pathname, (path) => path.startsWith("/c/"));
  await expect.poll(() => ui.api.seen("POST", "/api/conversations")[0]!.body).toEqual({
    character_ids: ["fox"],
    greeting: 1,
  });
  await ui.page.getByText("Good evening.").waitFor();
  await ui.page.getByText("2/3").waitFor();
});

test("lists the chats of a character below its greeting, and shows its description and scenario with names", async () => {
  await using ui = await bench.open("/characters/ada", {
    prepare: (api) => {
      api.people.add("ada", { name: "Ada", description: "{{char}} counts.", scenario: "{{user}} waits." });
      for (let n = 1; n <= 6; n++) {
        const chat = api.addConversation(`c${n}`, `Chat ${n}`, [{ content: "a" }], new Date(2026, 0, n));
        Object.assign(chat, { character_ids: n === 6 ? ["fox"] : ["ada"] });
      }
    },
  });
  await ui.page.getByText("Ada counts.").waitFor();
  await ui.page.getByText("User waits.").waitFor();
  const chats = ui.page.getByRole("region", { name: "Chats", exact: true }).getByRole("link");
  await eventually(() => chats.count(), (count) => count === 4);
  await expect.poll(() => chats.first().getAttribute("href")).toBe("/c/c5");
  await ui.page.getByRole("button", { name: "Show all 5 chats" }).click();
  await expect.poll(() => chats.count()).toBe(5);
  await chats.last().click();
  await eventually(() => new URL(ui.page.url()).pathname, (path) => path === "/c/c1");
});

test("Resume opens the newest chat with the character", async () => {
  await using ui = await bench.open("/characters/fox", {
    prepare: (api) => {
      fill(api);
      const on = (day: number) => new Date(2026, 0, day);
      const withFox = { character_ids: ["fox"] };
      Object.assign(api.addConversation("old", "Old", [{ content: "a" }], on(1)), withFox);
      Object.assign(api.addConversation("new", "New", [{ content: "b" }], on(3)), withFox);
      api.addConversation("other", "Other", [{ content: "c" }], on(5));
    },
  });
  await ui.page.getByRole("link", { name: "Resume" }).click();
  await ui.page.waitForURL(`${ui.api.origin}/c/new`);
});

test("Undo restores a deleted character, which is only deleted after that", async () => {
  await using ui = await bench.open("/characters/fox", { prepare: fill });
  await holdToasts(ui.page);
  const remove = async () => {
    await ui.page.getByRole("button", { name: "More actions" }).click();
    await ui.page.getByRole("menuitem", { name: "Delete" }).click();
    await ui.page.getByText("Fox deleted").waitFor();
  };
  await remove();
  await ui.page.getByRole("link", { name: "Ada" }).waitFor();
  await expect.poll(() => ui.page.getByRole("link", { name: "Fox" }).count()).toBe(0);
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await ui.page.getByRole("link", { name: "Fox" }).click();
  await remove();
  await expect.poll(() => ui.api.seen("DELETE", /characters/)).toEqual([]);
  await ui.page.locator(".toast").getByRole("button", { name: "Close" }).click();
  await eventually(() => ui.api.people.characters.has("fox"), (isThere) => !isThere);
});

test("uploads a new image unchanged; shows the state and the failure of a portrait job", async () => {
  await using ui = await bench.open("/characters/fox", { prepare: fill });
  await ui.page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
  const picture = { name: "p.png", mimeType: "image/png", buffer: Buffer.from(ui.api.people.picture) };
  await ui.page.locator("input[type=file]").setInputFiles(
    picture,
  );
  await ui.page.getByText("Image replaced").waitFor();
  await expect.poll(() => ui.api.seen("PUT", "/api/characters/fox/avatar")[0]!.headers.get("content-type")).toBe(
    "image/png",
  );
  await ui.page.getByRole("button", { name: "More actions" }).click();
  await ui.page.getByRole("menuitem", { name: "Generate portrait" }).click();
  await ui.page.getByText("Generating a portrait").waitFor();
  const error = { code: "not_available", message: "No image backend is active" };
  ui.api.people.portraits.set("fox", { state: "failed", error });
  ui.api.publish("job", "job");
  await ui.page.getByText("No image backend is active").waitFor();
});

test("a card in another program's folder can be used and exported, but not edited", async () => {
  await using ui = await bench.open("/characters/theirs", {
    prepare: ({ people }) => people.add("theirs", { name: "Theirs" }, { external: true }),
  });
  await ui.page.getByText("This card is in another program’s folder").waitFor();
  await expect.poll(() => ui.page.getByRole("link", { name: "Edit" }).count()).toBe(0);
  await ui.page.getByRole("button", { name: "More actions" }).click();
  const items = ui.page.getByRole("menuitem");
  await expect.poll(() => items.allInnerTexts()).toEqual([
    ...["Export as PNG", "Export as JSON", "Export as CHARX", "Export with the image’s place and prompt (PNG)"],
  ]);
  await expect.poll(() => items.first().getAttribute("href")).toBe("/api/characters/theirs/export?format=png");
});

test("images and scripts in a card's texts neither load nor run", async () => {
  const text =
    "![x](https://evil.example/a.png) <img src='https://evil.example/b.png' onerror='document.title=1'>after";
  await using ui = await bench.open("/characters/evil", {
    prepare: ({ people }) => people.add("evil", { name: "<b>Evil</b>", first_mes: text, creator_notes: text }),
  });
  await ui.page.getByText("after").first().waitFor();
  await ui.page.getByText("Creator’s notes").click();
  await expect.poll(() => ui.page.getByRole("heading", { name: "<b>Evil</b>", level: 2 }).count()).toBe(1);
  await expect.poll(() => ui.page.title()).toBe("<b>Evil</b> · Parlor");
  expect(ui.foreign).toEqual([]);
});

const SCREENS: [path: string, ready: string][] = [
  ["/characters", "Ada"],
  ["/characters/fox", "Good"],
  ["/characters/nobody", "This character doesn’t exist"],
];
for (const [path, ready] of SCREENS) {
  test.each(WIDTHS)(`axe finds nothing on ${path}, light and dark, %s`, async (_, options) => {
    await using ui = await bench.open(path, {
      ...options,
      prepare: (api) => {
        fill(api);
        api.people.save("fox", api.people.add("fox", { name: "Fox", tags: ["a"], first_mes: "Good" }).card);
      },
    });
    await ui.page.getByText(ready).first().waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
    expect(ui.errors).toEqual([]);
  });
}
