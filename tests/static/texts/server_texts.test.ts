import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { CARD_LEDGER } from "../../../services/characters/card/card_ledger.ts";
import { FINDINGS } from "../../../services/diagnostics/finding.ts";
import { addLine, createReport, IMPORT_REASONS, importReason } from "../../../services/import_export/import_report.ts";
import { LOREBOOK_LEDGER } from "../../../services/lorebooks/lorebook_ledger.ts";
import { PRESET_LEDGER } from "../../../services/presets/preset_ledger.ts";
import { serverTexts as de } from "../../../static/src/texts/de/server_texts.ts";
import { serverTexts as ja } from "../../../static/src/texts/ja/server_texts.ts";
import { translateFinding, translateReason } from "../../../static/src/texts/server_texts.ts";

const placesIn = (text = "") => (text.match(/\{\w+\}/g) ?? []).sort();

test.each([["German", de], ["Japanese", ja]])(
  "%s has every sentence of the server, with the same placeholders",
  (_, said) => {
    expect(Object.keys(said.reasons).sort()).toEqual(Object.keys(IMPORT_REASONS).sort());
    for (const [code, text] of Object.entries(IMPORT_REASONS)) {
      expect([code, placesIn(said.reasons[code])]).toEqual([code, placesIn(text)]);
    }
    const ledger = { ...CARD_LEDGER, ...PRESET_LEDGER, ...LOREBOOK_LEDGER };
    expect(Object.keys(said.ledger).sort()).toEqual(Object.keys(ledger).sort());
    expect(Object.keys(said.findings).sort()).toEqual(Object.keys(FINDINGS).sort());
    for (const [code, text] of Object.entries(FINDINGS) as [string, { about: string; remedy?: string }][]) {
      const own = said.findings[code]!;
      expect([code, placesIn(own.about)]).toEqual([code, placesIn(text.about)]);
      expect([code, placesIn(own.remedy), own.remedy === undefined])
        .toEqual([code, placesIn(text.remedy), text.remedy === undefined]);
      for (const words of [own.about, own.remedy ?? "-"]) expect(words, code).not.toMatch(/^\s*$|[!！]|\.\.\./);
    }
  },
);

test("every reason of an import is used", async () => {
  const folder = new URL("../../../services/import_export/", import.meta.url);
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith(".ts"));
  const sources = await Promise.all(paths.map((path) => Deno.readTextFile(new URL(path, folder))));
  const unused = Object.keys(IMPORT_REASONS).filter((code) => !sources.some((text) => text.includes(`"${code}"`)));
  expect(unused).toEqual([]);
});

test("translates a report line by its code, and shows the server's text for an unknown code", () => {
  const report = createReport("tavern", true);
  addLine(report, { level: "refused", source: "a", ...importReason("broken_line", { line: 7 }) });
  addLine(report, { level: "refused", source: "b", reason: "it has 7 legs" });
  const [known, unknown] = report.lines;
  expect(known).toMatchObject({ code: "broken_line", params: { line: "7" } });
  expect(translateReason(de, known!)).toBe("Zeile 7 übersprungen: kein JSON-Objekt");
  expect(translateReason(undefined, known!)).toBe(known!.reason);
  expect(translateReason(ja, unknown!)).toBe("it has 7 legs");
  expect(translateReason(ja, { code: "new_one", reason: "newer than the page" })).toBe("newer than the page");
  const finding = { code: "disk_ok", params: { path: "/data", free: "3.5" }, about: "as it came" };
  expect(translateFinding(ja, finding)).toEqual({ about: "「/data」の空きは 3.5 GiB です", remedy: undefined });
  expect(translateFinding(ja, { ...finding, code: "new_one", remedy: "r" })).toEqual({
    about: "as it came",
    remedy: "r",
  });
});
