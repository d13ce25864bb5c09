/** The JSON object that a file of an import is. */
import { AppError } from "../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../json/type_guards.ts";

/** Gives the object that bytes are. @throws {AppError} `unprocessable` when they are no JSON, no object, or nested deeper than 100 levels */
export function objectIn(bytes: Uint8Array): JsonObject {
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new AppError("unprocessable", "it is no JSON in UTF-8", { cause });
  }
  if (!isJsonObject(json)) throw new AppError("unprocessable", "it is no object of JSON");
  const fault = findJsonFault(json);
  if (fault !== undefined) throw new AppError("unprocessable", fault);
  return json;
}
