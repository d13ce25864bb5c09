/** Timestamps in the formats that SillyTavern and its relatives have used. */

/** `2023-6-1 @14h 22m 5s 123ms`, also without spaces and milliseconds. */
const WITH_LETTERS = /^(\d{4})-(\d{1,2})-(\d{1,2})\s*@\s*(\d{1,2})h\s*(\d{1,2})m\s*(\d{1,2})s(?:\s*(\d{1,3})ms)?$/;
/** `June 19, 2023 2:20pm` */
const IN_WORDS = /^([A-Za-z]+ \d{1,2}, \d{4}) (\d{1,2}):(\d{2})\s*([ap]m)$/i;
/** Smaller numbers are seconds. */
const FIRST_MS = 100_000_000_000;

/**
 * Converts a timestamp to ISO 8601 in UTC; `undefined` if it is invalid. Times without a zone are in this machine's
 * time zone.
 */
export function toIsoTime(value: unknown): string | undefined {
  const ms = toMs(value);
  if (ms === undefined || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return undefined;
  return new Date(ms).toISOString();
}

function toMs(value: unknown): number | undefined {
  if (typeof value === "number") return value <= 0 ? undefined : value < FIRST_MS ? value * 1000 : value;
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const text = value.trim();
  if (/^\d{9,14}(\.\d+)?$/.test(text)) return toMs(Number(text));
  const letters = WITH_LETTERS.exec(text);
  if (letters !== null) {
    const [year, month, day, hour, minute, second, ms = "0"] = letters.slice(1);
    return new Date(+year!, +month! - 1, +day!, +hour!, +minute!, +second!, +ms).getTime();
  }
  const words = IN_WORDS.exec(text);
  if (words !== null) {
    const [day, hour, minute, half] = words.slice(1);
    return Date.parse(`${day} ${(+hour! % 12) + (half!.toLowerCase() === "pm" ? 12 : 0)}:${minute}`);
  }
  return Date.parse(text);
}
