/**
 * The Worker that opens and reads imports, with the reader for each kind of import. `imports.ts` starts it and requests
 * each batch.
 */
import {
  estimateMessageBytes,
  estimateStepBytes,
  type ImportedConversation,
  type ImportedMessage,
  type ImportKind,
  type ImportStep,
  LARGE_BYTES,
} from "./import_item.ts";
import { type ImportSource, openSource, Scratch } from "./import_source.ts";
import { readAgnai } from "./formats/agnai/agnai.ts";
import { readChatbox, readLibreChat, readOpenWebUi } from "./formats/chat_frontends.ts";
import { readClaude } from "./formats/chat_services.ts";
import { readChatGpt } from "./formats/chatgpt.ts";
import { readLobeChat } from "./formats/lobechat.ts";
import { readParlorExport } from "./formats/parlor/parlor_export.ts";
import { readRisuAi } from "./formats/risuai/risuai.ts";
import { readSillyTavern } from "./formats/sillytavern/sillytavern.ts";
import { readTavernFiles } from "./formats/sillytavern/tavern_chat.ts";
import { createRefusedNote } from "./import_report.ts";
import { AppError, type ErrorCode } from "../errors.ts";
import { collectGarbage, getMemoryBytes } from "../async/byte_budget.ts";
import { Sandbox } from "../platform/sandbox/sandbox.ts";
import { reportDefects } from "../process/worker.ts";

/** Readers by kind. Each yields items before the items that refer to them. */
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

/** Messages from the serving thread: first the import to read, then a request for each batch, and a stop at the end. */
export type ReadingOrder = { kind: ImportKind; path: string; name?: string; scratch: string } | "more" | "stop";

/** Messages from the Worker. */
export interface ReadingResponse {
  /** Number of files, in the first message. */
  files?: number;
  /** More messages of a conversation that is sent in parts because it's long. */
  messages?: ImportedMessage[];
  steps?: ImportStep[];
  isEnd?: boolean;
  /** After a stop: no child process is left. */
  isStopped?: boolean;
  failure?: { code: ErrorCode; message: string };
}

/** Maximum number of small items per batch. */
const BATCH = 16;
const BATCH_BYTES = 2 * 1024 * 1024;
/** Maximum size of a part. Takes the serving thread a few milliseconds. */
const PART_BYTES = 512 * 1024;

/** Memory of this thread above which garbage is collected after a long conversation. */
const COLLECTED_BYTES = 32 * 1024 * 1024;

async function* createResponses(
  { kind, path, name, scratch }: Exclude<ReadingOrder, "more" | "stop">,
  sandbox: Sandbox,
): AsyncGenerator<ReadingResponse> {
  const source = await openSource(path, name);
  try {
    yield { files: source.files.length };
    const notes: ImportStep[] = source.skippedPaths.slice(0, 1_000).map((path) =>
      createRefusedNote(path, "not_plain_file")
    );
    let batch = notes;
    let bytes = 0;
    for await (const step of READERS[kind](source, new Scratch(scratch, sandbox))) {
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
    yield { steps: batch, isEnd: true };
  } finally {
    source.close();
  }
}

/** Splits a long conversation into parts: a single message would block the serving thread. */
function* inParts(conversation: ImportedConversation): Generator<ReadingResponse> {
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
  yield { steps: [conversation] };
}

/** Reports an unexpected error of a reader as a fault of the file, which is the likely cause. */
function toFailure(error: unknown): ReadingResponse {
  if (error instanceof AppError) return { failure: { code: error.code, message: error.message } };
  const found = error instanceof Error ? error.message : String(error);
  return { failure: { code: "unprocessable", message: `Can't read the import: ${found}` } };
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  const sandbox = new Sandbox();
  let running: AsyncGenerator<ReadingResponse> | undefined;
  self.onmessage = async ({ data }: MessageEvent<ReadingOrder>) => {
    try {
      if (data === "stop") {
        await sandbox.close();
        return self.postMessage({ isStopped: true } satisfies ReadingResponse);
      }
      if (data !== "more") running = createResponses(data, sandbox);
      const next = await running!.next();
      self.postMessage(next.done ? { isEnd: true } : next.value);
    } catch (error) {
      self.postMessage(toFailure(error));
    }
  };
}
