/**
 * Writes tests/fixtures/schemas/<version>.sql, the newest schema as it is released: `deno task fixture`. Each earlier one
 * is kept, and the tests upgrade it. An existing file is never changed, because its version has been released.
 */
import { schemaFixture } from "./helpers/app/schema_fixtures.ts";
import { MIGRATIONS } from "../services/storage/database/migrations.ts";

const folder = new URL("fixtures/schemas/", import.meta.url);
await Deno.mkdir(folder, { recursive: true });
for (const { version } of MIGRATIONS) {
  const file = new URL(`${version}.sql`, folder);
  if (await Deno.stat(file).then(() => true, () => false)) continue;
  await Deno.writeTextFile(file, schemaFixture(version));
  console.log(`wrote ${file.pathname}`);
}
