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
  { name: "context_size", min: 1, max: 100_000_000, isWhole: true },
  { name: "repetition_penalty", min: 0, max: 3 },
  { name: "presence_penalty", min: -2, max: 2 },
  { name: "frequency_penalty", min: -2, max: 2 },
  { name: "seed", min: -1, max: 4_294_967_295, isWhole: true },
] as const satisfies readonly NumberField[];

/** Wide enough for any parameter that only its server knows. */
export const ANY = 1_000_000_000;

/** Parameters that only some servers have, with known limits. */
export const MORE_FIELDS: readonly NumberField[] = [
  { name: "top_a", min: 0, max: 1 },
  { name: "typical_p", min: 0, max: 1 },
];

/** Parameters that aren't numbers. */
const OTHER_SAMPLERS = new Set(["stop", "logit_bias"]);

/** Servers' names of our parameters, which error messages may contain. */
const SERVER_NAMES: Record<string, string> = {
  max_completion_tokens: "max_tokens",
  num_predict: "max_tokens",
  repeat_penalty: "repetition_penalty",
  rep_pen: "repetition_penalty",
  typical: "typical_p",
  random_seed: "seed",
  stop_sequences: "stop",
};

/** Returns our name of a rejected parameter: `options.repeat_penalty` is `repetition_penalty`. */
export function getParameterName(field: string): string {
  const name = field.split(".").at(-1)!;
  return SERVER_NAMES[name] ?? name;
}

/** Returns the samplers of a server that most servers don't have. */
export function listMoreFields(samplers: readonly string[]): NumberField[] {
  const common: readonly NumberField[] = NUMBER_FIELDS;
  return samplers
    .filter((name) => !OTHER_SAMPLERS.has(name) && common.every((field) => field.name !== name))
    .map((name) => MORE_FIELDS.find((field) => field.name === name) ?? { name, min: -ANY, max: ANY });
}

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
