/**
 * Reads imports in the sandbox, with the reader for each kind of import. `imports.ts` starts it and takes each batch.
 */
import {
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
import { MAX_MESSAGE_FIELDS, type PackedStep, packStep } from "./import_transfer.ts";
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
import { hasTooManyFields } from "../platform/sandbox/document_job.ts";

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
  /**
   * Part of a conversation that is sent in parts because it's long. The last part has its step; the bytes of others are a
   * document with `messages`.
   */
  isPart?: boolean;
  /** Items without their bytes. */
  steps?: ImportStep[];
  /** Number of the step and field of each of the byte arrays. */
  bytes?: [step: number, field: string][];
}

/** A batch before it's sent. */
interface CreatedBatch extends Pick<ImportBatch, "files" | "isPart"> {
  /** Messages of a part. */
  messages?: ImportedMessage[];
  steps?: PackedStep[];
}

/** The result of an import that can't be read. */
export interface ImportFailure {
  failure: { code: string; message: string };
}

/** Maximum number of small items per batch. A message has at most 16 arrays, and an item two. */
const BATCH = 8;
const BATCH_BYTES = 2 * 1024 * 1024;
/** Without their documents, which are parsed in steps. */
const BATCH_CHARS = 256 * 1024;
/** Maximum size of a part. Takes the serving thread a few milliseconds. */
const PART_BYTES = 512 * 1024;
/** Maximum number of characters of a message. The serving thread parses it at once. */
const MAX_ITEM_CHARS = 16 * 1024 * 1024;

/** Memory of this process above which garbage is collected after a long conversation. */
const COLLECTED_BYTES = 32 * 1024 * 1024;

async function* createBatches({ kind }: ImportOrder, host: ImportHost): AsyncGenerator<CreatedBatch> {
  const source = await openSource(host);
  yield { files: source.files.length };
  let batch = source.skippedPaths.slice(0, 1_000).map((path) => packNote(path, "not_plain_file"));
  let [bytes, chars] = [0, 0];
  for await (const step of READERS[kind](source, host)) {
    if (step.what === "conversation" && estimateStepBytes(step) > LARGE_BYTES && !isTooLong(step)) {
      if (batch.length > 0) yield { steps: batch };
      [batch, bytes, chars] = [[], 0, 0];
      yield* inParts(step);
      if (getMemoryBytes() > COLLECTED_BYTES) await collectGarbage();
      continue;
    }
    const packed = isTooLong(step) ? undefined : packStep(step);
    const sent = packed ?? packNote(step.source, "too_long");
    batch.push(sent);
    bytes += sent.arrays.reduce((sum, [, { length }]) => sum + length, 0);
    chars += sent.chars;
    if (batch.length < BATCH && bytes < BATCH_BYTES && chars < BATCH_CHARS) continue;
    yield { steps: batch };
    [batch, bytes, chars] = [[], 0, 0];
  }
  yield { steps: batch };
}

function packNote(source: string, code: "not_plain_file" | "too_long"): PackedStep {
  return packStep(createRefusedNote(source, code))!;
}

/** Reports whether a conversation has a text or a message that the serving thread would parse for too long. */
function isTooLong(step: ImportStep): boolean {
  if (step.what !== "conversation") return false;
  const { messages, continuations = [], head, draft } = step;
  const isLong = (message: ImportedMessage) => estimateMessageBytes(message) > MAX_ITEM_CHARS;
  return [{ messages }, ...continuations].some((one) => one.messages.some(isLong)) ||
    estimateStringBytes([head, draft]) > MAX_ITEM_CHARS || hasTooManyFields({ messages }, MAX_MESSAGE_FIELDS);
}

/** Splits a long conversation into parts: a single message would block the serving thread. */
function* inParts(conversation: ImportedConversation): Generator<CreatedBatch> {
  const messages = conversation.messages.splice(0).reverse();
  while (messages.length > 0) {
    const part: ImportedMessage[] = [];
    for (let bytes = 0; bytes < PART_BYTES && messages.length > 0;) {
      const message = messages.pop()!;
      bytes += estimateMessageBytes(message);
      part.push(message);
    }
    yield { isPart: true, messages: part };
  }
  yield { isPart: true, steps: [packStep(conversation) ?? packNote(conversation.source, "too_long")] };
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
      for await (const { steps = [], messages, ...batch } of createBatches(order, new ImportHost(host, order.facts))) {
        await stored;
        const sent: ImportBatch = {
          ...batch,
          steps: steps.map(({ step }) => step),
          bytes: steps.flatMap(({ arrays }, at) => arrays.map(([field]): [number, string] => [at, field])),
        };
        const part = messages === undefined ? [] : [new TextEncoder().encode(JSON.stringify({ messages }))];
        const bytes = [...part, ...steps.flatMap(({ arrays }) => arrays.map(([, array]) => array))];
        stored = host.call("batch", sent, bytes);
        if (batch.isPart) await stored;
      }
      await stored;
      return {};
    } catch (error) {
      return { value: toFailure(error) };
    }
  },
});
