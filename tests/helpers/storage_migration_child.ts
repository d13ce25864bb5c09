/** Opens a database with a second, slow migration. Argument: database file. Prints `done` when it is through. */

import { openDatabase } from "../../services/storage/database.ts";
import { slowMigrations } from "./storage_migrations.ts";

const database = await openDatabase({ path: Deno.args[0]!, migrations: slowMigrations(3_000_000) });
console.log("done");
await database.close();
