/** Reads an import in the sandbox, and checks what the child sends: a file may have taken control of it. */
import { isAttachmentName } from "../attachments/attachment_rows.ts";
import { AppError, type ErrorCode } from "../errors.ts";
import { asArray, asObject, isJsonObject, type JsonObject } from "../json/type_guards.ts";
import { type Sandbox, SandboxFault, type SandboxJob, type SandboxKind } from "../platform/sandbox/sandbox.ts";
import { parseTemplates } from "../settings/prompt_templates.ts";
import { pickSettings } from "./formats/parlor/parlor_settings.ts";
import type { SettingsPatch } from "../settings/settings.ts";
import { isId } from "../storage/ids.ts";
import type { ImportBatch, ImportFailure, ImportOrder } from "./import_child.ts";
import { ImportFiles } from "./import_files.ts";
import {
  BYTE_FIELDS,
  IMPORTED_ITEM_KINDS,
  type ImportedItemKind,
  type ImportedMessage,
  type ImportedSettings,
  type ImportKind,
  type ImportStep,
} from "./import_item.ts";
import { DOCUMENT, parseDocument, unpackDocument } from "./import_transfer.ts";

/** Limits of one import. */
export type ReadingLimits = Pick<SandboxJob, "maxCpuMs" | "maxResidentBytes">;

/** The import to read. */
export interface ReadingRequest {
  kind: ImportKind;
  path: string;
  /** Name of a single file. */
  name?: string;
  /** Folder for temporary files; created when needed and removed at the end. */
  scratch: string;
  signal?: AbortSignal;
  /** Lower limits than usual. */
  limits?: ReadingLimits;
  /** Called with the number of files once it's known. */
  begin?(files: number): void;
}

const MIB = 1024 * 1024;
/** Processor time. A file that is read at once has 512 MiB at most; small machines parse 10 MiB per second. */
const CPU_MS = 300_000;
/** A megabyte of a ZIP file may be ten of text. */
const CPU_PER_MIB_MS = 4_000;
const MAX_CPU_MS = 12 * 60 * 60 * 1000;

const KIND: SandboxKind = {
  url: new URL("./import_child.ts", import.meta.url),
  maxChildren: 1,
  maxCpuMs: MAX_CPU_MS,
  // A database of 512 MiB is read at once. The objects of a parsed file take several times its size.
  maxResidentBytes: 4096 * MIB,
  // An item with its bytes, of at most 128 MiB each.
  maxMessageBytes: 320 * MIB,
  maxTextBytes: 4 * MIB,
};

const PATTERNS: SandboxKind = {
  url: new URL("./pattern_child.ts", import.meta.url),
  maxChildren: 1,
  maxCpuMs: 1_000,
  maxResidentBytes: 512 * MIB,
  maxMessageBytes: 64 * MIB,
};
/** After so many edits that take too long, an import applies no more of them. */
const MAX_SLOW_EDITS = 10;

/** Items of exports, which other programs' files don't have: they set Parlor up. */
const OWN_ITEMS: ReadonlySet<ImportedItemKind> = new Set(["connection", "image_connection", "tool_server", "settings"]);
const FAILURE_CODES: ReadonlySet<string> = new Set<ErrorCode>(["not_found", "unprocessable", "too_large"]);

/** A batch whose items aren't stored yet. */
interface ReceivedBatch {
  steps: ImportStep[];
  isLarge: boolean;
  release(): void;
}

/** Yields all items of an import. @throws {AppError} The reader's errors; the signal's reason. */
export async function* readImport(sandbox: Sandbox, request: ReadingRequest): AsyncGenerator<ImportStep> {
  const { kind, limits, begin } = request;
  const ending = new AbortController();
  const signal = AbortSignal.any([ending.signal, ...request.signal === undefined ? [] : [request.signal]]);
  const files = await ImportFiles.open(request.path, request.name, request.scratch);
  const received: ReceivedBatch[] = [];
  let wake = Promise.withResolvers<void>();
  let messages: ImportedMessage[] = [];
  const take = async (value: unknown, bytes: Uint8Array<ArrayBuffer>[]): Promise<void> => {
    const batch = isJsonObject(value) ? value as ImportBatch : {};
    if (Number.isSafeInteger(batch.files)) begin?.(batch.files!);
    const isPart = batch.isPart === true;
    const steps = await parseSteps(batch, bytes, kind, files);
    if (steps.length === 0) {
      if (!isPart) return;
      for (const message of asArray((await readDocument(bytes[0])).messages)) messages.push(message as ImportedMessage);
      return;
    }
    const [first] = steps;
    if (isPart && first!.what === "conversation") first!.messages = messages;
    if (isPart) messages = [];
    const released = Promise.withResolvers<void>();
    received.push({ steps, isLarge: isPart, release: released.resolve });
    wake.resolve();
    await released.promise;
  };
  let slowEdits = 0;
  const edit = async (value: unknown): Promise<{ value: unknown }> => {
    if (slowEdits >= MAX_SLOW_EDITS) return { value: null };
    try {
      return { value: (await sandbox.run(PATTERNS, { value, signal })).value };
    } catch (error) {
      if (!(error instanceof SandboxFault)) throw error;
      slowEdits++;
      return { value: null };
    }
  };
  const order: ImportOrder = { kind, facts: files.facts };
  const maxCpuMs = Math.min(MAX_CPU_MS, CPU_MS + files.facts.sizeBytes / MIB * CPU_PER_MIB_MS);
  const job: SandboxJob = {
    value: order,
    functions: { ...files.functions, batch: take, edit },
    maxCpuMs,
    ...limits,
    signal,
  };
  let isDone = false;
  const reading = sandbox.run(KIND, job).finally(() => {
    isDone = true;
    wake.resolve();
  });
  reading.catch(() => {}); // Thrown when it's awaited.
  try {
    for (;;) {
      const batch = received.shift();
      if (batch === undefined) {
        if (isDone) break;
        await wake.promise;
        wake = Promise.withResolvers();
        continue;
      }
      // The child reads the next batch while this one is stored, so two are in memory. A large conversation is alone.
      if (!batch.isLarge) batch.release();
      for (const step of batch.steps) {
        signal.throwIfAborted();
        yield step;
        // The consumer has stored a character before it asks for the next item.
        if (step.what === "character" && typeof step.file === "string") await files.forget(step.file);
      }
      batch.steps = [];
      batch.release();
    }
    throwFailure((await reading).value);
  } catch (error) {
    if (!(error instanceof SandboxFault)) throw error;
    throw new AppError("unprocessable", `Can't read the import: ${error.message}`, { cause: error });
  } finally {
    ending.abort();
    await reading.catch(() => {});
    await files.close();
  }
}

function throwFailure(value: unknown): void {
  const { failure } = (value ?? {}) as Partial<ImportFailure>;
  if (failure === undefined) return;
  const code = FAILURE_CODES.has(failure.code) ? failure.code as ErrorCode : "unprocessable";
  throw new AppError(code, String(failure.message));
}

/** Returns the items of a batch with their bytes, and with paths instead of ids of files. */
async function parseSteps(
  { steps: sent = [], bytes: places = [] }: ImportBatch,
  bytes: readonly Uint8Array<ArrayBuffer>[],
  kind: ImportKind,
  files: ImportFiles,
): Promise<ImportStep[]> {
  if (!Array.isArray(sent) || !Array.isArray(places)) throw createInvalidError();
  const steps = sent.filter(isJsonObject) as unknown as ImportStep[];
  if (steps.length < sent.length) throw createInvalidError();
  for (const [n, [at, field]] of places.entries()) {
    const step = steps[at];
    if (step === undefined || step.what === "note" || bytes[n] === undefined) continue;
    if (field === DOCUMENT) steps[at] = await unpackDocument(step, await readDocument(bytes[n]));
    else if (BYTE_FIELDS[step.what]?.includes(field)) (step as unknown as JsonObject)[field] = bytes[n];
  }
  return steps.map((step) => parseStep(step, kind, files));
}

async function readDocument(bytes: Uint8Array | undefined): Promise<JsonObject> {
  try {
    return await parseDocument(bytes);
  } catch {
    throw createInvalidError();
  }
}

/** Stores check what else an item has, as for requests. @throws {AppError} `unprocessable` */
function parseStep(step: ImportStep, kind: ImportKind, files: ImportFiles): ImportStep {
  const areTexts = (...fields: string[]) =>
    fields.every((field) => typeof (step as unknown as JsonObject)[field] === "string");
  if (!isJsonObject(step) || !areTexts("source")) throw createInvalidError();
  if (step.what === "note") {
    if (!areTexts("level", "reason")) throw createInvalidError();
    return step;
  }
  if (step.what === "settings" && kind === "sillytavern") return pickTavernSettings(step);
  const isKnown = IMPORTED_ITEM_KINDS.includes(step.what) && (kind === "parlor" || !OWN_ITEMS.has(step.what));
  // Ids become names of files.
  const isNamed = areTexts("id", "name") && (step.what === "attachment" ? isAttachmentName(step.id) : isId(step.id));
  if (!isKnown || !isNamed) throw createInvalidError();
  const required = step.what === "attachment" || step.what === "document"
    ? "bytes"
    : step.what === "voice"
    ? "audio"
    : "";
  const arrays = BYTE_FIELDS[step.what] ?? [];
  for (const field of arrays) {
    const value = (step as unknown as JsonObject)[field];
    if (value instanceof Uint8Array || value === undefined && field !== required) continue;
    if (field !== "file" || typeof value !== "string") throw createInvalidError();
  }
  if (step.what === "conversation" && !(Array.isArray(step.messages) && isJsonObject(step.head))) {
    throw createInvalidError();
  }
  if (step.what === "lorebook" && step.fault === undefined && !isJsonObject(step.book)) throw createInvalidError();
  if (step.what === "preset" && step.fault === undefined && !isJsonObject(step.json)) throw createInvalidError();
  if (step.what !== "character") return step;
  if (step.file === undefined) throw createInvalidError();
  return { ...step, file: typeof step.file === "string" ? files.getPath(step.file) : step.file };
}

/** Keeps the settings that a SillyTavern folder may set. @throws {AppError} `unprocessable` */
function pickTavernSettings(step: ImportedSettings): ImportedSettings {
  const input = asObject(step.settings);
  const { default_persona_id: persona, prompt_templates = [] } = input;
  const templates = parseTemplates(prompt_templates);
  if (templates === undefined || persona !== undefined && !(typeof persona === "string" && isId(persona))) {
    throw createInvalidError();
  }
  const lore = Object.entries(pickSettings(input)).filter(([key]) => key.startsWith("lore_"));
  const settings: SettingsPatch = {
    ...Object.fromEntries(lore),
    ...(persona !== undefined && { default_persona_id: persona }),
    ...(templates.length > 0 && { prompt_templates: templates }),
  };
  const { id, source, name } = step;
  return { what: "settings", id, source, name, settings, hadSpeechKey: false };
}

function createInvalidError(): AppError {
  return new AppError("unprocessable", "Can't read the import: its reader sent an invalid item");
}
