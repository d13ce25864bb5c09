/**
 * Reads JSON files with many chats, like the exports of services, one chat at a time. Also reads timestamps in all
 * formats of SillyTavern and its forks.
 */
import { AppError } from "../../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import type { TreeMessage } from "../branching_chat.ts";
import type { ImportSource, SourceFile } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { splitArray } from "../../json/incremental_parse.ts";
import { createLeftOutNote, createRefusedNote } from "../import_report.ts";

/** Maximum size of a file. An export of many years is one file, which is in the Worker's memory once. */
const MAX_BYTES = 1024 * 1024 * 1024;
/** Length of the start of a file that is searched for chats. */
const SNIFFED_CHARS = 256 * 1024;

/**
 * Yields the items of every chat in an import.
 *
 * @param options.isDeep The reader checks the nesting itself, because chats may be deep.
 * @param options.isReadElsewhere Reports whether a file without chats is read by the caller.
 * @param options.hasChats Recognizes renamed files by their start, if none has an expected name.
 * @param isChats Reports whether a file with this path has chats.
 * @throws {AppError} `unprocessable` if there is no file with chats.
 */
export async function* readChatFiles(
  source: ImportSource,
  isChats: (path: string) => boolean,
  read: (chat: JsonObject, source: string) => Iterable<ImportStep> | AsyncIterable<ImportStep>,
  { isDeep = false, hasChats, isReadElsewhere = () => false }: {
    isDeep?: boolean;
    hasChats?: (start: string) => boolean;
    isReadElsewhere?: (path: string) => boolean;
  } = {},
): AsyncGenerator<ImportStep> {
  const files = source.files.filter(({ path }) => isChats(path));
  if (files.length === 0 && hasChats !== undefined) {
    for (const file of source.files.filter(({ path }) => /\.json$/i.test(path) && !isReadElsewhere(path))) {
      if (hasChats(await readStart(source, file))) files.push(file);
    }
  }
  if (files.length === 0) throw new AppError("unprocessable", "Can't find a file with chats in this import");
  const others = source.files.filter((file) => !files.includes(file) && !isReadElsewhere(file.path)).length;
  if (others > 0) yield createLeftOutNote("", "other_files", others);
  for (const file of files) {
    try {
      const bytes = await source.read(file, MAX_BYTES);
      let index = 0;
      for (const element of isArray(bytes) ? splitArray(bytes) : [bytes]) {
        yield* readOne(element, `${file.path}#${index++}`, read, isDeep);
      }
    } catch (error) {
      yield error instanceof SyntaxError
        ? createRefusedNote(file.path, "not_whole_json")
        : createRefusedNote(file.path, error);
    }
  }
}

async function readStart(source: ImportSource, file: SourceFile): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of source.stream(file, Number.MAX_SAFE_INTEGER)) {
    text += decoder.decode(piece, { stream: true });
    if (text.length >= SNIFFED_CHARS) break;
  }
  return text;
}

async function* readOne(
  bytes: Uint8Array,
  location: string,
  read: (chat: JsonObject, source: string) => Iterable<ImportStep> | AsyncIterable<ImportStep>,
  isDeep: boolean,
): AsyncGenerator<ImportStep> {
  let chat: unknown;
  try {
    chat = parseJsonBytes(bytes);
  } catch {
    return yield createRefusedNote(location, "not_json");
  }
  if (!isJsonObject(chat)) return yield createRefusedNote(location, "not_object");
  const fault = isDeep ? undefined : findJsonFault(chat);
  if (fault !== undefined) return yield createRefusedNote(location, new AppError("unprocessable", fault));
  yield* read(chat, location);
}

/** Returns the objects of a list; none if it isn't one. */
export function listObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function isArray(bytes: Uint8Array): boolean {
  return bytes.find((byte) => byte > 0x20 && byte < 0x80) === 0x5b;
}

/** `2023-6-1 @14h 22m 5s 123ms`, optionally without spaces and milliseconds. */
const WITH_LETTERS = /^(\d{4})-(\d{1,2})-(\d{1,2})\s*@\s*(\d{1,2})h\s*(\d{1,2})m\s*(\d{1,2})s(?:\s*(\d{1,3})ms)?$/;
/** `June 19, 2023 2:20pm` */
const LONG_DATE = /^([A-Za-z]+ \d{1,2}, \d{4}) (\d{1,2}):(\d{2})\s*([ap]m)$/i;
/** Smaller numbers are in seconds. */
const FIRST_MS = 100_000_000_000;

/** Returns a message without the fields that are empty or, like a time that can't be read, invalid. */
export function createTreeMessage(
  { role, content, reasoning = "", time, model = "" }: {
    role: string;
    content: TreeMessage["content"];
    reasoning?: string;
    time: unknown;
    model?: string;
  },
): TreeMessage {
  const created_at = toIsoTime(time);
  return {
    role,
    content,
    ...(reasoning !== "" && { reasoning }),
    ...(created_at && { created_at }),
    ...(model !== "" && { model }),
  };
}

/**
 * Converts a timestamp to ISO 8601 in UTC; `undefined` if it's invalid. Times without a zone are in this machine's time
 * zone.
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
  const longDate = LONG_DATE.exec(text);
  if (longDate !== null) {
    const [day, hour, minute, half] = longDate.slice(1);
    return Date.parse(`${day} ${(+hour! % 12) + (half!.toLowerCase() === "pm" ? 12 : 0)}:${minute}`);
  }
  return Date.parse(text);
}
