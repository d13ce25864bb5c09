/** The sampling parameters that a chat can set, and their limits. */

/** A numeric field. */
export interface NumberField {
  name: string;
  min: number;
  max: number;
  isWhole?: boolean;
}

/** In display order, by their names in the API. */
export const NUMBER_FIELDS = [
  { name: "temperature", min: 0, max: 5 },
  { name: "top_p", min: 0, max: 1 },
  { name: "top_k", min: 0, max: 1000, isWhole: true },
  { name: "min_p", min: 0, max: 1 },
  { name: "max_tokens", min: 1, max: 1_000_000, isWhole: true },
  { name: "repetition_penalty", min: 0, max: 3 },
  { name: "presence_penalty", min: -2, max: 2 },
  { name: "frequency_penalty", min: -2, max: 2 },
  { name: "seed", min: -1, max: 4_294_967_295, isWhole: true },
] as const satisfies readonly NumberField[];

/** A numeric sampling parameter. */
export type NumberFieldName = (typeof NUMBER_FIELDS)[number]["name"];

/** Parses a number: undefined for empty text, `bad` for an invalid value. */
export function parseNumber(field: NumberField, text: string): number | undefined | "bad" {
  const plain = text.trim().replace(",", ".");
  if (plain === "") return undefined;
  const value = Number(plain);
  if (!Number.isFinite(value) || value < field.min || value > field.max) return "bad";
  return field.isWhole && !Number.isInteger(value) ? "bad" : value;
}

/** Parses stop sequences, one per line; `\n` is a line break. */
export function parseStops(text: string): string[] | undefined {
  const stops = text.split("\n").filter((line) => line !== "").map((line) => line.replaceAll("\\n", "\n"));
  return stops.length === 0 ? undefined : stops;
}

/** Formats stop sequences for `parseStops`. */
export function formatStops(stop: unknown): string {
  const stops = typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop : [];
  return stops.filter((each) => typeof each === "string").map((each) => each.replaceAll("\n", "\\n")).join("\n");
}
