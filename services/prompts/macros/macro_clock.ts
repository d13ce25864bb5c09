/** What the macros of time say, in the time zone of whoever asked. */

/** The time a text is made for. */
export interface MacroClock {
  nowMs: number;
  /** IANA name, as `Europe/Berlin`; the server's own where absent. */
  timeZone?: string;
  /** Since the owner last said something. */
  idleMs?: number;
}

const HOUR_MS = 60 * 60 * 1000;
/** Formats in use: making one takes a hundred times as long as using it. */
const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Says whether a name is a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Gives what a macro of time stands for, or `undefined` for another name. @param name In lower case. */
export function timeText(name: string, { nowMs, timeZone, idleMs }: MacroClock): string | undefined {
  const show = (options: Intl.DateTimeFormatOptions, locale = "en-US") =>
    formatFor(locale, { timeZone, ...options }).format(nowMs);
  switch (name) {
    case "time":
      return plainSpaces(show({ hour: "numeric", minute: "2-digit" }));
    case "date":
      return show({ dateStyle: "long" });
    case "weekday":
      return show({ weekday: "long" });
    case "isotime":
      return show({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, "en-GB");
    case "isodate":
      return show({ year: "numeric", month: "2-digit", day: "2-digit" }, "en-CA");
    case "idle_duration":
      return idleMs === undefined ? "just now" : durationText(idleMs);
  }
  const offset = /^time_utc([+-]\d{1,2})$/.exec(name)?.[1];
  if (offset === undefined) return undefined;
  const shifted = formatFor("en-US", { timeZone: "UTC", hour: "numeric", minute: "2-digit" });
  return plainSpaces(shifted.format(nowMs + Number(offset) * HOUR_MS));
}

function formatFor(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options]);
  let format = formats.get(key);
  if (format === undefined) {
    if (formats.size >= MAX_FORMATS) formats.clear();
    formats.set(key, format = new Intl.DateTimeFormat(locale, options));
  }
  return format;
}

/** Some versions put a narrow space before AM and PM, which tokenisers do not expect. */
function plainSpaces(text: string): string {
  return text.replace(/\u202f/g, " ");
}

function durationText(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return "a few seconds";
  if (minutes < 60) return counted(minutes, "minute");
  const hours = Math.round(minutes / 60);
  return hours < 36 ? counted(hours, "hour") : counted(Math.round(hours / 24), "day");
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
