/** Formats times and numbers in the language of the page. */
import { texts } from "./texts.ts";

interface Formats {
  locale: string;
  month: Intl.DateTimeFormat;
  moment: Intl.DateTimeFormat;
  hour: Intl.DateTimeFormat;
  weekday: Intl.DateTimeFormat;
  day: Intl.DateTimeFormat;
  date: Intl.DateTimeFormat;
  number: Intl.NumberFormat;
}

let cached: Formats | undefined;

/** Returns the formats of the current language, created once per language. */
function formats(): Formats {
  const { locale } = texts;
  if (cached?.locale !== locale) {
    // Keep the region of the browser: en-GB writes dates differently from en-US.
    const own = globalThis.navigator.languages.find((tag) => tag.split("-")[0] === locale)?.split("-u-")[0] ?? locale;
    cached = {
      locale,
      month: new Intl.DateTimeFormat(own, { month: "long", year: "numeric" }),
      moment: new Intl.DateTimeFormat(own, { dateStyle: "medium", timeStyle: "short" }),
      hour: new Intl.DateTimeFormat(own, { timeStyle: "short" }),
      weekday: new Intl.DateTimeFormat(own, { weekday: "short" }),
      day: new Intl.DateTimeFormat(own, { day: "numeric", month: "short" }),
      date: new Intl.DateTimeFormat(own, { dateStyle: "short" }),
      number: new Intl.NumberFormat(own),
    };
  }
  return cached;
}

/** Formats a duration as `0:45`, `12:03` or `1:00:00`. */
export function formatClock(elapsedMs: number): string {
  const seconds = Math.max(0, Math.floor(elapsedMs / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const tail = String(seconds % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** Formats a number with the separators of the language. */
export function formatNumber(value: number): string {
  return formats().number.format(value);
}

/** Formats a share from 0 to 1 as a percentage. */
export function formatPercent(share: number): string {
  return share.toLocaleString(formats().locale, { style: "percent", maximumFractionDigits: 0 });
}

/** Formats a time: only the time of day if it is today, otherwise with the date. Empty for an invalid time. */
export function formatTime(iso: string | undefined, now: Date): string {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return "";
  const { hour, moment } = formats();
  return date.toDateString() === now.toDateString() ? hour.format(date) : moment.format(date);
}

/** Formats a time as short as lists need it: the time of day, the day of this week, or the date. */
export function formatShortTime(iso: string | undefined, now: Date): string {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return "";
  const { hour, weekday, day, date: numeric } = formats();
  if (date.toDateString() === now.toDateString()) return hour.format(date);
  const sixDaysAgo = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 6);
  if (date >= sixDaysAgo && date <= now) return weekday.format(date);
  return date.getFullYear() === now.getFullYear() ? day.format(date) : numeric.format(date);
}

/** Formats a date with the time of day. Empty for an invalid time. */
export function formatDateTime(iso: string | undefined): string {
  const date = new Date(iso ?? "");
  return Number.isNaN(date.getTime()) ? "" : formats().moment.format(date);
}

/** Groups newest-first items under Today, Yesterday, This week (the last seven days) and their months. */
export function groupByDay<T extends { last_message_at: string }>(
  items: readonly T[],
  now: Date,
): { title: string; items: T[] }[] {
  const groups: { title: string; items: T[] }[] = [];
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const daysAgo = (n: number) => new Date(midnight.getFullYear(), midnight.getMonth(), midnight.getDate() - n);
  for (const item of items) {
    const date = new Date(item.last_message_at);
    const title = Number.isNaN(date.getTime()) || date >= midnight
      ? texts.nav.today
      : date >= daysAgo(1)
      ? texts.nav.yesterday
      : date >= daysAgo(7)
      ? texts.nav.thisWeek
      : formats().month.format(date);
    const group = groups.at(-1);
    if (group?.title === title) group.items.push(item);
    else groups.push({ title, items: [item] });
  }
  return groups;
}
