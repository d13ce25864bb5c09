/** Group commit: many units of writes, one transaction, one fsync. Runs inside the writer Worker. */

import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { resultCodeOf, type WriteFailure } from "./sqlite_errors.ts";
import type { StatementCache } from "./statement_cache.ts";

/** What SQLite takes and gives in a column. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** One statement of a unit. */
export interface Statement {
  sql: string;
  /** Values of its `?`, in order. */
  params?: SqlValue[];
  /** Rows it has to change; any other number undoes the whole unit. */
  expectChanges?: number;
}

/** What one statement did. */
export interface StatementResult {
  changes: number;
  lastInsertRowid: number;
}

/** How a unit ended: durable, with a result a statement, or undone as a whole. */
export type UnitOutcome = { results: StatementResult[] } | { failure: WriteFailure };

/**
 * Commits units together; each is atomic and one that fails leaves the others alone.
 *
 * When the transaction as a whole cannot be committed, every unit is tried once more in one of its own, so that a
 * unit too large for the disk does not take small ones with it.
 *
 * @returns One outcome a unit, in their order; after a `results` the unit is on disk.
 */
export function commitGroup(connection: DatabaseSync, cache: StatementCache, units: Statement[][]): UnitOutcome[] {
  try {
    cache.prepare("BEGIN IMMEDIATE").run();
  } catch (error) {
    return units.map(() => ({ failure: failureOf(error) }));
  }
  try {
    const alone = units.length === 1;
    const outcomes = units.map((unit) =>
      alone ? { results: runUnit(cache, unit) } : runNested(connection, cache, unit)
    );
    cache.prepare("COMMIT").run();
    return outcomes;
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    if (units.length === 1) return [{ failure: failureOf(error) }];
    return units.flatMap((unit) => commitGroup(connection, cache, [unit]));
  }
}

/** Runs a unit inside a savepoint of the group's transaction. */
function runNested(connection: DatabaseSync, cache: StatementCache, unit: Statement[]): UnitOutcome {
  cache.prepare("SAVEPOINT unit").run();
  try {
    const results = runUnit(cache, unit);
    cache.prepare("RELEASE unit").run();
    return { results };
  } catch (error) {
    // A full disk or a failed read ends the whole transaction: SQLite, "Automatic ROLLBACK" in lang_transaction.
    if (!connection.isTransaction) throw error;
    connection.exec("ROLLBACK TO unit; RELEASE unit");
    return { failure: failureOf(error) };
  }
}

function runUnit(cache: StatementCache, unit: Statement[]): StatementResult[] {
  return unit.map(({ sql, params = [], expectChanges }) => {
    const { changes, lastInsertRowid } = cache.prepare(sql).run(...params);
    const result = { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
    if (expectChanges !== undefined && result.changes !== expectChanges) {
      throw new UnmetExpectation(expectChanges, result.changes);
    }
    return result;
  });
}

class UnmetExpectation extends Error {
  constructor(readonly expected: number, readonly changed: number) {
    super(`${changed} rows changed instead of ${expected}`);
  }
}

function failureOf(error: unknown): WriteFailure {
  if (error instanceof UnmetExpectation) {
    return { message: error.message, expectation: { expected: error.expected, changed: error.changed } };
  }
  return { message: messageOf(error), resultCode: resultCodeOf(error) };
}
