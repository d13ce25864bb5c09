/** Parts that Office files have in common: charts, diagrams, macros and symbol fonts. */
import type { PageSink, TextBlock } from "./extraction.ts";
import { type Archive, readPart, type readRelations, readXmlTags } from "./xml_archive.ts";

/** A relation of a part, from `readRelations`. */
export type Relation = Awaited<ReturnType<typeof readRelations>>[number];

/** Returns the texts of the charts and diagrams (SmartArt) that a part refers to. Both are parts of their own. */
export async function readDrawings(
  archive: Archive,
  relations: readonly Relation[],
  sink: PageSink,
): Promise<TextBlock[]> {
  const blocks: TextBlock[] = [];
  for (const { kind, path } of relations) {
    if (kind === "diagramData") blocks.push(...toBlock(parseDiagram(await readPart(archive, path))));
    else if (kind === "chart") blocks.push(...toBlock(parseChart(await readPart(archive, path))));
    else if (kind === "chartEx") sink.note("unknown", { example: "chart" });
  }
  return blocks;
}

function toBlock(text: string): TextBlock[] {
  return text === "" ? [] : [{ text }];
}

/** Returns the text of SmartArt: its items, one per line. @see ECMA-376, part 1, section 21.4.2 */
function parseDiagram(xml: string): string {
  let text = "";
  readXmlTags(xml, {
    text: (data, name) => void (text += name === "t" ? data : ""),
    close: (name) => void (text += name === "p" ? "\n" : ""),
  });
  return text.replace(/\n\s*\n/g, "\n").trim();
}

/** Maximum number of points of a chart that are read: more are the data of a sheet. */
const MAX_POINTS = 500;

/** A series of a chart. */
interface Series {
  name: string;
  /** By their index. */
  categories: string[];
  values: string[];
}

/** Returns the title of a chart and its stored values as a table. @see ECMA-376, part 1, section 21.2.2 */
function parseChart(xml: string): string {
  const series: Series[] = [];
  let title = "";
  let isTitle = false;
  let list: "name" | "categories" | "values" | undefined;
  let index = 0;
  readXmlTags(xml, {
    open(name, { idx = "" }) {
      if (name === "title") isTitle = true;
      else if (name === "ser") series.push({ name: "", categories: [], values: [] });
      else if (name === "tx" && !isTitle) list = "name";
      else if (name === "cat" || name === "xval") list = "categories";
      else if (name === "val" || name === "yval") list = "values";
      else if (name === "pt") index = Number(idx);
    },
    text(data, name) {
      if (name === "t" && isTitle) title += data;
      const own = series.at(-1);
      if (name !== "v" || own === undefined || list === undefined) return;
      if (list === "name") own.name += data;
      else if (index < MAX_POINTS) own[list][index] = (own[list][index] ?? "") + data;
    },
    close(name) {
      if (name === "title") isTitle = false;
      if (/^(tx|cat|xval|val|yval)$/.test(name)) list = undefined;
      if (name === "p" && isTitle) title += " ";
    },
  });
  const categories = series.find((one) => one.categories.length > 0)?.categories ?? [];
  const rows = series.map(({ name, values }) => [name, ...Array.from(values, (value) => value ?? "")]);
  const table = [["", ...Array.from(categories, (value) => value ?? "")], ...rows]
    .filter((row) => row.some((cell) => cell !== "")).map((row) => row.join(" | "));
  const heading = title.trim();
  return heading === "" && table.length === 0
    ? ""
    : [heading === "" ? "Chart" : `Chart: ${heading}`, ...table].join("\n");
}

/** Returns the address in the code of a field, such as `HYPERLINK "https://a.example" \o "Tip"`. */
export function findFieldAddress(code: string): string | undefined {
  const [, quoted, plain] = /^\s*HYPERLINK\s+(?:"([^"]*)"|([^\s\\"]\S*))/i.exec(code) ?? [];
  return quoted ?? plain;
}

/** Returns the character in the code of a field, such as `SYMBOL 183 \f "Symbol"`. */
export function findFieldSymbol(code: string): string | undefined {
  const [, number = "", font = ""] = /^\s*SYMBOL\s+(0x[\da-f]+|\d+)(?:[^"]*\\f\s*"([^"]*)")?/i.exec(code) ?? [];
  return number === "" ? undefined : findSymbol(font, Number(number));
}

/** Returns the address of a formula that is a link, such as `HYPERLINK("https://a.example","shop")`. */
export function findFormulaAddress(formula: string): string | undefined {
  return /^(?:\w+:)?=?\s*HYPERLINK\s*\(\s*"([^"]*)"/i.exec(formula)?.[1];
}

/** Names macros in the ledger. They aren't text. */
export function noteMacros(archive: Archive, sink: PageSink): void {
  const macros = [...archive.entries.keys()].filter((path) => /(^|\/)vbaProject\.bin$|^Basic\/.*\.xml$/i.test(path));
  const scripts = macros.filter((path) => !/script-l[bc]\.xml$/.test(path));
  sink.note("script", { count: scripts.length, example: scripts[0] });
}

/**
 * Returns the character of a symbol font; that of Unicode for other fonts.
 *
 * @param code From 0, or from U+F000 in the private use area.
 * @returns `undefined` if it isn't known.
 */
export function findSymbol(font: string, code: number): string | undefined {
  const isPrivate = code >= 0xf000 && code <= 0xf0ff;
  const symbols = /^symbol/i.test(font) ? SYMBOL : /^wingdings/i.test(font) ? WINGDINGS : undefined;
  return symbols?.[isPrivate ? code - 0xf000 : code] ??
    (isPrivate || !(code > 0x1f) ? undefined : String.fromCharCode(code));
}

const ROMAN = [
  ...[[1000, "m"], [900, "cm"], [500, "d"], [400, "cd"], [100, "c"], [90, "xc"], [50, "l"], [40, "xl"]] as const,
  ...[[10, "x"], [9, "ix"], [5, "v"], [4, "iv"], [1, "i"]] as const,
];

/** Formats the number of a list item. @param format As in DOCX: `lowerRoman`, `upperLetter` … */
export function formatNumber(number: number, format: string): string {
  if (number < 1 || number > 10_000) return String(number);
  const letter = String.fromCharCode(97 + (number - 1) % 26).repeat(Math.ceil(number / 26));
  let roman = "";
  let rest = number;
  for (const [value, digits] of ROMAN) for (; rest >= value; rest -= value) roman += digits;
  switch (format) {
    case "lowerLetter":
      return letter;
    case "upperLetter":
      return letter.toUpperCase();
    case "lowerRoman":
      return roman;
    case "upperRoman":
      return roman.toUpperCase();
    default:
      return String(number);
  }
}

/** Characters of a font from a code on. */
function fromCode(code: number, characters: string): [number, string][] {
  return Array.from(characters).map((character, n) => [code + n, character]);
}

/** Characters of the font Symbol. @see https://www.unicode.org/Public/MAPPINGS/VENDORS/ADOBE/symbol.txt */
const SYMBOL: Record<number, string> = Object.fromEntries([
  ...fromCode(0x41, "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"),
  ...fromCode(0x61, "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"),
  ...fromCode(0xa3, "≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…"),
  ...fromCode(0xc0, "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊"),
  ...[[0xe5, "∑"], [0xf2, "∫"], [0x22, "∀"], [0x24, "∃"]] as [number, string][],
]);

/** The common characters of the font Wingdings. */
const WINGDINGS: Record<number, string> = {
  ...{ 0x22: "✂", 0x28: "☎", 0x2a: "✉", 0x4a: "☺", 0x4c: "☹", 0x6c: "●", 0x6e: "■", 0x6f: "□", 0x71: "❑", 0x76: "❖" },
  ...{ 0x9f: "•", 0xa7: "▪", 0xa8: "◻", 0xd8: "➢", 0xe0: "→", 0xe8: "➔", 0xf0: "⇨", 0xfb: "✗", 0xfc: "✓", 0xfd: "☒" },
  ...{ 0xfe: "☑" },
};
