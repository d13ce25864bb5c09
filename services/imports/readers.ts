/** The reader of every kind of import. */
import type { ImportKind, ImportStep } from "./import_item.ts";
import type { ImportSource } from "./import_source.ts";
import { readAgnai } from "./agnai.ts";
import { readChatGpt } from "./chatgpt.ts";
import { readOpenWebUi } from "./openwebui.ts";
import { readParlorExport } from "./parlor_export.ts";
import type { Scratch } from "./scratch.ts";
import { readRisuAi } from "./risuai.ts";
import { readSillyTavern } from "./sillytavern.ts";
import { readTavernFiles } from "./tavern_files.ts";

/** By kind; each gives what others refer to before what refers to it. */
export const READERS: Record<ImportKind, (source: ImportSource, scratch: Scratch) => AsyncGenerator<ImportStep>> = {
  sillytavern: readSillyTavern,
  tavern: readTavernFiles,
  risuai: readRisuAi,
  agnai: readAgnai,
  chatgpt: readChatGpt,
  openwebui: readOpenWebUi,
  parlor: readParlorExport,
};
