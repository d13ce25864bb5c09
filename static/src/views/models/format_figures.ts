/** Formats sizes, rates and times. */
import { language } from "../../texts/texts.ts";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** Formats a size in decimal units, as disks are sold: `1.6 GB`. */
export function formatSize(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  const digits = unit > 1 && value < 100 ? 1 : 0;
  const format = { style: "unit", unit: UNITS[unit]!, unitDisplay: "short", maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(language.value, format).format(value);
}

/** Formats a remaining time in its two largest units: `3 min 20 s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds));
  const parts = [[Math.floor(whole / 3600), "hour"], [Math.floor(whole / 60) % 60, "minute"], [
    whole % 60,
    "second",
  ]] as const;
  const first = parts.findIndex(([value]) => value > 0);
  return parts.slice(first, first + 2).filter(([value]) => value > 0).map(([value, unit]) =>
    new Intl.NumberFormat(language.value, { style: "unit", unit, unitDisplay: "short" }).format(value)
  ).join(" ");
}

/** Formats a large number in short: `1.2M`. */
export function formatCount(count: number): string {
  return new Intl.NumberFormat(language.value, { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/** Formats a date: `1 Aug 2026`. */
export function formatDay(iso: string): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium" }).format(new Date(iso));
}
