/** Figures of the usage of models, as text. */
import type { UsageTotal } from "../../api/types.ts";
import { formatNumber } from "../../texts/format.ts";
import { language, texts } from "../../texts/texts.ts";

/** Formats an amount in US dollars; small ones with more digits. */
export function formatCost(dollars: number): string {
  const digits = dollars > 0 && dollars < 1 ? 4 : 2;
  const format = {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  } as const;
  return new Intl.NumberFormat(language.value, format).format(dollars);
}

/** Formats a day: `3 May`. @param date `"2026-05-03"` */
export function formatDate(date: string): string {
  const format = new Intl.DateTimeFormat(language.value, { day: "numeric", month: "short", timeZone: "UTC" });
  return format.format(new Date(`${date}T00:00:00Z`));
}

/** Formats a time in seconds, such as `1.4 s`. */
export function formatSeconds(ms: number): string {
  return texts.messageDetails.seconds(formatNumber(Math.round(ms / 100) / 10));
}

/** Returns the names and values of a total. Unknown ones are left out. */
export function listFigures(sums: UsageTotal): [name: string, value: string][] {
  const t = texts.messageDetails;
  const { cost, first_word_ms: firstWordMs, tokens_per_second: speed, cached_tokens: cached } = sums;
  const rows: [string, string | undefined][] = [
    [texts.usage.replies, formatNumber(sums.replies)],
    [texts.usage.kinds.background, sums.background_calls > 0 ? formatNumber(sums.background_calls) : undefined],
    [t.promptTokens, formatNumber(sums.prompt_tokens)],
    [t.cachedTokens, cached > 0 ? formatNumber(cached) : undefined],
    [t.replyTokens, formatNumber(sums.completion_tokens)],
    [t.firstWord, firstWordMs === null ? undefined : formatSeconds(firstWordMs)],
    [texts.usage.speed, speed === null ? undefined : formatNumber(Math.round(speed * 10) / 10)],
    [texts.usage.cost, cost === null ? undefined : formatCost(cost)],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}
