/** Reads the JSON object in a file of an import. */
import { AppError } from "../errors.ts";
import { ImportError } from "./import_reasons.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../json/type_guards.ts";

/**
 * Parses a JSON object. @throws {AppError} `unprocessable` if the bytes aren't JSON, aren't an object, or nest deeper
 * than 100 levels.
 */
export function objectIn(bytes: Uint8Array): JsonObject {
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new ImportError("not_json", { cause });
  }
  if (!isJsonObject(json)) throw new ImportError("not_object");
  const fault = findJsonFault(json);
  if (fault !== undefined) throw new AppError("unprocessable", fault);
  return json;
}
