/** Why something does not come in. */
import { AppError, messageOf } from "../errors.ts";
import type { ImportNote } from "./import_item.ts";

/** A note that something cannot be read. Only words of our own are shown. */
export function refused(source: string, error: unknown): ImportNote {
  const reason = typeof error === "string" ? error : error instanceof AppError ? messageOf(error) : "it cannot be read";
  return { what: "note", level: "refused", source, reason };
}
