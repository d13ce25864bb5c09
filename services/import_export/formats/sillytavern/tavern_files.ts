/** Reads single chats in SillyTavern's JSONL: one file, or a folder or ZIP file of them. */
import type { ImportSource } from "../../import_source.ts";
import type { ImportStep } from "../../import_item.ts";
import { leftOut, refused } from "../../import_notes.ts";
import { stemOf } from "../../file_names.ts";
import { MAX_CHAT_BYTES, readTavernChat } from "./tavern_chat.ts";

/** Yields the chats without characters: a file has only the name of its character. */
export async function* readTavernFiles(source: ImportSource): AsyncGenerator<ImportStep> {
  for (const file of source.files) {
    if (!/\.jsonl$/i.test(file.path)) {
      yield leftOut(file.path, "not_jsonl");
      continue;
    }
    try {
      const bytes = await source.read(file, MAX_CHAT_BYTES);
      const title = stemOf(file.path);
      const { conversation, notes } = await readTavernChat(bytes, {
        source: file.path,
        key: title,
        title,
        participants: [],
      });
      yield* notes;
      if (conversation !== undefined) yield conversation;
    } catch (error) {
      yield refused(file.path, error);
    }
  }
}
