/** Opens a data directory, prints the result, and holds the lock until it is killed. Argument: the directory. */

import { openDataDir } from "../../../services/storage/data_dir.ts";
import { openDatabase } from "../../../services/storage/database/database.ts";
import { AppError } from "../../../services/errors.ts";

try {
  const dataDir = await openDataDir(Deno.args[0]!);
  const database = await openDatabase({ path: dataDir.file("app.db") });
  console.log("opened");
  await new Promise<never>(() => setInterval(() => {}, 60_000));
  await database.close();
  dataDir.close();
} catch (error) {
  if (!(error instanceof AppError)) throw error;
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
