/**
 * Writes files below a limit on file size (`ulimit -f`), as on a full disk, and prints how each write went.
 * Arguments: file, bytes of each write in order.
 */

import { AppError } from "../../../services/errors.ts";
import { writeFileAtomic } from "../../../services/storage/atomic_file.ts";

const [path, ...sizes] = Deno.args;
for (const size of sizes) {
  try {
    await writeFileAtomic(path!, "x".repeat(Number(size)));
    console.log("written");
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    console.log(error.code);
  }
}
