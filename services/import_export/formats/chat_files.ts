/** JSON files with many chats in them, as services export them: found, taken apart, and each chat read for itself. */
import { AppError } from "../../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import type { ImportSource } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { splitArray } from "../../json/json_scan.ts";
import { leftOut, refused } from "../import_notes.ts";

/** The one file of a long life with such a service; its Worker holds it once. */
const MAX_BYTES = 1024 * 1024 * 1024;

/**
 * Gives what a reader makes of every chat in the files of an import.
 *
 * @param isChats Says whether a file of this path holds chats.
 * @throws {AppError} `unprocessable` when there is no such file
 */
export async function* readChatFiles(
  source: ImportSource,
  isChats: (path: string) => boolean,
  read: (chat: JsonObject, source: string) => Iterable<ImportStep>,
): AsyncGenerator<ImportStep> {
  const files = source.files.filter(({ path }) => isChats(path));
  if (files.length === 0) throw new AppError("unprocessable", "Cannot import this: there is no file of chats in it");
  const others = source.files.length - files.length;
  if (others > 0) yield leftOut("", "other_files", others);
  for (const file of files) {
    try {
      const bytes = await source.read(file, MAX_BYTES);
      let index = 0;
      for (const element of isArray(bytes) ? splitArray(bytes) : [bytes]) {
        yield* readOne(element, `${file.path}#${index++}`, read);
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
): Generator<ImportStep> {
  let chat: unknown;
  try {
    chat = parseJsonBytes(bytes);
  } catch {
    return yield refused(place, "not_json");
  }
  if (!isJsonObject(chat)) return yield refused(place, "not_object");
  const fault = findJsonFault(chat);
  if (fault !== undefined) return yield refused(place, new AppError("unprocessable", fault));
  yield* read(chat, place);
}

function isArray(bytes: Uint8Array): boolean {
  return bytes.find((byte) => byte > 0x20 && byte < 0x80) === 0x5b;
}
