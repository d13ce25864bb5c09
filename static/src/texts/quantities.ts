/** Formats progress, sizes, times and large numbers. The first screen doesn't need these. */
import type { Job } from "../api/types.ts";
import { formatNumber, formatPercent } from "./format.ts";
import { language, texts } from "./texts.ts";

const STEPS = ["B", "kB", "MB", "GB", "TB"];

/** Returns `12 of 40 MB`, `3 of 8 steps`, `40%`, `120 files`; undefined if nothing is counted. */
export function formatProgress(progress: Job["progress"]): string | undefined {
  if (progress === null) return undefined;
  const { done, total, unit } = progress;
  if (unit === "bytes") return total === null ? bytes(done) : texts.activity.of(bytes(done), bytes(total));
  if (unit === "percent") return formatPercent(done / (total ?? 100));
  const { of, units, counted } = texts.activity;
  if (total === null) return counted[unit as keyof typeof counted]?.(done) ?? `${formatNumber(done)} ${unit}`;
  return `${of(formatNumber(done), formatNumber(total))} ${units[unit as keyof typeof units] ?? unit}`;
}

/** Formats a size with the unit that leaves one to three digits before the point. */
export function bytes(size: number): string {
  const step = size < 1 ? 0 : Math.min(STEPS.length - 1, Math.floor(Math.log10(size) / 3));
  const value = size / 1000 ** step;
  return `${formatNumber(step === 0 ? Math.round(value) : Math.round(value * 10) / 10)} ${STEPS[step]}`;
}

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
