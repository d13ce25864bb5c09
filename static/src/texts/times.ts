/** Times as people read them. */
import { texts } from "./texts.ts";

const MONTH = new Intl.DateTimeFormat(texts.locale, { month: "long", year: "numeric" });
const MOMENT = new Intl.DateTimeFormat(texts.locale, { dateStyle: "medium", timeStyle: "short" });
const HOUR = new Intl.DateTimeFormat(texts.locale, { timeStyle: "short" });
const NUMBER = new Intl.NumberFormat(texts.locale);

/** Gives `0:45`, `12:03`, `1:00:00`. */
export function clock(elapsedMs: number): string {
  const seconds = Math.max(0, Math.floor(elapsedMs / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const tail = String(seconds % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** Gives a number with the separators of the language. */
export function figure(value: number): string {
  return NUMBER.format(value);
}

/** Gives the time of day for today, else the date too. */
export function moment(iso: string | undefined, now: Date): string {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return "";
  return date.toDateString() === now.toDateString() ? HOUR.format(date) : MOMENT.format(date);
}

/** Puts newest-first items under Today, Yesterday, This week (the last seven days) and their months. */
export function groupByDay<T extends { updated_at: string }>(
  items: readonly T[],
  now: Date,
): { title: string; items: T[] }[] {
  const groups: { title: string; items: T[] }[] = [];
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const daysAgo = (n: number) => new Date(midnight.getFullYear(), midnight.getMonth(), midnight.getDate() - n);
  for (const item of items) {
    const date = new Date(item.updated_at);
    const title = Number.isNaN(date.getTime()) || date >= midnight
      ? texts.nav.today
      : date >= daysAgo(1)
      ? texts.nav.yesterday
      : date >= daysAgo(7)
      ? texts.nav.thisWeek
      : MONTH.format(date);
    const group = groups.at(-1);
    if (group?.title === title) group.items.push(item);
    else groups.push({ title, items: [item] });
  }
  return groups;
}
