/**
 * Documents of every kind are attached through the page, and each says what isn't in its text, in three languages.
 *
 * @slow A browser on the real server.
 */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import * as kinds from "../../../helpers/files/document_kinds.ts";

const FOLDER = Deno.env.get("SCREENSHOTS");

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const TEXTS = [
  "Der Wärter stieg jeden Abend die Stufen des Leuchtturms hinauf, ehe die Sonne unterging.",
  "Er füllte die Lampe mit Öl, putzte das Glas und schrieb die Stunde in ein großes Buch.",
];
type Note = "hidden" | "image" | "result" | "file" | "encoding";
/** Each kind of file and what is said of it; nothing of one that is all text. */
const FILES: [string, kinds.DocumentWriter, Note?][] = [
  ["Budget.xlsx", kinds.writeXlsx, "hidden"],
  ["Hafen.pptx", kinds.writePptx, "hidden"],
  ["Brief.odt", kinds.writeOdt, "image"],
  ["Kosten.ods", kinds.writeOds, "result"],
  ["Folien.odp", kinds.writeOdp, "image"],
  ["Notiz.rtf", kinds.writeRtf, "image"],
  ["Nachricht.msg", kinds.writeMsg, "file"],
  ["Post.eml", kinds.writeEml, "file"],
  ["Seite.mhtml", kinds.writeMhtml, "image"],
  ["Rechnung.ipynb", kinds.writeNotebook, "image"],
  ["Film.srt", kinds.writeOldSrt, "encoding"],
  ["Film.vtt", kinds.writeVtt],
];

test.each<[string, object, string, Record<Note, string>]>([
  ["en-US", { viewport: { width: 1280, height: 800 } }, "Attached documents", {
    hidden: "1 hidden part is read, too",
    image: "1 image not read",
    result: "1 formula, read as the stored result",
    file: "1 embedded file not read",
    encoding: "Decoded as Windows-1252",
  }],
  ["de-DE", PHONE, "Angehängte Dokumente", {
    hidden: "1 ausgeblendeter Teil mitgelesen",
    image: "1 Bild nicht gelesen",
    result: "1 Formel, als gespeichertes Ergebnis gelesen",
    file: "1 eingebettete Datei nicht gelesen",
    encoding: "Als Windows-1252 gelesen",
  }],
  ["ja-JP", { ...PHONE, colorScheme: "dark" }, "添付した文書", {
    hidden: "非表示の部分1件も読み取りました",
    image: "読み取らない画像：1",
    result: "数式1件は保存されている結果として読み取りました",
    file: "読み取らない埋め込みファイル：1",
    encoding: "Windows-1252として読み取りました",
  }],
])("documents of every kind say what isn't in their text (%s)", async (locale, device, list, notes) => {
  await using app = await openTestApp({ uiFolder, config: { setupCompleted: true } });
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  const { page, errors, context } = await openPage(browser, app.url, { ...device, locale });
  await page.goto(`${app.url}/new`);
  const files = await Promise.all(FILES.map(async ([name, write]) => {
    const content = await write(TEXTS);
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    return { name, mimeType: "application/octet-stream", buffer: Buffer.from(bytes) };
  }));
  await page.locator('.composer input[type="file"]').setInputFiles(files);
  const chips = page.getByRole("list", { name: list }).getByRole("listitem");
  await expect.poll(() => chips.count()).toBe(FILES.length);
  for (const [name, , note] of FILES) {
    const ledger = chips.filter({ hasText: name }).locator(".ledger summary, p.ledger");
    await expect.poll(() => ledger.allTextContents(), { message: name }).toEqual(
      note === undefined ? [] : [notes[note]],
    );
  }
  // Every one was read: none has failed or is still being read.
  const listStates = async () => {
    const stored: { name: string; state: string }[] = await (await app.get("/api/documents")).json();
    return stored.map(({ name, state }) => [name, state]).sort();
  };
  await expect.poll(listStates).toEqual(FILES.map(([name]) => [name, "ready"]).sort());
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  if (FOLDER) await page.screenshot({ path: `${FOLDER}/kinds-${locale}.png` });
  expect(errors).toEqual([]);
  await context.close();
});
