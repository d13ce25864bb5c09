import { expect, test } from "vitest";
import { FINDINGS } from "../../../services/diagnostics/finding_texts.ts";
import { filledText } from "../../../services/json/message_template.ts";
import { codedReason, IMPORT_REASONS } from "../../../services/import_export/import_reasons.ts";
import { addLine, newReport } from "../../../services/import_export/import_report.ts";
import { said as de } from "../../../static/src/texts/de/said.ts";
import { said as ja } from "../../../static/src/texts/ja/said.ts";
import { saidFinding, saidReason } from "../../../static/src/texts/said.ts";

const placesIn = (text = "") => (text.match(/\{\w+\}/g) ?? []).sort();

test.each([["German", de], ["Japanese", ja]])(
  "%s says every sentence of the server, with the same places",
  (_, said) => {
    expect(Object.keys(said.reasons).sort()).toEqual(Object.keys(IMPORT_REASONS).sort());
    for (const [code, text] of Object.entries(IMPORT_REASONS)) {
      expect([code, placesIn(said.reasons[code])]).toEqual([code, placesIn(text)]);
    }
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

test("each reason is known again by its sentence, with the words that are inside", () => {
  for (const [code, text] of Object.entries(IMPORT_REASONS)) {
    const params = Object.fromEntries(placesIn(text).map((place, n) => [place.slice(1, -1), `${n} (a+b): "c"`]));
    const found = codedReason(filledText(text, params));
    expect(found).toEqual(Object.keys(params).length === 0 ? { code } : { code, params });
  }
  expect(codedReason("it has 7 legs")).toEqual({});
});

test("each reason is one that something says", async () => {
  let code = "";
  for (const room of ["imports", "characters", "personas", "presets", "lorebooks", "storage"]) {
    const folder = new URL(`../../../services/${room}/`, import.meta.url);
    for await (const { name } of Deno.readDir(folder)) {
      if (name.endsWith(".ts") && name !== "import_reasons.ts") code += await Deno.readTextFile(new URL(name, folder));
    }
  }
  const said = (text: string) => text.split(/\{\w+\}/).every((part) => code.includes(part));
  expect(Object.entries(IMPORT_REASONS).filter(([, text]) => !said(text))).toEqual([]);
});

test("a line of a report carries its code; another language says it, and what it does not know stays as it came", () => {
  const report = newReport("tavern", true);
  addLine(report, { level: "refused", source: "a", reason: "line 7 is no object of JSON and was passed over" });
  addLine(report, { level: "refused", source: "b", reason: "it has 7 legs" });
  const [known, unknown] = report.lines;
  expect(known).toMatchObject({ code: "broken_line", params: { line: "7" } });
  expect(saidReason(de, known!)).toBe("Zeile 7 ist kein JSON-Objekt und wurde übergangen");
  expect(saidReason(undefined, known!)).toBe(known!.reason);
  expect(saidReason(ja, unknown!)).toBe("it has 7 legs");
  expect(saidReason(ja, { code: "new_one", reason: "newer than the page" })).toBe("newer than the page");
  const finding = { code: "disk_ok", params: { path: "/data", free: "3.5" }, about: "as it came" };
  expect(saidFinding(ja, finding)).toEqual({ about: "「/data」の空きは 3.5 GiB です", remedy: undefined });
  expect(saidFinding(ja, { ...finding, code: "new_one", remedy: "r" })).toEqual({ about: "as it came", remedy: "r" });
});
