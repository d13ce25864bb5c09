/**
 * Settings, Data: import and export on the real server; rare cases on a fake one.
 *
 * @slow Each import runs through the page on the real server.
 */
import { Buffer } from "node:buffer";
import { strFromU8, unzipSync, type Zippable, zipSync } from "fflate";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { sillyTavernCard, sillyTavernPng } from "../../../helpers/files/cards.ts";
import { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { tempFolder } from "../../../helpers/files/storage_folder.ts";
import { tavernFolder } from "../../../helpers/files/tavern_folder.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { eventually, PHONE } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
const IMPORT = "/settings/data/import";

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

function zipFile(name: string, files: Zippable) {
  return { name, mimeType: "application/zip", buffer: Buffer.from(zipSync(files)) };
}

async function choose(page: Page, ...files: { name: string; mimeType: string; buffer: Buffer }[]): Promise<void> {
  await page.locator("main input[type=file]").setInputFiles(files);
}

/** Checks that a screen fits and is accessible, and takes a screenshot for review. */
async function look(page: Page, name: string): Promise<void> {
  const isTooWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await expect.poll(isTooWide, { message: name }).toBe(false);
  await expect.poll(() => findAxeProblems(page), { message: name }).toEqual([]);
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/moving-${name}.png` });
}

test.each([["light", {}], ["dark", PHONE]] as const)(
  "detects, previews and imports a zip of SillyTavern, and links to what was imported (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    const files = tavernFolder();
    files["characters/Bad.png"] = new TextEncoder().encode("no picture");
    await page.goto(`${app.url}/settings/data`);
    const main = page.getByRole("main");
    await main.getByRole("link", { name: "Import", exact: true }).click();
    await page.waitForURL(`${app.url}${IMPORT}`);
    await main.getByRole("button", { name: "Choose file" }).waitFor();
    await look(page, `choose-${colorScheme}`);
    await choose(page, zipFile("default-user.zip", files));
    await main.getByText("default-user.zip").waitFor();
    await expect.poll(() => main.getByLabel("File type").inputValue()).toBe("sillytavern");
    await look(page, `chosen-${colorScheme}`);
    await main.getByRole("button", { name: "Preview import" }).click();

    await main.getByRole("heading", { name: "Import preview" }).waitFor();
    await main.getByText("2 chats").first().waitFor();
    await main.getByText("2 characters").first().click();
    await expect.poll(() => main.getByRole("list", { name: "2 characters" }).getByRole("listitem").allTextContents())
      .toEqual(["Fox", "Owl"]);
    await expect.poll(() => main.getByRole("link", { name: "Fox" }).count()).toBe(0);
    await main.getByText("1 item not imported").click();
    await main.getByText("characters/Bad.png").waitFor();
    await main.getByText(/file types? skipped/).click();
    await main.getByText("backgrounds aren't imported: choose one in a chat's options or in Settings").waitFor();
    await look(page, `trial-${colorScheme}`);
    await expect.poll(async () => (await app.get("/api/conversations")).json()).toEqual([]);

    // It waits on the server: the page may be reloaded in between.
    await page.reload();
    await main.getByRole("button", { name: "Import", exact: true }).click();
    await main.getByRole("heading", { name: "Imported" }).waitFor();
    await main.getByText("2 chats").first().click();
    await look(page, `report-${colorScheme}`);
    await main.getByRole("link", { name: "Evening" }).click();
    await page.getByText("Grüße, 灯台。").waitFor();

    await page.goto(`${app.url}${IMPORT}`);
    await main.getByText(/^Previous import,/).click();
    await main.getByText("2 characters").first().click();
    const owl = (await main.getByRole("link", { name: "Owl" }).getAttribute("href"))!;
    await expect.poll(async () => (await (await app.get(`/api${owl}`)).json()).name).toBe("Owl");

    // Again: nothing is imported twice, and the report says so.
    await page.goto(`${app.url}${IMPORT}`);
    await choose(page, zipFile("default-user.zip", files));
    await main.getByRole("button", { name: "Preview import" }).click();
    await main.getByText("Everything in this file is already in Parlor.").waitFor();
    await expect.poll(() => main.getByRole("button", { name: "Import", exact: true }).count()).toBe(0);
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("downloads an export of everything, and imports it complete elsewhere", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  await app.put("/api/personas/p1", { name: "Ann" });
  await app.put("/api/conversations/c1", {
    title: "The pier",
    messages: [{ id: "m1", role: "user", content: "Ahoy" }],
  });
  const { page, errors, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/data`);
  const main = page.getByRole("main");
  await main.getByText("Keys, passkeys, tokens").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    main.getByRole("link", { name: "Export everything" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^parlor-\d{4}-\d\d-\d\d\.zip$/);
  const bytes = await Deno.readFile(await download.path());
  expect(strFromU8(unzipSync(bytes)["conversations/c1.json"]!)).toContain("Ahoy");

  await using other = await openTestApp({ config: { setupCompleted: true } });
  await page.goto(`${other.url}${IMPORT}`);
  await choose(page, { name: "parlor.zip", mimeType: "application/zip", buffer: Buffer.from(bytes) });
  await main.getByText("parlor.zip").waitFor();
  await expect.poll(() => main.getByLabel("File type").inputValue()).toBe("parlor");
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByRole("heading", { name: "Imported" }).waitFor();
  await main.getByText("1 chat").first().click();
  await main.getByRole("link", { name: "The pier" }).click();
  await main.getByText("Ahoy").waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

test("imports several cards with links, and lists other files separately", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}${IMPORT}`);
  const main = page.getByRole("main");
  const png = (name: string) => ({
    name: `${name}.png`,
    mimeType: "image/png",
    buffer: Buffer.from(sillyTavernPng(sillyTavernCard(name))),
  });
  await choose(page, png("Fox"), png("Owl"));
  await expect.poll(() => main.getByLabel("File type").inputValue()).toBe("card");
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByText("2 characters imported").waitFor();
  await main.getByRole("link", { name: "Owl" }).waitFor();
  // One that is there already is linked, and isn't stored again.
  await choose(page, png("Owl"), png("Gull"));
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByText("1 character imported · 1 character already there").waitFor();
  const list: { id: string; name: string }[] = await (await app.get("/api/characters")).json();
  const [owl, ...others] = list.filter(({ name }) => name === "Owl");
  expect(others).toEqual([]);
  await main.getByRole("link", { name: "Owl already there" }).waitFor();
  await expect.poll(() => main.getByRole("link", { name: "Owl" }).getAttribute("href")).toBe(`/characters/${owl!.id}`);
  // From several files the cards are imported; each other file is named with the reason, before and after.
  await choose(
    page,
    png("Tern"),
    zipFile("a.zip", { "a.jsonl": new Uint8Array(3) }),
    { ...png("Fox"), name: "plain.txt", buffer: Buffer.from("Hello") },
  );
  const refused = main.getByRole("alert");
  await refused.getByText("Couldn’t import 2 files").waitFor();
  for (const name of ["a.zip", "plain.txt"]) await refused.getByText(name).waitFor();
  await expect.poll(() => refused.getByText("One file at a time").count()).toBe(2);
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByText("1 character imported").waitFor();
  await refused.getByText("a.zip").waitFor();
  // An image without a card.
  await choose(page, { ...png("Fox"), name: "plain.png", buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]) });
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByRole("alert").getByText("plain.png").waitFor();
  await context.close();
});

test("explains why a file has another kind, and checks it again", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}${IMPORT}`);
  const main = page.getByRole("main");
  await choose(page, zipFile("odd.zip", { "notes.txt": new Uint8Array(10) }));
  await main.getByText("odd.zip").waitFor();
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByText("Couldn’t detect the file type.").waitFor();
  await main.getByLabel("File type").selectOption("sillytavern");
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("alert").getByText("it has no characters, chats or settings").waitFor();
  await main.getByText("odd.zip").waitFor();
  await main.getByLabel("File type").selectOption("tavern");
  await expect.poll(() => main.getByRole("alert").count()).toBe(0);
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByText("There’s nothing new in this file.").waitFor();
  await context.close();
});

test("shows progress and rate of an upload that continues when the screen is left; Cancel ends it", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, context } = await openPage(browser, app.url);
  const session = await context.newCDPSession(page);
  const slow = (bytesPerSecond: number) =>
    session.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: bytesPerSecond,
    });
  await page.goto(`${app.url}${IMPORT}`);
  const main = page.getByRole("main");
  const files: Zippable = tavernFolder();
  for (let i = 0; i < 40; i++) files[`backgrounds/${i}.png`] = crypto.getRandomValues(new Uint8Array(60_000));
  const file = zipFile("slow.zip", files);
  await choose(page, file);
  await slow(40_000); // a minute: all that is looked at until Cancel has to fit into it on a busy machine
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("progressbar", { name: "Uploading the file" }).waitFor();
  await main.getByText(/^[\d.]+ [kM]?B of 2\.\d MB · [\d.]+ [kM]B\/s$/).waitFor();
  await look(page, "sending");
  // It continues elsewhere, listed on the activity screen.
  await page.getByRole("link", { name: /^Activity/ }).click();
  await main.getByText("Uploading “slow.zip”").first().waitFor();
  await look(page, "sending-activity");
  await main.getByRole("button", { name: "Cancel “Uploading “slow.zip””" }).click();
  await main.getByText("Nothing is running").waitFor();
  await eventually(
    () => Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`), ({ name }) => name),
    (names) => names.length === 0,
  );
  await page.goBack();
  // The selection is still there.
  await main.getByText("slow.zip").waitFor();
  await slow(-1);
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("heading", { name: "Import preview" }).waitFor();
  // The list of jobs says that the preview has ended; it's held from here on.
  await main.getByRole("button", { name: "Import", exact: true }).waitFor();
  // A toast with a link appears on other screens when it ends.
  await holdToasts(page);
  const left = Promise.withResolvers<void>();
  await page.route("**/api/jobs", async (route) => {
    await left.promise;
    await route.continue();
  });
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await main.getByRole("heading", { name: "Import preview" }).waitFor({ state: "detached" });
  left.resolve();
  await page.getByText("Import complete").waitFor();
  await page.getByRole("button", { name: "Show" }).click();
  await main.getByRole("heading", { name: "Imported" }).waitFor();
  await context.close();
});

test("lists the server's kinds, and shows why it can't import a file, which stays", async () => {
  await using api = new FakeApi(uiFolder);
  const { page, errors, context } = await openPage(browser, api.origin);
  await page.addInitScript(() => Object.defineProperty(globalThis, "isSecureContext", { value: false }));
  api.refuse("GET /api/import", { status: 500, code: "internal", message: "No kinds today" });
  await page.goto(`${api.origin}${IMPORT}`);
  const main = page.getByRole("main");
  const refused = main.getByRole("alert").getByText("No kinds today");
  await refused.waitFor();
  api.allow("GET /api/import");
  // The page also asks again once it knows the jobs of the server, so the button may be gone by now.
  const isKnown = refused.waitFor({ state: "detached" });
  await Promise.race([main.getByRole("button", { name: "Try again" }).click(), isKnown]);
  await isKnown;
  await main.getByText("This page uses plain HTTP").waitFor();
  const chat = { name: "Evening.jsonl", mimeType: "application/jsonl", buffer: Buffer.from('{"mes":"Hi"}\n') };
  await choose(page, chat);
  const kind = main.getByLabel("File type");
  await expect.poll(() => kind.inputValue()).toBe("tavern");
  await expect.poll(() =>
    kind.locator("option").evaluateAll((options) => options.map((each) => (each as HTMLOptionElement).value))
  )
    .toEqual(["", "sillytavern", "tavern", "chatgpt", "openwebui", "parlor", "newer", "card"]);
  api.refuse("POST /api/import", { status: 507, code: "storage_full", message: "The disk is full" });
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("alert").getByText("The disk is full").waitFor();
  await main.getByText("Evening.jsonl").waitFor();
  await look(page, "failed");
  api.allow("POST /api/import");
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("heading", { name: "Import of tavern" }).waitFor();
  await expect.poll(() => api.seen("POST", "/api/import").at(-1)!.query.get("name")).toBe("Evening.jsonl");
  // Cancel ends the job and keeps the selection.
  await main.getByRole("button", { name: "Cancel" }).click();
  await main.getByText("Canceled. The file is still selected.").waitFor();
  await expect.poll(() => kind.inputValue()).toBe("tavern");
  // A file over the limit isn't uploaded at all.
  api.house.importable = { ...api.house.importable, max_bytes: 5 };
  await page.reload();
  await main.getByText("Canceled.").waitFor({ state: "detached" });
  await choose(page, chat);
  await main.getByText("This server accepts up to 5 B").waitFor();
  expect(errors).toEqual([]);
  // Downloads have the warning, too.
  await page.goto(`${api.origin}/settings/data`);
  await main.getByText("others on the network can read the export").waitFor();
  await main.getByRole("link", { name: "Export anyway" }).waitFor();
  await look(page, "plain-http");
  await context.close();
});

test.each([["light", {}], ["dark", PHONE]] as const)(
  "creates a backup with progress, lists it and downloads it unchanged (%s)",
  async (colorScheme, device) => {
    await using home = await tempFolder();
    const backupDir = home.file("backups");
    await using app = await openTestApp({ config: { backupDir, setupCompleted: true } });
    await eventually(() => app.services.jobs.list()[0]?.state, (state) => state === "done");
    await app.put("/api/conversations/c1", { title: "One", messages: [] });
    await Deno.writeFile(`${app.dataDir}/large`, new Uint8Array());
    await Deno.truncate(`${app.dataDir}/large`, 1_500_000_000);
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
    await page.goto(`${app.url}/settings/data`);
    const main = page.getByRole("main");
    await main.getByRole("button", { name: "Back up now" }).click();
    await main.getByRole("progressbar", { name: "Backing up" }).waitFor();
    // At once: the backup doesn't wait.
    await main.getByText(/ of 3 GB$/).waitFor();
    await main.getByRole("button", { name: "Cancel “Backup”" }).click();
    await main.getByRole("button", { name: "Back up now" }).waitFor();
    await Deno.remove(`${app.dataDir}/large`);
    await main.getByRole("button", { name: "Back up now" }).click();
    await main.getByText(/^Backup complete · 1 chat/).waitFor();
    const link = main.getByRole("link", { name: /^Download parlor-.*-asked\.backup$/ });
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    const name = download.suggestedFilename();
    expect(await Deno.readFile(await download.path())).toEqual(await Deno.readFile(`${backupDir}/${name}`));
    await main.getByRole("heading", { name: "Backups" }).scrollIntoViewIfNeeded();
    await look(page, `backups-${colorScheme}`);
    // Deletion asks first, since it can't be undone; then the list is updated.
    await main.getByRole("button", { name: `Delete ${name}` }).click();
    const asked = page.getByRole("dialog", { name: "Delete this backup?" });
    await asked.getByText(name).waitFor();
    await look(page, `backup-delete-${colorScheme}`);
    await page.keyboard.press("Escape");
    await asked.waitFor({ state: "detached" });
    expect((await Deno.stat(`${backupDir}/${name}`)).isFile).toBe(true);
    await main.getByRole("button", { name: `Delete ${name}` }).click();
    await asked.getByRole("button", { name: "Delete", exact: true }).click();
    await main.getByRole("link", { name: `Download ${name}` }).waitFor({ state: "detached" });
    await expect(Deno.stat(`${backupDir}/${name}`)).rejects.toBeInstanceOf(Deno.errors.NotFound);
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Backups");
    expect(errors).toEqual([]);
    await context.close();
  },
);

test.each([["light", {}], ["dark", PHONE]] as const)(
  "shows a backup that runs, and next to its button why it failed (%s)",
  async (colorScheme, device) => {
    await using api = new FakeApi(uiFolder);
    api.house.backupDir = "/mnt/backups";
    const { page, context } = await openPage(browser, api.origin, { ...device, colorScheme });
    await page.goto(`${api.origin}/settings/data`);
    const main = page.getByRole("main");
    const now = main.getByRole("button", { name: "Back up now" });
    api.refuse("POST /api/data/backups", { status: 503, code: "not_available", message: "The server is stopping" });
    await now.click();
    await main.getByRole("alert").getByText("The server is stopping").waitFor();
    api.allow("POST /api/data/backups");
    await now.click();
    await main.getByRole("progressbar", { name: "Backing up" }).waitFor();
    const [job] = api.house.jobs;
    api.house.jobs = [{ ...job!, progress: { done: 1_000_000_000, total: 3_000_000_000, unit: "bytes" } }];
    api.publish("job", job!.id);
    await main.getByText("1 GB of 3 GB").waitFor();
    await main.getByRole("button", { name: "Cancel “Backup”" }).waitFor();
    await look(page, `backing-up-${colorScheme}`);
    api.house.jobs = [{ ...job!, state: "failed", error: { code: "storage_full", message: "No room on the disk" } }];
    api.publish("job", job!.id);
    await main.getByRole("alert").getByText("No room on the disk").waitFor();
    await now.waitFor();
    await context.close();
  },
);

test("lists a backup that was made so quickly that the page never saw it running", async () => {
  await using api = new FakeApi(uiFolder);
  api.house.backupDir = "/mnt/backups";
  const { page, context } = await openPage(browser, api.origin);
  await page.goto(`${api.origin}/settings/data`);
  const main = page.getByRole("main");
  await main.getByText("No backups yet").waitFor();
  const name = "parlor-2026-01-01T000000Z.backup";
  api.house.backups = [{ name, size_bytes: 40_960, made_at: "2026-01-01T00:00:00Z" }];
  const job = api.house.newJob("backup", "Backup");
  api.house.jobs = [{ ...job, state: "done" }];
  api.publish("job", job.id);
  await main.getByRole("list", { name: "Backups" }).getByText(name).waitFor();
  await context.close();
});

const NONE = { added: 0, updated: 0, present: 0, refused: 0 };
/** The report of a dry run with one chat. */
const TRIAL = {
  kind: "tavern",
  dry_run: true,
  upload_id: "u1",
  messages: 3,
  lines: [],
  lines_dropped: 0,
  items: [{ what: "conversation", id: "c1", name: "Evening", state: "added" }],
  counts: {
    conversation: { ...NONE, added: 1 },
    character: NONE,
    persona: NONE,
    lorebook: NONE,
    preset: NONE,
    attachment: NONE,
  },
};

test("accepts a dropped file but no folder, and uploads again what the server no longer has", async () => {
  await using api = new FakeApi(uiFolder);
  const { page, errors, context } = await openPage(browser, api.origin);
  await page.goto(`${api.origin}${IMPORT}`);
  const main = page.getByRole("main");
  await main.getByRole("button", { name: "Choose file" }).waitFor();
  const drop = (isDirectory: boolean) =>
    page.locator("main .drop-area").evaluate((area, isDirectory) => {
      // Only a real drop has file system entries.
      DataTransferItem.prototype.webkitGetAsEntry = () => ({ isDirectory, name: "Evening.jsonl" }) as FileSystemEntry;
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(['{"mes":"Hi"}\n'], "Evening.jsonl"));
      area.dispatchEvent(new DragEvent("dragenter", { bubbles: true, dataTransfer }));
      area.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
    }, isDirectory);
  await drop(true);
  await main.getByText("Folders can’t be uploaded").waitFor();
  await drop(false);
  await main.getByText("Evening.jsonl").waitFor();
  await expect.poll(() => main.getByText("Folders can’t be uploaded").count()).toBe(0);
  await main.getByRole("button", { name: "Preview import" }).click();
  await main.getByRole("heading", { name: "Import of tavern" }).waitFor();
  const [trial] = api.house.jobs;
  api.house.jobs = [{ ...trial!, state: "done", detail: TRIAL }];
  api.publish("job", trial!.id);
  await main.getByText("1 chat").first().waitFor();
  api.house.isUploadGone = true;
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await eventually(() => api.seen("POST", "/api/import").length, (count) => count === 3);
  const [, second, third] = api.seen("POST", "/api/import").map(({ query }) => Object.fromEntries(query));
  expect([second, third]).toEqual([
    { kind: "tavern", name: "Evening.jsonl", upload_id: "u1" },
    { kind: "tavern", name: "Evening.jsonl" },
  ]);
  // Only this page has the file: after a reload it must be chosen again, and the page says so.
  api.house.jobs = [{ ...trial!, state: "done", detail: TRIAL }];
  await page.reload();
  await main.getByRole("button", { name: "Import", exact: true }).click();
  await main.getByRole("alert").getByText("There is no such upload any more").waitFor();
  await main.getByRole("button", { name: "Choose another file" }).click();
  await main.getByRole("button", { name: "Choose file" }).waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

test("announces the end of an import on another screen, even after a list of tasks from before its start", async () => {
  await using api = new FakeApi(uiFolder);
  const { page, context } = await openPage(browser, api.origin);
  await page.goto(`${api.origin}${IMPORT}`);
  const main = page.getByRole("main");
  const file = { name: "Evening.jsonl", mimeType: "application/jsonl", buffer: Buffer.from('{"mes":"Hi"}\n') };
  await choose(page, file);
  await main.getByRole("button", { name: "Preview import" }).click();
  const running = main.getByRole("heading", { name: "Import of tavern" });
  await running.waitFor();
  const [trial] = api.house.jobs;
  api.house.jobs = [];
  api.publish("job", trial!.id);
  await running.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await page.waitForURL(`${api.origin}/settings`);
  api.house.jobs = [{ ...trial!, state: "done", detail: TRIAL }];
  api.publish("job", trial!.id);
  await page.getByText("Import preview is ready").waitFor();
  await context.close();
});

test("lists what was not imported, with reasons in the page's language", async () => {
  await using app = await openTestApp({ config: { setupCompleted: true } });
  const { page, errors, context } = await openPage(browser, app.url, { locale: "de-DE" });
  await page.goto(`${app.url}${IMPORT}`);
  const main = page.getByRole("main");
  await choose(page, zipFile("default-user.zip", tavernFolder()));
  await main.getByRole("button", { name: "Importvorschau" }).click();
  await main.locator(".import-lines summary").first().click();
  await main.getByText(
    "Hintergründe werden nicht importiert: in den Optionen eines Chats oder in den Einstellungen auswählen",
  ).waitFor();
  await expect.poll(() => main.getByText("left out").count()).toBe(0);
  expect(errors).toEqual([]);
  await context.close();
});

/** The page's texts. */
const WORDS = {
  en: {
    look: "Preview import",
    keep: "Keep the file for 30 days",
    import: "Import",
    imported: "Imported",
    again: "Read again",
    present: "Everything in this file is already in Parlor.",
    oneCharacter: "1 character",
    remove: "Delete the file default-user.zip",
    confirm: "Delete",
  },
  de: {
    look: "Importvorschau",
    keep: "Datei 30 Tage aufheben",
    import: "Importieren",
    imported: "Importiert",
    again: "Erneut lesen",
    present: "Alles aus dieser Datei ist bereits in Parlor.",
    oneCharacter: "1 Figur",
    remove: "Datei default-user.zip löschen",
    confirm: "Löschen",
  },
};

test.each([["light", {}, "en"], ["dark", PHONE, "de"]] as const)(
  "keeps the file of an import if asked, reads it again and deletes it (%s)",
  async (colorScheme, device, locale) => {
    await using app = await openTestApp({ config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme, locale });
    await page.goto(`${app.url}${IMPORT}`);
    const t = locale === "en" ? WORDS.en : WORDS.de;
    const main = page.getByRole("main");
    await choose(page, zipFile("default-user.zip", tavernFolder()));
    await main.getByRole("button", { name: t.look }).click();
    await main.getByRole("switch", { name: t.keep }).check();
    await look(page, `keep-${colorScheme}`);
    await main.getByRole("button", { name: t.import, exact: true }).click();
    await main.getByRole("heading", { name: t.imported }).waitFor();
    // Once in the report, and once in the list.
    await expect.poll(() => main.getByRole("button", { name: `${t.again}: default-user.zip` }).count()).toBe(2);
    await look(page, `kept-${colorScheme}`);
    await main.getByRole("button", { name: `${t.again}: default-user.zip` }).first().click();
    await main.getByText(t.present).waitFor();
    expect(await main.getByRole("button", { name: t.import, exact: true }).count()).toBe(0);

    // What was deleted here comes back only if it's confirmed.
    const foxes = async () =>
      (await (await app.get("/api/characters")).json()).filter(({ name }: { name: string }) => name === "Fox");
    await app.delete(`/api/characters/${(await foxes())[0].id}`);
    await app.delete("/api/trash");
    await page.reload();
    await main.getByRole("button", { name: `${t.again}: default-user.zip` }).last().click();
    await main.getByText(t.oneCharacter).first().waitFor();
    await main.getByRole("button", { name: t.import, exact: true }).click();
    await main.getByRole("heading", { name: t.imported }).waitFor();
    expect(await foxes()).toHaveLength(1);
    await main.getByRole("button", { name: t.remove }).scrollIntoViewIfNeeded();
    await look(page, `read-again-${colorScheme}`);

    await main.getByRole("button", { name: t.remove }).click();
    await page.getByRole("dialog").getByRole("button", { name: t.confirm, exact: true }).click();
    await expect.poll(() => main.getByRole("button", { name: `${t.again}: default-user.zip` }).count()).toBe(0);
    await expect.poll(() => Array.fromAsync(Deno.readDir(`${app.dataDir}/import-sources`))).toEqual([]);
    expect(errors).toEqual([]);
    await context.close();
  },
);

test("downloads with the token where the device signs in with one", async () => {
  await using api = new FakeApi(uiFolder);
  const { page, context } = await openPage(browser, api.origin);
  await page.addInitScript(() => localStorage.setItem("parlor.token", "a-token"));
  await page.goto(`${api.origin}/settings/data`);
  const button = page.getByRole("button", { name: "Export everything" });
  const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
  expect(await Deno.readTextFile(await download.path())).toBe("everything");
  expect(download.suggestedFilename()).toMatch(/^parlor-.*\.zip$/);
  await expect.poll(() => api.seen("GET", "/api/export").map(({ headers }) => headers.get("authorization"))).toEqual([
    "Bearer a-token",
  ]);
  await context.close();
});

test("the settings search and the palette find import and export", async () => {
  await using api = new FakeApi(uiFolder);
  const { page, context } = await openPage(browser, api.origin);
  await page.goto(`${api.origin}/settings/general`);
  const search = page.getByRole("searchbox", { name: "Search settings" });
  const places = [
    ["sillytavern", /^Import from SillyTavern/, IMPORT],
    ["export", /^Export everything/, "/settings/data#export"],
    ["back up", /^Back up now/, "/settings/data#backups"],
    ["licen", /^Licenses/, "/settings/about#licences"],
  ] as const;
  for (const [words, name, address] of places) {
    await search.fill(words);
    await page.getByRole("main").getByRole("link", { name }).click();
    await page.waitForURL(`${api.origin}${address}`);
    const id = address.split("#")[1];
    if (id) await eventually(() => page.evaluate(() => document.activeElement?.id), (active) => active === id);
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("risuai");
  await page.getByRole("option", { name: /Import from SillyTavern/ }).click();
  await page.waitForURL(`${api.origin}${IMPORT}`);
  await context.close();
});
