/** Reads long JSON files of strangers in a child, and takes over what it made of them. Both sides of it are here. */
import { AppError } from "../../errors.ts";
import { parseJsonIncrementally } from "../../json/incremental_parse.ts";
import { asObject, type JsonObject } from "../../json/type_guards.ts";
import type { SandboxResult } from "./child.ts";
import { type Sandbox, SandboxFault, type SandboxKind } from "./sandbox.ts";

const MIB = 1024 * 1024;
const MAX_DEPTH = 200;
/** Maximum number of object fields of one item, on all levels: a turn of the serving thread parses at least one item. */
const MAX_ITEM_FIELDS = 5_000;
/** The same of everything around the lists. */
const MAX_OTHER_FIELDS = 20_000;

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
    maxTextBytes: MIB,
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
  try {
    const { value, bytes: [text] } = await sandbox.run(kind, { bytes: [bytes] });
    const { failure, ...rest } = asObject(value);
    if (failure !== undefined) {
      const { code, message } = asObject(failure);
      throw new AppError(code === "too_large" ? code : "unprocessable", String(message));
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
    if (hasTooManyFields(document)) {
      throw new AppError("unprocessable", `Can't read the ${noun}: one of its parts has too many fields`);
    }
    return { value, bytes: [new TextEncoder().encode(JSON.stringify(document))] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { value: { failure: { code: error.code, message: error.message } } };
  }
}

function hasTooManyFields(document: JsonObject): boolean {
  const others: unknown[] = [];
  for (const value of Object.values(document)) {
    if (!Array.isArray(value)) others.push(value);
    else if (value.some((item) => hasMoreFields(item, MAX_ITEM_FIELDS))) return true;
  }
  return hasMoreFields(others, MAX_OTHER_FIELDS);
}

/** Counts the object fields on all levels. */
function hasMoreFields(json: unknown, limit: number): boolean {
  let count = 0;
  const waiting = [json];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) count += Object.keys(value).length;
    if (count > limit) return true;
    for (const item of Object.values(value)) if (typeof item === "object") waiting.push(item);
  }
  return false;
}
