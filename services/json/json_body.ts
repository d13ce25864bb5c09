/** JSON bodies of requests: their limits, and long ones from strangers, which only a child of the sandbox parses. */
import { AppError } from "../errors.ts";
import { isNestedDeeper } from "./incremental_parse.ts";

/** Deeper than any real document. Comparing and writing JSON recurse once per level. */
export const MAX_JSON_DEPTH = 500;

/** Maximum size of foreign JSON that is parsed on the serving thread: at worst a few milliseconds of work. */
export const MAX_PARSED_BYTES = 64 * 1024;

/** A body that the serving thread doesn't parse. */
export class UnparsedJson {
  constructor(readonly bytes: Uint8Array<ArrayBuffer>) {}
}

/**
 * Parses a body as all others are parsed.
 *
 * @throws {AppError} `invalid_json`; `invalid_request` if it's nested too deep
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (isNestedDeeper(bytes, MAX_JSON_DEPTH)) throw createNestingError();
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw createEncodingError(cause);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw createSyntaxError();
  }
}

/** Creates the error for a body that isn't JSON. */
export function createSyntaxError(): AppError {
  return new AppError("invalid_json", "The body of the request isn't JSON");
}

/** Creates the error for a body that isn't text. */
export function createEncodingError(cause: unknown): AppError {
  return new AppError("invalid_json", "The body of the request isn't JSON: it isn't valid UTF-8", { cause });
}

/** Creates the error for a body with too many levels. */
export function createNestingError(): AppError {
  return new AppError("invalid_request", `The body of the request is nested deeper than ${MAX_JSON_DEPTH} levels`);
}
