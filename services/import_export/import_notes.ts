/** Notes in the report of an import. */
import type { ImportNote } from "./import_item.ts";
import { type ImportReason, importReason, type ImportReasonCode, reasonOfError } from "./import_reasons.ts";

/** Creates the note that something isn't imported. @param error A code, or what was thrown while reading. */
export function refused(source: string, error: unknown): ImportNote {
  const reason = typeof error === "string" ? importReason(error as ImportReasonCode) : reasonOfError(error);
  return { what: "note", level: "refused", source, ...reason };
}

/** Creates the note that files aren't imported, as planned. @param count How many files. */
export function leftOut(source: string, code: ImportReasonCode, count = 1): ImportNote {
  return { what: "note", level: "left_out", source, ...importReason(code), count };
}

/** Creates the note that something is imported with changes. */
export function changed(source: string, reason: ImportReasonCode | ImportReason): ImportNote {
  return { what: "note", level: "changed", source, ...(typeof reason === "string" ? importReason(reason) : reason) };
}
