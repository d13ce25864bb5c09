/** Formats the progress of a job with its unit. */
import type { Job } from "../../api/types.ts";
import { formatNumber, formatPercent } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";

const STEPS = ["B", "kB", "MB", "GB", "TB"];

/** Returns `12 of 40 MB`, `3 of 8 steps`, `40%`, `120 files`; undefined if nothing is counted. */
export function formatProgress(progress: Job["progress"]): string | undefined {
  if (progress === null) return undefined;
  const { done, total, unit } = progress;
  if (unit === "bytes") return total === null ? bytes(done) : texts.activity.of(bytes(done), bytes(total));
  if (unit === "percent") return formatPercent(done / (total ?? 100));
  const words = texts.activity.units[unit as keyof typeof texts.activity.units] ?? unit;
  return `${total === null ? formatNumber(done) : texts.activity.of(formatNumber(done), formatNumber(total))} ${words}`;
}

/** Formats a size with the unit that leaves one to three digits before the point. */
export function bytes(size: number): string {
  const step = size < 1 ? 0 : Math.min(STEPS.length - 1, Math.floor(Math.log10(size) / 3));
  const value = size / 1000 ** step;
  return `${formatNumber(step === 0 ? Math.round(value) : Math.round(value * 10) / 10)} ${STEPS[step]}`;
}
