/** Documents in a chat, with the page on the real server. */
import { Buffer } from "node:buffer";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage, type WatchedPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { PRIVATE, PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { addDocument, printPdf, writePdf } from "../../../helpers/files/document_files.ts";
import { encodeText } from "../../../helpers/files/encode_text.ts";
import { dataUrl, picture } from "../../../helpers/files/pictures.ts";
import type { TrashItem } from "../../../../static/src/api/types.ts";
import { PHONE, sendMessage, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("a document is attached, read, sent with the message and can be opened", async () => {
  await using app = await openTestApp({ uiFolder });
  const llm = await openFakeLlm({
    personality: "llama.cpp",
    pieces: ["Admiral Biscuit [p. 2], or **[almanac.pdf, ", "p. 1]**. Not [p. 3], [other.pdf, p. 1] or `[p. 2]`."],
  });
  await useModel(app, llm);
  await app.post("/api/setup/complete", {});
  const { page, errors } = await openPage(browser, app.url, PHONE);
  await page.goto(`${app.url}/new`);
  const pdf = writePdf(["The lighthouse has 17 windows.", "The cat is called Admiral Biscuit."]);
  const picker = page.locator('.composer input[type="file"]');
  await picker.setInputFiles({ name: "almanac.pdf", mimeType: "application/pdf", buffer: Buffer.from(pdf) });
  const chips = page.getByRole("list", { name: "Attached documents" });
  await chips.getByText("PDF · 2 pages").waitFor();
  await picker.setInputFiles({ name: "scan.pdf", mimeType: "application/pdf", buffer: Buffer.from(writePdf([" "])) });
  await chips.getByText("No text found. It may be a scan.").waitFor();
  const folder = Deno.env.get("SCREENSHOTS");
  if (folder) await page.screenshot({ path: `${folder}/composer.png` });
  await chips.getByRole("button", { name: "Remove scan.pdf" }).click();
  await expect.poll(() => chips.getByText("scan.pdf").count()).toBe(0);
  await sendMessage(page, "What is the cat's name?");
  await expect.poll(() => llm.chats.length).toBeGreaterThan(0);
  const sent = (llm.chats[0]!.json!.messages as { content: string }[]).map(({ content }) => content);
  expect(sent.join("\n")).toContain("[p. 2] The cat is called Admiral Biscuit.");
  const sources = page.getByRole("list", { name: "Sources" });
  await sources.getByText("2 of 2 pages sent").waitFor();
  if (folder) await page.screenshot({ path: `${folder}/chat.png` });
  const dialog = page.getByRole("dialog", { name: "almanac.pdf" });
  const citations = page.locator(".reply .prose button");
  await expect.poll(() => citations.allTextContents()).toEqual(["[p. 2]", "[almanac.pdf, p. 1]"]);
  await citations.first().click();
  await dialog.getByText("The cat is called Admiral Biscuit.").waitFor();
  await expect.poll(() => dialog.locator("[aria-current]").getAttribute("data-page")).toBe("2");
  if (folder) await page.screenshot({ path: `${folder}/cited.png` });
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await sources.getByRole("button").click();
  await dialog.getByText("The lighthouse has 17 windows.").waitFor();
  await dialog.getByRole("searchbox").fill("biscuit");
  await expect.poll(() => dialog.locator("mark").allTextContents()).toEqual(["Biscuit"]);
  if (folder) await page.screenshot({ path: `${folder}/reader.png` });
  expect(errors).toEqual([]);
  await llm.close();
});

/** Opens the app in a browser of this size, past its setup. */
async function openApp(app: TestApp, path: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  await app.post("/api/setup/complete", {});
  const watched = await openPage(browser, app.url, options);
  await watched.page.goto(app.url + path);
  return watched;
}

const FOLDER = Deno.env.get("SCREENSHOTS");
async function takePicture(page: Page, name: string): Promise<void> {
  if (FOLDER) await page.screenshot({ path: `${FOLDER}/${name}.png` });
}

test("pages to send are chosen in the reader, by number or by box", async () => {
  await using app = await openTestApp({ uiFolder });
  const llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  const { page, errors } = await openApp(app, "/new", PHONE);
  await page.getByText("fake-model").first().waitFor(); // the page knows its chat and its model
  const pdf = writePdf(["One is red.", "Two is green.", "Three is blue.", "Four is black."]);
  const picker = page.locator('.composer input[type="file"]');
  await picker.setInputFiles({ name: "colors.pdf", mimeType: "application/pdf", buffer: Buffer.from(pdf) });
  await page.getByRole("button", { name: "What to send from colors.pdf: Automatic" }).click();
  await takePicture(page, "use-menu");
  await page.getByRole("menuitemradio", { name: /^Choose pages/ }).click();
  const dialog = page.getByRole("dialog", { name: "colors.pdf" });
  await dialog.getByText("Two is green.").waitFor();
  await dialog.getByLabel("Pages to send").fill("9");
  await dialog.getByText("Enter pages from 1 to 4, such as 3-5, 12").waitFor();
  await expect.poll(() => dialog.getByRole("button", { name: "Send these pages" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Pages to send").fill("2");
  await dialog.getByRole("checkbox", { name: "Page 4" }).check();
  await dialog.getByRole("checkbox", { name: "Page 3" }).check();
  await expect.poll(() => dialog.getByLabel("Pages to send").inputValue()).toBe("2-4");
  await dialog.getByRole("checkbox", { name: "Page 3" }).uncheck();
  await takePicture(page, "choose-pages");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Send these pages" }).click();
  await page.getByRole("button", { name: "What to send from colors.pdf: Pages 2, 4" }).waitFor();
  await takePicture(page, "pages-chip");
  await sendMessage(page, "Which colors?");
  await expect.poll(() => llm.chats.length).toBeGreaterThan(0);
  const sent = JSON.stringify(llm.chats[0]!.json!.messages);
  expect(["One", "Two", "Three", "Four"].filter((n) => sent.includes(`${n} is `))).toEqual(["Two", "Four"]);
  await page.getByRole("list", { name: "Sources" }).getByText("2 of 4 pages sent").waitFor();
  expect(errors).toEqual([]);
  await llm.close();
});

test("files dropped anywhere on the chat are attached, and so is the page of a link at the end of the text", async () => {
  await using site = Deno.serve(
    { hostname: PUBLIC, port: 0, onListen: () => {} },
    () =>
      new Response(`<!doctype html><title>Tides</title><article><p>${"High tide is at noon. ".repeat(40)}</article>`, {
        headers: { "content-type": "text/html" },
      }),
  );
  await using app = await openTestApp({ uiFolder, config: { guardAllow: [`${PUBLIC}/32`] } });
  const { page, errors } = await openApp(app, "/new");
  const files = await page.evaluateHandle((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "dropped.pdf", { type: "application/pdf" }));
    return data;
  }, [...writePdf(["Dropped words"])]);
  // As a drag does, again and again: the page listens from a moment after it's shown.
  await expect.poll(async () => {
    await page.locator(".welcome").dispatchEvent("dragover", { dataTransfer: files });
    return await page.locator(".composer-area.is-over").count();
  }).toBe(1);
  await page.locator(".welcome").dispatchEvent("drop", { dataTransfer: files });
  const chips = page.getByRole("list", { name: "Attached documents" });
  await chips.getByText("PDF · 1 page").waitFor();
  await expect.poll(() => page.locator(".composer-area.is-over").count()).toBe(0);

  const box = page.getByLabel("Message", { exact: true });
  const offer = page.getByRole("button", { name: "Attach this page" });
  await box.fill(`See http://${PUBLIC}:${site.addr.port}/tides there`);
  await expect.poll(() => offer.count()).toBe(0);
  await box.fill(`When is high tide?\n\nhttp://${PUBLIC}:${site.addr.port}/tides`);
  await takePicture(page, "link-offer");
  await offer.click();
  await chips.getByText("Tides", { exact: true }).waitFor();
  await expect.poll(() => box.inputValue()).toBe("When is high tide?");
  await expect.poll(() => offer.count()).toBe(0);

  const refused = `http://${PRIVATE}:1/`;
  await box.fill(refused);
  await offer.click();
  await page.locator(".toast.error").waitFor();
  await expect.poll(() => box.inputValue()).toBe(refused);
  expect(errors.filter((error) => !error.includes("403"))).toEqual([]);
});

test("a shared link opens a new chat with its page and the cursor in the composer", async () => {
  await using site = Deno.serve(
    { hostname: PUBLIC, port: 0, onListen: () => {} },
    () =>
      new Response(`<!doctype html><title>Tides</title><article><p>${"High tide is at noon. ".repeat(40)}</article>`, {
        headers: { "content-type": "text/html" },
      }),
  );
  await using app = await openTestApp({ uiFolder, config: { guardAllow: [`${PUBLIC}/32`] } });
  const { page, errors } = await openApp(app, "/new");
  const link = `http://${PUBLIC}:${site.addr.port}/tides`;
  /** Shared content as the service worker stores it. */
  const share = (title: string, text: string) =>
    page.evaluate(async ([title, text]) => {
      const share = { id: crypto.randomUUID(), time: Date.now(), title, text, url: "", files: [] };
      await (await caches.open("parlor-shared")).put(`/shared/${share.id}`, Response.json(share));
    }, [title, text]);
  const hasShared = () => page.evaluate(() => caches.has("parlor-shared"));
  const box = page.getByLabel("Message", { exact: true });
  await share("Tides of today", `Tides of today\n\nLook: ${link}`);
  await page.goto(`${app.url}/share`);
  await page.getByRole("heading", { name: "Tides of today" }).waitFor();
  await takePicture(page, "share-link");
  // Nothing is fetched or lost until the choice.
  await expect.poll(async () => (await app.get("/api/documents")).json()).toEqual([]);
  await page.reload();
  await page.getByRole("button", { name: "Ask about this page" }).click();
  await page.waitForURL(`${app.url}/new`);
  await page.getByRole("list", { name: "Attached documents" }).getByText("Tides", { exact: true }).waitFor();
  await expect.poll(() => box.evaluate((field) => field === document.activeElement)).toBe(true);
  await expect.poll(() => box.inputValue()).toBe("Look:");
  await expect.poll(hasShared).toBe(false);

  await share("", link);
  await page.goto(`${app.url}/share`);
  await page.getByRole("button", { name: "Add to a message" }).click();
  await page.waitForURL(`${app.url}/new`);
  await expect.poll(() => box.inputValue()).toContain(link);
  expect(errors).toEqual([]);
});

test("pages of a scan are attached as images, at most four at a time", async () => {
  await using app = await openTestApp({ uiFolder });
  const llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  const { page, errors } = await openApp(app, "/new", PHONE);
  const url = dataUrl(picture(3, 64));
  const scan = await printPdf(Array.from({ length: 6 }, () => `<img src="${url}" style="width: 100%">`));
  const buffer = Buffer.from(scan);
  await page.locator(".composer input[type=file]").setInputFiles([
    { name: "scan.pdf", mimeType: "application/pdf", buffer },
  ]);
  await page.getByText("No text found. It may be a scan.").waitFor();
  await takePicture(page, "scan-chip");
  await page.getByRole("button", { name: "Send pages as images" }).click();
  const dialog = page.getByRole("dialog");
  const attach = dialog.getByRole("button", { name: "Attach images" });
  await dialog.getByLabel("Pages to send").fill("1-5");
  await expect.poll(() => attach.isDisabled()).toBe(true);
  await dialog.getByLabel("Pages to send").fill("2, 6");
  await takePicture(page, "scan-dialog");
  await attach.click();
  await dialog.waitFor({ state: "hidden" });
  await expect.poll(() => page.locator(".composer img").count()).toBe(2);
  await sendMessage(page, "What is on these pages?");
  await expect.poll(() => llm.chats.length).toBeGreaterThan(0);
  const parts = (llm.chats[0]!.json!.messages as { content: unknown }[]).at(-1)!.content as { type: string }[];
  expect(parts.filter(({ type }) => type === "image_url")).toHaveLength(2);
  expect(errors).toEqual([]);
  await llm.close();
});

test.each(WIDTHS)(
  "what doesn't fit is said before Send (%s), and the size of a model is asked for once",
  async (width, form) => {
    await using app = await openTestApp({ uiFolder });
    const model = "qwen2.5-7b-instruct";
    await using llm = await openFakeLlm({ models: [model, "other-7b"] });
    await useModel(app, llm, { model });
    const { page, errors } = await openApp(app, "/new", form);
    await page.getByText(model).first().waitFor();
    const text = Array.from({ length: 1500 }, (_, n) => `Line ${n} is about the barometer and its many moods.`).join(
      "\n\n",
    );
    const picker = page.locator('.composer input[type="file"]');
    await picker.setInputFiles({ name: "log.txt", mimeType: "text/plain", buffer: Buffer.from(text) });
    const chip = page.locator(".composer .document-chip");
    await chip.getByText(/^\d+ of \d+ sections fit this model$/).waitFor();
    await expect.poll(() => chip.getAttribute("class")).toContain("is-cut");
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await takePicture(page, `cut-${width}-${colorScheme}`);
      await expect.poll(() => findAxeProblems(page)).toEqual([]);
    }
    // All of it can be sent in spite of the assumption; what is chosen by sections is no cut.
    await chip.getByRole("button", { name: "Send all" }).click();
    await chip.locator(".cut-note").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "What to send from log.txt: All" }).click();
    await page.getByRole("menuitemradio", { name: "Automatic" }).click();
    await chip.getByRole("button", { name: "Choose sections…" }).click();
    const reader = page.getByRole("dialog", { name: "log.txt" });
    await reader.getByLabel("Sections to send").fill("2-3");
    await reader.getByRole("checkbox", { name: "Section 2", exact: true }).waitFor();
    await reader.getByRole("button", { name: "Send these sections" }).click();
    await chip.locator(".cut-note").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "What to send from log.txt: Sections 2–3" }).click();
    await page.getByRole("menuitemradio", { name: "Automatic" }).click();

    await chip.getByRole("button", { name: "Set context size" }).click();
    const dialog = page.getByRole("dialog", { name: "Context size" });
    await dialog.getByText("Models with this name usually take 32,768 tokens.").waitFor();
    await expect.poll(() => dialog.getByLabel("Tokens").inputValue()).toBe("32768");
    await takePicture(page, `context-size-${width}`);
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await dialog.getByLabel("Tokens").fill("32k");
    await dialog.getByText("Enter a whole number, such as 32768").waitFor();
    await dialog.getByLabel("Tokens").fill("65,536");
    await dialog.getByRole("button", { name: "Save" }).click();
    await chip.locator(".cut-note").waitFor({ state: "detached" });
    const sizes = async () => (await (await app.get("/api/connections")).json())[0].context_sizes;
    await expect.poll(() => sizes()).toEqual({ [model]: 65_536 });
    const described = await chip.getByRole("status").textContent();
    await sendMessage(page, "What is it about?");
    const sources = page.getByRole("list", { name: "Sources" });
    await sources.getByText(/^(\d+) of \1 sections sent$/).waitFor();
    await expect.poll(() => sources.locator(".is-cut").count()).toBe(0);
    const chat = new URL(page.url()).pathname.split("/").at(-1);
    const sentOf = async () =>
      (await (await app.get(`/api/conversations/${chat}`)).json()).messages.at(-1).documents[0].sent as {
        tokens: number;
        pages: string;
      };
    expect(described).toContain(`${(await sentOf()).tokens.toLocaleString("en")} tokens`);

    // Another model of the connection is still unknown: the message says afterward what the chip said before.
    await app.patch(`/api/conversations/${chat}`, { model: "other-7b" });
    await picker.setInputFiles({ name: "more.txt", mimeType: "text/plain", buffer: Buffer.from(text) });
    const words = await chip.getByText(/^\d+ of \d+ sections fit this model$/).textContent();
    await sendMessage(page, "And this?");
    await sources.last().locator(".is-cut").getByText(words!.replace("fit this model", "sent")).first().waitFor();
    await takePicture(page, `cut-sent-${width}`);
    expect(errors).toEqual([]);
  },
);

test("documents are attached to a chat, a character or a persona; Settings leads to their list, which deletes them", async () => {
  await using app = await openTestApp({ uiFolder });
  const { id } = await addDocument(app, "almanac.pdf", writePdf(["The lighthouse has 17 windows.", "Second page"]));
  await app.put("/api/conversations/c1", { title: "Chat", messages: [] });
  await app.put("/api/characters/ann", { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Ann" } });
  await app.put("/api/personas/me", { name: "Me" });
  const usesOf = async (path: string) => (await (await app.get(path)).json()).documents;
  const { page, errors } = await openApp(app, "/c/c1", { colorScheme: "dark", viewport: { width: 1280, height: 800 } });
  const add = page.getByLabel("Add a stored document");
  const alwaysAttached = page.getByRole("list", { name: "Always attached" });
  const useMenu = (use: string) => page.getByRole("button", { name: `What to send from almanac.pdf: ${use}` });

  await page.getByRole("button", { name: "Chat options" }).click();
  await add.selectOption("almanac.pdf");
  await alwaysAttached.getByText("PDF · 2 pages").waitFor();
  await expect.poll(() => usesOf("/api/conversations/c1")).toEqual([{ id, use: "auto" }]);
  await useMenu("Automatic").click();
  await page.getByRole("menuitemradio", { name: "Send all" }).click();
  await expect.poll(() => usesOf("/api/conversations/c1")).toEqual([{ id, use: "whole" }]);
  await alwaysAttached.scrollIntoViewIfNeeded();
  await takePicture(page, "chat-options");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await alwaysAttached.getByRole("button", { name: "Remove almanac.pdf" }).click();
  await expect.poll(async () => await usesOf("/api/conversations/c1") ?? []).toEqual([]);

  await page.goto(`${app.url}/characters/ann/edit#documents`);
  await add.selectOption("almanac.pdf");
  await expect.poll(() => usesOf("/api/characters/ann")).toEqual([{ id, use: "auto" }]);
  await takePicture(page, "character");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("tab", { name: "Identity" }).click();
  await page.getByLabel("Description", { exact: true }).fill("A keeper of lighthouses.");
  await expect.poll(async () => (await (await app.get("/api/characters/ann")).json()).card.data.description).toBe(
    "A keeper of lighthouses.",
  );
  await expect.poll(() => usesOf("/api/characters/ann")).toEqual([{ id, use: "auto" }]);

  await page.goto(`${app.url}/settings/personas/me`);
  const picker = page.locator('.always-attached input[type="file"]');
  await picker.setInputFiles({ name: "letter.txt", mimeType: "text/plain", buffer: Buffer.from("Dear Ann") });
  await alwaysAttached.getByText("Text · 1 section").waitFor();
  await takePicture(page, "persona");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(async () => (await usesOf("/api/personas/me"))?.length).toBe(1);

  await page.goto(`${app.url}/settings/data`);
  const section = page.getByRole("region", { name: "Documents" });
  await section.getByText(/^2 documents · /).waitFor();
  const library = section.getByRole("link", { name: "Library" });
  await library.scrollIntoViewIfNeeded();
  await takePicture(page, "data");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await library.click();
  await page.waitForURL(`${app.url}/library`);
  const list = page.getByRole("list", { name: "Documents" });
  await list.getByText("letter.txt").waitFor();
  await list.getByRole("button", { name: /^almanac\.pdf/ }).click();
  await page.getByRole("dialog", { name: "almanac.pdf" }).getByText("The lighthouse has 17 windows.").waitFor();
  await page.keyboard.press("Escape");
  await list.getByRole("button", { name: "Actions for “almanac.pdf”" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await expect.poll(() => list.getByText("almanac.pdf").count()).toBe(0);
  await page.goto("about:blank");
  await expect.poll(async () => (await (await app.get("/api/trash")).json()).map(({ title }: TrashItem) => title))
    .toEqual(
      ["almanac.pdf"],
    );
  expect(errors).toEqual([]);
});

test.each([
  ["en", "Decoded as EUC-JP", "Read again", "Text encoding"],
  ["de", "Als EUC-JP gelesen", "Neu lesen", "Zeichenkodierung"],
  ["ja", "EUC-JPとして読み取りました", "読み直す", "文字コード"],
])(
  "a chip says what isn't text, and a text is read again in another encoding (%s)",
  async (language, note, again, encoding) => {
    await using app = await openTestApp({ uiFolder });
    await app.patch("/api/settings", { language });
    const { page, errors } = await openApp(app, "/new", PHONE);
    const picker = page.locator('.composer input[type="file"]');
    const bytes = encodeText("図書館は九時に開きます。資料を持ってきてください。", "euc-jp");
    await picker.setInputFiles({ name: "memo.txt", mimeType: "text/plain", buffer: Buffer.from(bytes) });
    const html = '<p>Text</p><img src="a"><img src="b"><video></video>';
    await picker.setInputFiles({ name: "page.html", mimeType: "text/html", buffer: Buffer.from(html) });
    const chips = page.locator(".composer .document-chip");
    await chips.nth(0).getByText(note).waitFor();
    const summary = chips.nth(1).locator("summary");
    await summary.click();
    await expect.poll(() => chips.nth(1).locator("li").count()).toBe(2);
    await takePicture(page, `ledger_${language}`);
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    await chips.nth(0).locator(".document-use").click();
    await page.getByText(new RegExp(`^${encoding} ?…$`)).click();
    const dialog = page.getByRole("dialog", { name: encoding });
    await dialog.getByRole("combobox").selectOption("shift_jis");
    await takePicture(page, `encoding_${language}`);
    await dialog.getByRole("button", { name: again }).click();
    await chips.nth(0).locator("summary", { hasText: "Shift-JIS" }).waitFor();
    expect(errors).toEqual([]);
  },
);
