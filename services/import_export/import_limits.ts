/** Limits of all imports. */
import { AppError } from "../errors.ts";

/** More files than years with such a program produce. */
export const MAX_FILES = 500_000;

/** Creates the error for a file that exceeds its limit. */
export function tooLarge(path: string, maxBytes: number): AppError {
  return new AppError("too_large", `"${path}" is larger than ${maxBytes} bytes`);
}
