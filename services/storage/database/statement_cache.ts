/** Cache of prepared statements, so that each connection parses a query once. */

import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Limit per connection. The program has fewer statements; the limit bounds SQL text that is built at run time. */
const MAX_STATEMENTS = 200;

/** Returns the prepared statement for an SQL text. */
export interface StatementCache {
  prepare(sql: string): StatementSync;
}

/** Creates the cache of a connection. Keeps the most recently used statements. */
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
        statements.delete(sql); // move to the end of the order of use
      }
      statements.set(sql, statement);
      return statement;
    },
  };
}
