/** Reads JSON files with many chats, as services export them, one chat at a time. */
import { AppError } from "../../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import type { ImportSource } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { splitArray } from "../../json/json_scan.ts";
import { leftOut, refused } from "../import_reasons.ts";

/** An export of many years is one file; the Worker holds it once. */
const MAX_BYTES = 1024 * 1024 * 1024;

/**
 * Yields the items of every chat in an import.
 *
 * @param options.isDeep The reader checks the nesting itself, since a chat may be deep.
 * @param isChats Reports whether a file with this path has chats.
 * @throws {AppError} `unprocessable` if there is no such file.
 */
export async function* readChatFiles(
  source: ImportSource,
  isChats: (path: string) => boolean,
  read: (chat: JsonObject, source: string) => Iterable<ImportStep>,
  { isDeep = false }: { isDeep?: boolean } = {},
): AsyncGenerator<ImportStep> {
  const files = source.files.filter(({ path }) => isChats(path));
  if (files.length === 0) throw new AppError("unprocessable", "Can't import this: no file with chats was found");
  const others = source.files.length - files.length;
  if (others > 0) yield leftOut("", "other_files", others);
  for (const file of files) {
    try {
      const bytes = await source.read(file, MAX_BYTES);
      let index = 0;
      for (const element of isArray(bytes) ? splitArray(bytes) : [bytes]) {
        yield* readOne(element, `${file.path}#${index++}`, read, isDeep);
      }
    } catch (error) {
      yield error instanceof SyntaxError ? refused(file.path, "not_whole_json") : refused(file.path, error);
    }
  }
}

function* readOne(
  bytes: Uint8Array,
  place: string,
  read: (chat: JsonObject, source: string) => Iterable<ImportStep>,
  isDeep: boolean,
): Generator<ImportStep> {
  let chat: unknown;
  try {
    chat = parseJsonBytes(bytes);
  } catch {
    return yield refused(place, "not_json");
  }
  if (!isJsonObject(chat)) return yield refused(place, "not_object");
  const fault = isDeep ? undefined : findJsonFault(chat);
  if (fault !== undefined) return yield refused(place, new AppError("unprocessable", fault));
  yield* read(chat, place);
}

function isArray(bytes: Uint8Array): boolean {
  return bytes.find((byte) => byte > 0x20 && byte < 0x80) === 0x5b;
}
