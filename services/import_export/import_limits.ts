/** What every kind of import is held to. */
import { AppError } from "../errors.ts";

/** More files than a long life with such a program leaves. */
export const MAX_FILES = 500_000;

/** Says that a file is larger than its kind may be. */
export function tooLarge(path: string, maxBytes: number): AppError {
  return new AppError("too_large", `"${path}" is longer than ${maxBytes} bytes`);
}
