/** Opens a database with a second, slow migration. Arguments: database file, rows it fills in. Prints `done` when it is through. */

import { openDatabase } from "../../../services/storage/database/database.ts";
import { slowMigrations } from "./storage_migrations.ts";

const [path, rows] = Deno.args;
const database = await openDatabase({ path: path!, migrations: slowMigrations(Number(rows)) });
console.log("done");
await database.close();
