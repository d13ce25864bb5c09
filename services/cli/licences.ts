/** `parlor licenses`: what others wrote of the program, and under which terms. */
import { AppError } from "../errors.ts";

/** Text of `parlor licenses --help`. */
export const LICENCES_HELP = "Usage: parlor licenses\n\nPrints the licence notices of all that is in this executable.";

const NOTICES = new URL("../licences.txt", import.meta.url);

/** Gives the notices that the executable carries. @throws {AppError} `not_available` from source, where nothing is bundled */
export async function licenceNotices(): Promise<string> {
  try {
    return (await Deno.readTextFile(NOTICES)).trimEnd();
  } catch (cause) {
    throw new AppError(
      "not_available",
      "Only the executable carries licence notices; deno task build writes them to dist/",
      {
        cause,
      },
    );
  }
}
