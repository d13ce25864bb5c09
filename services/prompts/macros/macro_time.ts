/** Date and time macros, in the client's time zone and with the tokens of Moment.js: https://momentjs.com/docs/#/displaying/format/ */

/** The time used by macros. */
export interface MacroClock {
  nowMs: number;
  /** IANA name such as `Europe/Berlin`; by default the server's zone. */
  timeZone?: string;
  /** Time since the user's last message. */
  idleMs?: number;
}

/** A time in a zone: its fields are those of UTC after adding the offset. */
interface ZonedTime {
  date: Date;
  offsetMinutes: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Maximum number of cached zones. Creating a format takes 100 times as long as using it. */
const MAX_FORMATS = 100;
const formats = new Map<string, Intl.DateTimeFormat>();
/** Longest text that is parsed as a time. */
const MAX_TIME_CHARS = 100;

const MONTHS = [
  ...["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"],
  ...["November", "December"],
];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const LONG_FORMATS: Record<string, string> = {
  ...{ LT: "h:mm A", LTS: "h:mm:ss A", L: "MM/DD/YYYY", LL: "MMMM D, YYYY", LLL: "MMMM D, YYYY h:mm A" },
  ...{ LLLL: "dddd, MMMM D, YYYY h:mm A", l: "M/D/YYYY", ll: "MMM D, YYYY", lll: "MMM D, YYYY h:mm A" },
  llll: "ddd, MMM D, YYYY h:mm A",
};
const LONG_TOKENS = /\[[^\]]*\]|\\.|LTS|LT|L{1,4}|l{1,4}/g;
const TOKENS =
  /\[([^\]]*)\]|\\(.)|(?:DDD|[MDdwWQ])o|YYYYYY|YYYYY|YYYY|YY|Y|y{1,4}|MMMM|MMM|MM|M|DDDD|DDD|DD|D|dddd|ddd|dd|d|GGGGG|GGGG|GG|gggg|ggggg|gg|WW|W|ww|w|E|e|Hmmss|hmmss|Hmm|hmm|HH|H|hh|h|kk|k|mm|m|ss|s|S{1,9}|A|a|ZZ|Z|zz|z|X|x|Q|N{1,5}/g;

/** Reports whether a name is a valid time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Formats the current time with the tokens of Moment.js. Text in brackets stays. */
export function formatTime({ nowMs, timeZone }: MacroClock, format: string): string {
  return formatZoned(toZonedTime(nowMs, findOffsetMinutes(nowMs, timeZone)), format);
}

/** Formats the current time of another zone. @param offset Hours if it's less than 16, else minutes. */
export function formatTimeAt({ nowMs }: MacroClock, offset: number, format: string): string {
  return formatZoned(toZonedTime(nowMs, Math.abs(offset) < 16 ? offset * 60 : offset), format);
}

/** Describes how far `left` is from `right`: `"in 2 days"`, `"a day ago"`. */
export function describeDifference({ nowMs, timeZone }: MacroClock, left: string, right: string): string {
  const [a, b] = [left, right].map((text) => parseTime(text, findOffsetMinutes(nowMs, timeZone)));
  const ms = a! - b!;
  if (Number.isNaN(ms)) return "Invalid date";
  return ms > 0 ? `in ${describeDuration(ms)}` : `${describeDuration(-ms)} ago`;
}

/** Describes a duration: `"a few seconds"`, `"3 hours"`. The limits are those of Moment.js. */
export function describeDuration(ms: number): string {
  const [seconds, minutes, hours, days] = [1000, MINUTE_MS, 60 * MINUTE_MS, DAY_MS].map((unit) =>
    Math.round(ms / unit)
  ) as [number, number, number, number];
  // 146,097 days have 4,800 months.
  const [months, years] = [4_800, 400].map((count) => Math.round(ms / DAY_MS * count / 146_097)) as [number, number];
  if (seconds < 45) return "a few seconds";
  if (minutes < 45) return minutes <= 1 ? "a minute" : `${minutes} minutes`;
  if (hours < 22) return hours <= 1 ? "an hour" : `${hours} hours`;
  if (days < 26) return days <= 1 ? "a day" : `${days} days`;
  if (months < 11) return months <= 1 ? "a month" : `${months} months`;
  return years <= 1 ? "a year" : `${years} years`;
}

function toZonedTime(ms: number, offsetMinutes: number): ZonedTime {
  return { date: new Date(ms + offsetMinutes * MINUTE_MS), offsetMinutes };
}

/** Returns how many minutes a zone is ahead of UTC. */
function findOffsetMinutes(ms: number, timeZone: string | undefined): number {
  const { year, month, day, hour, minute } = Object.fromEntries(
    getFormat(timeZone).formatToParts(ms).map(({ type, value }) => [type, Number(value)]),
  );
  return Math.round((Date.UTC(year!, month! - 1, day!, hour!, minute!) - ms) / MINUTE_MS);
}

function getFormat(timeZone: string | undefined): Intl.DateTimeFormat {
  const key = timeZone ?? "";
  let format = formats.get(key);
  if (format === undefined) {
    if (formats.size >= MAX_FORMATS) formats.clear();
    const two = "2-digit" as const;
    const fields = { year: "numeric", month: two, day: two, hour: two, minute: two, hourCycle: "h23" } as const;
    formats.set(key, format = new Intl.DateTimeFormat("en-US", { timeZone, ...fields }));
  }
  return format;
}

/** Parses a time without a zone as one of the client's. @returns NaN for other texts. */
function parseTime(text: string, offsetMinutes: number): number {
  if (text.length > MAX_TIME_CHARS) return NaN;
  const match =
    /^\s*(\d{4})-?(\d\d)(?:-?(\d\d)(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?)?)?(Z|[+-]\d\d(?::?\d\d)?)?\s*$/i
      .exec(text);
  if (match === null) return Date.parse(text);
  const [, year, month, day = "1", hour = "0", minute = "0", second = "0", fraction = "0", zone] = match;
  const ms = Math.floor(Number(`0.${fraction}`) * 1000);
  const parts = [Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)] as const;
  const utc = Date.UTC(...parts, ms);
  const date = new Date(utc);
  if (parts[1] !== date.getUTCMonth() || parts[2] !== date.getUTCDate() || parts[4] > 59 || parts[5] > 59) return NaN;
  return utc - parseZone(zone, offsetMinutes) * MINUTE_MS;
}

function parseZone(zone: string | undefined, offsetMinutes: number): number {
  if (zone === undefined) return offsetMinutes;
  if (zone.toUpperCase() === "Z") return 0;
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  return (zone.startsWith("-") ? -1 : 1) * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2)));
}

function formatZoned(time: ZonedTime, format: string): string {
  const long = format.replace(LONG_TOKENS, (token) => LONG_FORMATS[token] ?? token);
  return long.replace(TOKENS, (token, bracketed?: string, escaped?: string) => {
    if (bracketed !== undefined || escaped !== undefined) return bracketed ?? escaped!;
    return token.length > 1 && token.endsWith("o")
      ? formatOrdinal(Number(formatToken(time, token.slice(0, -1))))
      : formatToken(time, token);
  });
}

function formatToken({ date, offsetMinutes }: ZonedTime, token: string): string {
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  const [weekday, hour, minute] = [date.getUTCDay(), date.getUTCHours(), date.getUTCMinutes()];
  const second = date.getUTCSeconds();
  const twelve = hour % 12 || 12;
  const pad = (value: number, length = token.length) => String(value).padStart(length, "0");
  const two = (value: number) => pad(value, 2);
  switch (token) {
    case "YYYYYY":
      return `+${pad(year)}`;
    case "YYYYY":
    case "YYYY":
      return pad(year);
    case "Y":
    case "y":
      return String(year);
    case "YY":
      return two(year % 100);
    case "yy":
    case "yyy":
    case "yyyy":
      return pad(year);
    case "Q":
      return String(Math.floor(month / 3) + 1);
    case "MMMM":
      return MONTHS[month]!;
    case "MMM":
      return MONTHS[month]!.slice(0, 3);
    case "MM":
    case "M":
      return pad(month + 1);
    case "DDDD":
      return pad(getDayOfYear(date), 3);
    case "DDD":
      return String(getDayOfYear(date));
    case "DD":
    case "D":
      return pad(day);
    case "dddd":
      return WEEKDAYS[weekday]!;
    case "ddd":
      return WEEKDAYS[weekday]!.slice(0, 3);
    case "dd":
      return WEEKDAYS[weekday]!.slice(0, 2);
    case "d":
    case "e":
      return String(weekday);
    case "E":
      return String(weekday || 7);
    case "WW":
    case "W":
      return pad(getWeek(date, 1, 4).week);
    case "ww":
    case "w":
      return pad(getWeek(date, 0, 1).week);
    case "GGGGG":
    case "GGGG":
    case "GG":
      return pad(getWeek(date, 1, 4).year).slice(-token.length);
    case "ggggg":
    case "gggg":
    case "gg":
      return pad(getWeek(date, 0, 1).year).slice(-token.length);
    case "HH":
    case "H":
      return pad(hour);
    case "hh":
    case "h":
      return pad(twelve);
    case "kk":
    case "k":
      return pad(hour || 24);
    case "mm":
    case "m":
      return pad(minute);
    case "ss":
    case "s":
      return pad(second);
    case "Hmm":
      return `${hour}${two(minute)}`;
    case "Hmmss":
      return `${hour}${two(minute)}${two(second)}`;
    case "hmm":
      return `${twelve}${two(minute)}`;
    case "hmmss":
      return `${twelve}${two(minute)}${two(second)}`;
    case "A":
      return hour < 12 ? "AM" : "PM";
    case "a":
      return hour < 12 ? "am" : "pm";
    case "Z":
    case "ZZ": {
      const minutes = Math.abs(offsetMinutes);
      const sign = offsetMinutes < 0 ? "-" : "+";
      return `${sign}${two(Math.floor(minutes / 60))}${token === "Z" ? ":" : ""}${two(minutes % 60)}`;
    }
    case "X":
      return String(Math.floor((date.getTime() - offsetMinutes * MINUTE_MS) / 1000));
    case "x":
      return String(date.getTime() - offsetMinutes * MINUTE_MS);
    case "NNNN":
      return "Anno Domini";
    case "z":
    case "zz":
      return "";
  }
  if (token.startsWith("N")) return "AD";
  // Fractions of a second.
  return String(date.getUTCMilliseconds()).padStart(3, "0").padEnd(9, "0").slice(0, token.length);
}

function getDayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY_MS) + 1;
}

/**
 * Returns the week of a date and the year that it belongs to.
 *
 * @param firstDay First day of a week; 0 is Sunday.
 * @param january The day of January that is always in the first week.
 */
function getWeek(date: Date, firstDay: number, january: number): { week: number; year: number } {
  const startOf = (year: number) => {
    const day = new Date(Date.UTC(year, 0, january));
    return day.getTime() - (day.getUTCDay() - firstDay + 7) % 7 * DAY_MS;
  };
  const today = Math.floor(date.getTime() / DAY_MS) * DAY_MS;
  let year = date.getUTCFullYear() + 1;
  while (startOf(year) > today) year--;
  return { week: Math.floor((today - startOf(year)) / (7 * DAY_MS)) + 1, year };
}

function formatOrdinal(value: number): string {
  const tens = Math.floor(value % 100 / 10);
  const ending = tens === 1 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" } as Record<number, string>)[value % 10] ?? "th";
  return `${value}${ending}`;
}
