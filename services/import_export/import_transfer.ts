/**
 * Lorebooks, presets and chats of an import can be long, so each is sent as a separate JSON document, which Parlor parses
 * in pieces. This file packs it in the child and unpacks it in Parlor.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import { parseJsonIncrementally } from "../json/incremental_parse.ts";
import { MAX_PARSED_BYTES } from "../json/json_body.ts";
import {
  asArray,
  asNumber,
  asObject,
  asText,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../json/type_guards.ts";
import { parseLorebook, parseReadBook } from "../lorebooks/lorebook_file.ts";
import { hasTooManyFields } from "../platform/sandbox/document_job.ts";
import { parseReadPreset, parseSillyTavernPreset } from "../presets/sillytavern.ts";
import { BYTE_FIELDS, type ImportedContinuation, type ImportedConversation, type ImportStep } from "./import_item.ts";

/** Name of the document among the byte arrays of an item. */
export const DOCUMENT = "document";

/** An item, and its byte arrays by field. */
export interface PackedStep {
  step: ImportStep;
  /** Size of its JSON without the arrays. */
  chars: number;
  arrays: [field: string, bytes: Uint8Array][];
}

/** Maximum size of an item without its document. The serving thread parses it at once. */
const MAX_STEP_CHARS = 1024 * 1024;
/** Maximum number of fields of a message with its variants. */
export const MAX_MESSAGE_FIELDS = 20_000;
const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024;
const MAX_DEPTH = 200;

const encoder = new TextEncoder();

/** The child's side. @returns `undefined` for an item that would take the serving thread too long. */
export function packStep(step: ImportStep): PackedStep | undefined {
  const fields: JsonObject = { ...step };
  const arrays: PackedStep["arrays"] = [];
  for (const field of step.what === "note" ? [] : BYTE_FIELDS[step.what] ?? []) {
    if (!(fields[field] instanceof Uint8Array)) continue;
    arrays.push([field, fields[field]]);
    delete fields[field];
  }
  const document = takeDocument(step, fields);
  if (document !== undefined) {
    if (hasTooManyFields(document, step.what === "conversation" ? MAX_MESSAGE_FIELDS : undefined)) return undefined;
    arrays.push([DOCUMENT, encoder.encode(JSON.stringify(document))]);
  }
  const chars = JSON.stringify(fields).length;
  return chars > MAX_STEP_CHARS ? undefined : { step: fields as unknown as ImportStep, chars, arrays };
}

/** Removes the document from the fields of an item. Books and presets are converted to Parlor's form. */
function takeDocument(step: ImportStep, fields: JsonObject): JsonObject | undefined {
  if (step.what === "conversation") {
    const { head, draft, messages, continuations = [] } = step;
    for (const name of ["head", "draft", "messages", "continuations"]) delete fields[name];
    return {
      head,
      draft,
      messages,
      continued: continuations.flatMap((one) => one.messages),
      continuations: continuations.map(({ message_id, n, messages: { length } }) => ({ message_id, n, length })),
    };
  }
  if (step.what !== "lorebook" && step.what !== "preset" && step.what !== "workflow") return undefined;
  delete fields.book;
  delete fields.json;
  try {
    if (step.what === "lorebook") return parseLorebook(step.book).book;
    if (step.what === "workflow") return asObject(step.json);
    return step.isOurs ? asObject(step.json) : { ...parseSillyTavernPreset(step.json) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    fields.fault = getErrorMessage(error);
    return undefined;
  }
}

/** Parlor's side of a document. @throws if the child sent something else */
export async function parseDocument(bytes: Uint8Array | undefined): Promise<JsonObject> {
  if (bytes === undefined || bytes.length > MAX_DOCUMENT_BYTES) throw new Error("No document");
  const isShort = bytes.length <= MAX_PARSED_BYTES;
  const document = isShort ? parseJsonBytes(bytes) : await parseJsonIncrementally(bytes, MAX_DEPTH);
  if (!isJsonObject(document)) throw new Error("The document isn't an object");
  return document;
}

/** Parlor's side: puts an item and its document together. What is in it may be anything. @throws {AppError} */
export async function unpackDocument(step: ImportStep, document: JsonObject): Promise<ImportStep> {
  if (step.what === "lorebook") return { ...step, book: await parseReadBook(document) };
  if (step.what === "preset") return { ...step, json: parseReadPreset(document) };
  if (step.what === "workflow") return { ...step, json: document };
  if (step.what !== "conversation") return step;
  const { head, draft, messages, continued, continuations } = document;
  const branches = takeBranches(asArray(continuations), asArray(continued) as ImportedConversation["messages"]);
  return {
    ...step,
    head: asObject(head),
    messages: asArray(messages) as ImportedConversation["messages"],
    ...(branches.length > 0 && { continuations: branches }),
    ...(typeof draft === "string" && { draft }),
  };
}

function takeBranches(heads: unknown[], messages: ImportedConversation["messages"]): ImportedContinuation[] {
  let at = 0;
  return heads.map(asObject).map(({ message_id, n, length }) => ({
    message_id: asText(message_id),
    n: asNumber(n) ?? 0,
    messages: messages.slice(at, at += Math.max(0, asNumber(length) ?? 0)),
  }));
}
