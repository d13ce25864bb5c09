/** Date and time macros, in the client's time zone. */

/** The time used by macros. */
export interface MacroClock {
  nowMs: number;
  /** IANA name such as `Europe/Berlin`; by default the server's zone. */
  timeZone?: string;
  /** Time since the user's last message. */
  idleMs?: number;
}

const HOUR_MS = 60 * 60 * 1000;
/** Maximum number of cached formats. Creating one takes 100 times as long as using it. */
const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Reports whether a name is a valid time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Expands a date or time macro. @param name Lower case. @returns `undefined` for other names. */
export function formatTimeMacro(name: string, { nowMs, timeZone, idleMs }: MacroClock): string | undefined {
  const show = (options: Intl.DateTimeFormatOptions, locale = "en-US") =>
    getFormat(locale, { timeZone, ...options }).format(nowMs);
  switch (name) {
    case "time":
      return replaceNarrowSpaces(show({ hour: "numeric", minute: "2-digit" }));
    case "date":
      return show({ dateStyle: "long" });
    case "weekday":
      return show({ weekday: "long" });
    case "isotime":
      return show({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, "en-GB");
    case "isodate":
      return show({ year: "numeric", month: "2-digit", day: "2-digit" }, "en-CA");
    case "idle_duration":
      return idleMs === undefined ? "just now" : formatDuration(idleMs);
  }
  const offset = /^time_utc([+-]\d{1,2})$/.exec(name)?.[1];
  if (offset === undefined) return undefined;
  const shifted = getFormat("en-US", { timeZone: "UTC", hour: "numeric", minute: "2-digit" });
  return replaceNarrowSpaces(shifted.format(nowMs + Number(offset) * HOUR_MS));
}

function getFormat(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options]);
  let format = formats.get(key);
  if (format === undefined) {
    if (formats.size >= MAX_FORMATS) formats.clear();
    formats.set(key, format = new Intl.DateTimeFormat(locale, options));
  }
  return format;
}

/** Some ICU versions put a narrow space before AM and PM, which tokenizers handle badly. */
function replaceNarrowSpaces(text: string): string {
  return text.replace(/\u202f/g, " ");
}

function formatDuration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return "a few seconds";
  if (minutes < 60) return pluralize(minutes, "minute");
  const hours = Math.round(minutes / 60);
  return hours < 36 ? pluralize(hours, "hour") : pluralize(Math.round(hours / 24), "day");
}

function pluralize(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
