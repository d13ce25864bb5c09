/** Prepared statements by their text, so that a query is parsed once a connection. */

import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Statements kept per connection; the program has fewer, and one that builds its text at run time cannot fill memory. */
const MAX_STATEMENTS = 200;

/** Gives the prepared statement of a text. */
export interface StatementCache {
  prepare(sql: string): StatementSync;
}

/** Makes the cache of one connection. It keeps the statements used last. */
export function createStatementCache(connection: DatabaseSync): StatementCache {
  const statements = new Map<string, StatementSync>();
  return {
    prepare(sql) {
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = connection.prepare(sql);
        for (const oldest of statements.keys()) {
          if (statements.size < MAX_STATEMENTS) break;
          statements.delete(oldest);
        }
      } else {
        statements.delete(sql); // to the end of the order of use
      }
      statements.set(sql, statement);
      return statement;
    },
  };
}
