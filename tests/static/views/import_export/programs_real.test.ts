/**
 * Exports of other programs are recognized and imported through the page, whose report says what stays behind, in three
 * languages.
 *
 * @slow A browser on the real server.
 */
import { Buffer } from "node:buffer";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ImportKind } from "../../../../services/import_export/import_item.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";
import { listImportSamples } from "../../../helpers/files/import_samples.ts";

const FOLDER = Deno.env.get("SCREENSHOTS");

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

/** A line of each report; a dump of Character.AI has none. */
type Lines = Partial<Record<ImportKind, string>>;

test.each<[string, object, { preview: string; start: string; done: string }, Lines]>([
  [
    "en-US",
    { viewport: { width: 1280, height: 800 } },
    { preview: "Preview import", start: "Import", done: "Imported" },
    {
      lmstudio: "parts of a kind that isn't imported: file, toolStatus",
      jan: "parts of a kind that isn't imported: image_url",
      llamacpp: "parts of a kind that isn't imported: AUDIO",
      cherrystudio: "API keys aren't imported: add your services under Connections",
      koboldcpp: "entries without keys and text aren't imported",
      textgen: "files without chats aren't imported",
      backyard: "sampling settings of scenarios aren't imported: choose a preset",
      claude: 'the instructions of the project "Mill" aren\'t imported',
    },
  ],
  ["de-DE", PHONE, { preview: "Importvorschau", start: "Importieren", done: "Importiert" }, {
    lmstudio: "Teile einer Art, die nicht importiert wird: file, toolStatus",
    jan: "Teile einer Art, die nicht importiert wird: image_url",
    llamacpp: "Teile einer Art, die nicht importiert wird: AUDIO",
    cherrystudio: "API-Schlüssel werden nicht importiert: Fügen Sie Ihre Dienste unter „Verbindungen“ hinzu",
    koboldcpp: "Einträge ohne Schlüssel und Text werden nicht importiert",
    textgen: "Dateien ohne Chats werden nicht importiert",
    backyard: "Sampling-Einstellungen der Szenarien werden nicht importiert: ein Preset wählen",
    claude: "die Anweisungen des Projekts „Mill“ werden nicht importiert",
  }],
  ["ja-JP", { ...PHONE, colorScheme: "dark" }, {
    preview: "インポートをプレビュー",
    start: "インポート",
    done: "インポートされたもの",
  }, {
    lmstudio: "インポートしない種類の部分: file, toolStatus",
    jan: "インポートしない種類の部分: image_url",
    llamacpp: "インポートしない種類の部分: AUDIO",
    cherrystudio: "サービスのキーは引き継ぎません。「接続」で入力してください",
    koboldcpp: "キーも本文もないエントリはインポートしません",
    textgen: "チャットではないファイルはインポートしません",
    backyard: "シナリオのサンプリング設定はインポートされません。プリセットを選択してください",
    claude: "プロジェクト「Mill」の指示はインポートしません",
  }],
])(
  "exports of other programs are imported, and the report says what isn't (%s)",
  async (locale, device, names, lines) => {
    await using app = await openTestApp({ uiFolder, config: { setupCompleted: true } });
    const { page, errors, context } = await openPage(browser, app.url, { ...device, locale });
    const main = page.getByRole("main");
    for (const { kind, name, bytes } of listImportSamples()) {
      await page.goto(`${app.url}/settings/data/import`);
      const mimeType = "application/octet-stream";
      await main.locator("input[type=file]").first().setInputFiles({ name, mimeType, buffer: Buffer.from(bytes) });
      await expect.poll(() => main.locator("select").first().inputValue(), { message: name }).toBe(kind);
      await main.getByRole("button", { name: names.preview }).click();
      await main.getByRole("button", { name: names.start, exact: true }).click();
      await main.getByRole("heading", { name: names.done, exact: true }).waitFor();
      const report = main.locator(".import-report").first();
      const line = lines[kind];
      if (line === undefined) {
        await expect.poll(() => report.locator("details.import-lines").count(), { message: name }).toBe(0);
        continue;
      }
      // Groups of lines are closed, and can be in another one.
      const opened = report.locator("details.import-lines:not([open]) > summary");
      await expect.poll(() => opened.count(), { message: name }).toBeGreaterThan(0);
      await report.evaluate((element) => {
        for (const details of element.querySelectorAll<HTMLDetailsElement>("details.import-lines")) details.open = true;
      });
      await report.getByText(line).first().waitFor();
      // What is counted here are parts of a chat, not files.
      if (kind === "lmstudio") await report.getByText("2 ×", { exact: true }).waitFor();
      await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth > innerWidth), { message: name })
        .toBe(false);
      if (FOLDER) await page.screenshot({ path: `${FOLDER}/import-${kind}-${locale}.png`, fullPage: true });
    }
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    const chats: unknown[] = await (await app.get("/api/conversations")).json();
    expect(chats.length).toBe(listImportSamples().length);
    expect(errors).toEqual([]);
    await context.close();
  },
);
