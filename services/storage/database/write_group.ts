/** Group commit: many units of writes, one transaction, one fsync. Runs in the writer Worker. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { getResultCode, type WriteFailure } from "./sqlite_errors.ts";

/** A column value. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** One statement of a unit. */
export interface Statement {
  sql: string;
  /** Values for each `?`, in order. */
  params?: SqlValue[];
  /** Number of rows it must change; any other number rolls back the unit. */
  expectChanges?: number;
}

/** Result of a statement. */
export interface StatementResult {
  changes: number;
  lastInsertRowid: number;
}

/** Outcome of a unit: durable with a result per statement, or rolled back. */
export type UnitOutcome = { results: StatementResult[] } | { failure: WriteFailure };

/**
 * Commits units together. Each is atomic; a failed one doesn't affect the others.
 *
 * If the transaction can't be committed as a whole, each unit is retried in its own transaction, so that a unit too
 * large for the disk doesn't take small ones with it.
 *
 * @returns One outcome per unit, in order. A unit with `results` is on disk.
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

/** Runs a unit in a savepoint of the group's transaction. */
function runNested(connection: DatabaseSync, cache: StatementCache, unit: Statement[]): UnitOutcome {
  cache.prepare("SAVEPOINT unit").run();
  try {
    const results = runUnit(cache, unit);
    cache.prepare("RELEASE unit").run();
    return { results };
  } catch (error) {
    // A full disk or failed read rolls back the whole transaction. See https://www.sqlite.org/lang_transaction.html,
    // "Response To Errors Within A Transaction".
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
  return { message: messageOf(error), resultCode: getResultCode(error) };
}

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
