/** The changelog of this version: from the executable, or from the source. */
import { AppError } from "../errors.ts";

const CHANGELOG = new URL("../../CHANGELOG.md", import.meta.url);

/** Returns the Markdown text. @throws {AppError} `not_available` if the file is missing */
export async function readChangelog(): Promise<string> {
  try {
    return await Deno.readTextFile(CHANGELOG);
  } catch (cause) {
    throw new AppError("not_available", "The changelog is missing from the program and its source", { cause });
  }
}
