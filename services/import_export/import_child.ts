/**
 * Reads imports in the sandbox, with the reader for each kind of import. `imports.ts` starts it and takes each batch.
 */
import {
  BYTE_FIELDS,
  estimateMessageBytes,
  estimateStepBytes,
  estimateStringBytes,
  type ImportedConversation,
  type ImportedMessage,
  type ImportKind,
  type ImportStep,
  LARGE_BYTES,
} from "./import_item.ts";
import type { ImportFacts } from "./import_files.ts";
import { ImportHost, type ImportSource, openSource } from "./import_source.ts";
import { readAgnai } from "./formats/agnai/agnai.ts";
import { readBackyard } from "./formats/backyard.ts";
import { readChatbox, readLibreChat, readOpenWebUi } from "./formats/chat_frontends.ts";
import { readClaude } from "./formats/chat_services.ts";
import { readChatGpt } from "./formats/chatgpt.ts";
import { readLobeChat } from "./formats/lobechat.ts";
import {
  readCharacterAi,
  readCherryStudio,
  readJan,
  readKoboldCpp,
  readLlamaCpp,
  readLmStudio,
  readTextGenWebUi,
} from "./formats/local_apps.ts";
import { readParlorExport } from "./formats/parlor/parlor_export.ts";
import { readRisuAi } from "./formats/risuai/risuai.ts";
import { readSillyTavern } from "./formats/sillytavern/sillytavern.ts";
import { readTavernFiles } from "./formats/sillytavern/tavern_chat.ts";
import { createRefusedNote } from "./import_report.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { collectGarbage, getMemoryBytes } from "../async/byte_budget.ts";
import { serveSandbox } from "../platform/sandbox/child.ts";

/** Readers by kind. Each yields items before the items that refer to them. */
const READERS: Record<ImportKind, (source: ImportSource, host: ImportHost) => AsyncGenerator<ImportStep>> = {
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
  lmstudio: readLmStudio,
  jan: readJan,
  llamacpp: readLlamaCpp,
  cherrystudio: readCherryStudio,
  koboldcpp: readKoboldCpp,
  textgen: readTextGenWebUi,
  characterai: readCharacterAi,
  backyard: readBackyard,
  parlor: readParlorExport,
};

/** One import; its files are read by the functions of import_files.ts. */
export interface ImportOrder {
  kind: ImportKind;
  facts: ImportFacts;
}

/** What the child passes to the function `batch`, which replies once it may read on. JSON. */
export interface ImportBatch {
  /** Number of files, in the first batch. */
  files?: number;
  /** More messages of a conversation that is sent in parts because it's long; the last part has its step. */
  messages?: ImportedMessage[];
  /** Items without their bytes. */
  steps?: ImportStep[];
  /** Number of the step and field of each of the byte arrays. */
  bytes?: [step: number, field: string][];
}

/** The result of an import that can't be read. */
export interface ImportFailure {
  failure: { code: string; message: string };
}

/** Maximum number of small items per batch. A message has at most 16 arrays, and a character two. */
const BATCH = 8;
const BATCH_BYTES = 2 * 1024 * 1024;
/** Maximum size of a part. Takes the serving thread a few milliseconds. */
const PART_BYTES = 512 * 1024;
/** Maximum number of characters of an item, or of a message of a conversation. The serving thread parses it at once. */
const MAX_ITEM_CHARS = 16 * 1024 * 1024;

/** Memory of this process above which garbage is collected after a long conversation. */
const COLLECTED_BYTES = 32 * 1024 * 1024;

async function* createBatches({ kind }: ImportOrder, host: ImportHost): AsyncGenerator<ImportBatch> {
  const source = await openSource(host);
  yield { files: source.files.length };
  let batch: ImportStep[] = source.skippedPaths.slice(0, 1_000).map((path) =>
    createRefusedNote(path, "not_plain_file")
  );
  let bytes = 0;
  for await (const read of READERS[kind](source, host)) {
    const step = isTooLong(read) ? createRefusedNote(read.source, "too_long") : read;
    const size = estimateStepBytes(step);
    if (step.what === "conversation" && size > LARGE_BYTES) {
      if (batch.length > 0) yield { steps: batch };
      [batch, bytes] = [[], 0];
      yield* inParts(step);
      if (getMemoryBytes() > COLLECTED_BYTES) await collectGarbage();
      continue;
    }
    batch.push(step);
    bytes += size;
    if (batch.length < BATCH && bytes < BATCH_BYTES) continue;
    yield { steps: batch };
    batch = [];
    bytes = 0;
  }
  yield { steps: batch };
}

/** Reports whether the serving thread would parse an item for too long. */
function isTooLong(step: ImportStep): boolean {
  if (step.what !== "conversation") return estimateStringBytes(splitBytes(step, 0).step) > MAX_ITEM_CHARS;
  const { messages, continuations, ...rest } = step;
  const isLong = (message: ImportedMessage) => estimateMessageBytes(message) > MAX_ITEM_CHARS;
  return messages.some(isLong) || estimateStringBytes([continuations, rest]) > MAX_ITEM_CHARS;
}

/** Separates the byte arrays of an item from its JSON. @param at Number of the item in its batch. */
function splitBytes(
  step: ImportStep,
  at: number,
): { step: ImportStep; places: [number, string][]; bytes: Uint8Array[] } {
  const places: [number, string][] = [];
  const bytes: Uint8Array[] = [];
  const fields: Record<string, unknown> = { ...step };
  for (const field of step.what === "note" ? [] : BYTE_FIELDS[step.what] ?? []) {
    if (!(fields[field] instanceof Uint8Array)) continue;
    places.push([at, field]);
    bytes.push(fields[field]);
    delete fields[field];
  }
  return { step: fields as unknown as ImportStep, places, bytes };
}

/** Splits a long conversation into parts: a single message would block the serving thread. */
function* inParts(conversation: ImportedConversation): Generator<ImportBatch> {
  const messages = conversation.messages.splice(0).reverse();
  while (messages.length > 0) {
    const part: ImportedMessage[] = [];
    for (let bytes = 0; bytes < PART_BYTES && messages.length > 0;) {
      const message = messages.pop()!;
      bytes += estimateMessageBytes(message);
      part.push(message);
    }
    yield { messages: part };
  }
  yield { messages: [], steps: [conversation] };
}

/** Reports an unexpected error of a reader as a fault of the file, which is the likely cause. */
function toFailure(error: unknown): ImportFailure {
  if (error instanceof AppError) return { failure: { code: error.code, message: error.message } };
  return { failure: { code: "unprocessable", message: `Can't read the import: ${getErrorMessage(error)}` } };
}

await serveSandbox("import_child", {
  load: collectGarbage,
  async run(value, _bytes, host) {
    const order = value as ImportOrder;
    try {
      // Reads the next batch while this one is stored. A large conversation is alone in memory.
      let stored: Promise<unknown> | undefined;
      for await (const { steps, ...batch } of createBatches(order, new ImportHost(host, order.facts))) {
        await stored;
        const split = steps?.map(splitBytes);
        const bytes = split?.flatMap((one) => one.bytes);
        const sent: ImportBatch = {
          ...batch,
          steps: split?.map((one) => one.step),
          bytes: split?.flatMap((one) => one.places),
        };
        stored = host.call("batch", sent, bytes);
        if (batch.messages !== undefined) await stored;
      }
      await stored;
      return {};
    } catch (error) {
      return { value: toFailure(error) };
    }
  },
});
