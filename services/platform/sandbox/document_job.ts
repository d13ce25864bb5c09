/**
 * Reads long JSON of strangers in a child, files and bodies of requests, and takes over what it made of them. Both sides
 * of it are here.
 */
import { AppError, type ErrorCode } from "../../errors.ts";
import { parseJsonIncrementally } from "../../json/incremental_parse.ts";
import { parseJsonBody, type UnparsedJson } from "../../json/json_body.ts";
import { asObject, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import type { SandboxResult } from "./child.ts";
import { type Sandbox, SandboxFault, type SandboxJob, type SandboxKind } from "./sandbox.ts";

const MIB = 1024 * 1024;
const MAX_DEPTH = 200;
/** Maximum number of object fields of one item, on all levels: a turn of the serving thread parses at least one item. */
const MAX_ITEM_FIELDS = 5_000;
/** The same of everything around the lists. */
const MAX_OTHER_FIELDS = 20_000;
/** The same of a body that is checked at once. */
const MAX_BODY_FIELDS = 100_000;
/** Items of a list that count as one field: they take less time. */
const ITEMS_PER_FIELD = 10;
/** Maximum lengths of what `summarizeBody` returns: more than the API accepts. */
const MAX_BODY_ITEMS = 1_100;
const MAX_BODY_CHARS = 200_100;
const MAX_ITEM_CHARS = 200;

const FAILURE_CODES: ReadonlySet<unknown> = new Set<ErrorCode>(["too_large", "invalid_json", "invalid_request"]);

/** What was read of a file. */
interface ReadDocument {
  /** Its long lists are direct members, so that they can be parsed in pieces. */
  document: JsonObject;
  /** Anything short. */
  value: JsonObject;
}

/** Returns the kind of work of a child that calls `runDocumentJob`. */
export function createDocumentKind(url: URL): SandboxKind {
  return {
    url,
    maxChildren: 1,
    maxCpuMs: 20_000,
    maxResidentBytes: 512 * MIB,
    maxMessageBytes: 64 * MIB,
    maxTextBytes: 2 * MIB,
  };
}

/**
 * Reads a file in a child. What is returned may be anything: a file may have taken control of the child.
 *
 * @param noun Names the document in messages.
 * @throws {AppError} `unprocessable`, `too_large`
 */
export async function readInChild(
  sandbox: Sandbox,
  kind: SandboxKind,
  bytes: Uint8Array,
  noun: string,
): Promise<ReadDocument> {
  return await runJob(sandbox, kind, { bytes: [bytes] }, noun, () => {});
}

/**
 * Reads the body of a request in a child.
 *
 * @param order What the child makes of it.
 * @param check Gets what the child's `summarizeBody` returned, or else the document. What it throws comes first.
 * @throws {AppError} `invalid_json`, `invalid_request`, `unprocessable`, `too_large`
 */
export async function readBodyInChild<T>(
  sandbox: Sandbox,
  { kind, order, noun }: { kind: SandboxKind; order: string; noun: string },
  { bytes }: UnparsedJson,
  check: (body: unknown) => T,
): Promise<ReadDocument & { checked: T }> {
  let checked: { of: T } | undefined;
  const job: SandboxJob = { value: order, bytes: [bytes] };
  const found = await runJob(sandbox, kind, job, noun, (body) => checked = { of: check(body) });
  return { ...found, checked: checked === undefined ? check(found.document) : checked.of };
}

async function runJob(
  sandbox: Sandbox,
  kind: SandboxKind,
  job: SandboxJob,
  noun: string,
  checkBody: (body: unknown) => void,
): Promise<ReadDocument> {
  try {
    const { value, bytes: [text] } = await sandbox.run(kind, job);
    const { failure, ...rest } = asObject(value);
    if ("body" in rest) checkBody(rest.body);
    if (failure !== undefined) {
      const { code, message } = asObject(failure);
      throw new AppError(FAILURE_CODES.has(code) ? code as ErrorCode : "unprocessable", String(message));
    }
    return { document: asObject(await parseJsonIncrementally(text ?? new Uint8Array(), MAX_DEPTH)), value: rest };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const reason = cause instanceof SandboxFault ? cause.message : "its reader sent an invalid result";
    throw new AppError("unprocessable", `Can't read the ${noun}: ${reason}`, { cause });
  }
}

/** The child's side of `readInChild`. @param read Reads the file. */
export function runDocumentJob(noun: string, read: () => ReadDocument): SandboxResult {
  try {
    const { document, value } = read();
    if (hasTooManyFields(document)) throw createFieldsError(noun);
    return { value, bytes: [new TextEncoder().encode(JSON.stringify(document))] };
  } catch (error) {
    return toFailure(error);
  }
}

/**
 * The child's side of `readBodyInChild`.
 *
 * @param options.summarize Returns what is checked of the body; absent if that is the document.
 * @param options.read Reads what was sent as an object.
 */
export function runBodyJob(
  noun: string,
  bytes: Uint8Array,
  { summarize, read }: { summarize?(json: JsonObject): unknown; read(json: JsonObject): ReadDocument },
): SandboxResult {
  let json: unknown;
  try {
    json = parseJsonBody(bytes);
  } catch (error) {
    return toFailure(error);
  }
  if (!isJsonObject(json)) return { value: { body: shorten(json) } };
  const body = json;
  const { value, bytes: documents } = runDocumentJob(noun, () => {
    const found = read(body);
    if (summarize === undefined && hasMoreFields(found.document, MAX_BODY_FIELDS)) throw createFieldsError(noun);
    return found;
  });
  return { value: { ...asObject(value), ...summarize && { body: summarize(json) } }, bytes: documents };
}

/** Returns some fields of a body as far as the API checks them: without what is in objects. */
export function summarizeBody(json: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) => Object.hasOwn(json, field) ? [[field, shorten(json[field])]] : []),
  );
}

function shorten(value: unknown, maxChars = MAX_BODY_CHARS): unknown {
  if (typeof value === "string") return value.slice(0, maxChars);
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value)) return {};
  if (maxChars === MAX_ITEM_CHARS) return [];
  return value.slice(0, MAX_BODY_ITEMS).map((item) => shorten(item, MAX_ITEM_CHARS));
}

function toFailure(error: unknown): SandboxResult {
  if (!(error instanceof AppError)) throw error;
  return { value: { failure: { code: error.code, message: error.message } } };
}

function createFieldsError(noun: string): AppError {
  return new AppError("unprocessable", `Can't read the ${noun}: one of its parts has too many fields`);
}

/** Reports whether a step of parsing a document would take long. */
export function hasTooManyFields(document: JsonObject, maxItemFields = MAX_ITEM_FIELDS): boolean {
  const others: unknown[] = [];
  for (const value of Object.values(document)) {
    if (!Array.isArray(value)) others.push(value);
    else if (value.some((item) => hasMoreFields(item, maxItemFields))) return true;
  }
  return hasMoreFields(others, MAX_OTHER_FIELDS);
}

/** Counts the object fields on all levels, and items of lists as parts of one. */
function hasMoreFields(json: unknown, limit: number): boolean {
  let count = 0;
  const waiting = [json];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== "object" || value === null) continue;
    count += Array.isArray(value) ? value.length / ITEMS_PER_FIELD : Object.keys(value).length;
    if (count > limit) return true;
    for (const item of Object.values(value)) if (typeof item === "object") waiting.push(item);
  }
  return false;
}
