/** Newer schemas, for tests of upgrades. */

import { type Migration, MIGRATIONS } from "../../../services/storage/database/migrations.ts";

/** The program's schema and one step more, which fills a table `number` row by row. */
export function slowMigrations(rows: number): Migration[] {
  const version = MIGRATIONS.length + 1;
  return [...MIGRATIONS, {
    version,
    sql: `
      CREATE TABLE number(n INTEGER PRIMARY KEY) STRICT;
      WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter LIMIT ${rows})
        INSERT INTO number SELECT n FROM counter;
      ALTER TABLE setting ADD COLUMN added INTEGER;
    `,
  }];
}
