/** The reader for each kind of import. */
import type { ImportKind, ImportStep } from "./import_item.ts";
import type { ImportSource, Scratch } from "./import_source.ts";
import { readAgnai } from "./formats/agnai/agnai.ts";
import { readChatbox } from "./formats/chatbox/chatbox.ts";
import { readChatGpt } from "./formats/chatgpt/chatgpt.ts";
import { readClaude } from "./formats/claude/claude.ts";
import { readLibreChat } from "./formats/librechat/librechat.ts";
import { readLobeChat } from "./formats/lobechat/lobechat.ts";
import { readOpenWebUi } from "./formats/openwebui/openwebui.ts";
import { readParlorExport } from "./formats/parlor/parlor_export.ts";
import { readRisuAi } from "./formats/risuai/risuai.ts";
import { readSillyTavern } from "./formats/sillytavern/sillytavern.ts";
import { readTavernFiles } from "./formats/sillytavern/tavern_chat.ts";

/** By kind. Each yields items before the items that refer to them. */
export const READERS: Record<ImportKind, (source: ImportSource, scratch: Scratch) => AsyncGenerator<ImportStep>> = {
  sillytavern: readSillyTavern,
  tavern: readTavernFiles,
  risuai: readRisuAi,
  agnai: readAgnai,
  chatgpt: readChatGpt,
  claude: readClaude,
  openwebui: readOpenWebUi,
  librechat: readLibreChat,
  lobechat: readLobeChat,
  chatbox: readChatbox,
  parlor: readParlorExport,
};
