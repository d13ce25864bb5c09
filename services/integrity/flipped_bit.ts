/** Finds the one bit that differs from what was written, without a backup: the manifest has the sum of what was. */
import { Buffer } from "node:buffer";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { SqlValue, Statement } from "../storage/database/writer.ts";
import type { ManifestCheck } from "./manifest.ts";
import { readColumns, TABLES } from "./tables.ts";

/** The change that makes an item as it was. */
export interface BitRepair {
  /** The row; `undefined` if only the manifest is damaged. */
  row: { table: string; key: SQLInputValue[] } | undefined;
  /** Without those of the manifest. */
  statements: Statement[];
}

/** Most values to try: about half a minute. */
const MAX_TRIES = 10_000_000;

/** Sizes of SQLite's integers, in bits. */
const INTEGER_BITS = [8, 16, 24, 32, 48, 64];

/**
 * Tries every bit of the plain columns of an item's rows.
 *
 * @returns `undefined` if more than a bit differs. @throws SQLite's errors if a page is damaged
 */
export function findFlippedBit(database: DatabaseSync, manifest: ManifestCheck, path: string): BitRepair | undefined {
  const difference = manifest.getDifference(path);
  if (difference === undefined) return undefined;
  if (difference.isOneBit) return { row: undefined, statements: [] };
  if (difference.rowCount !== 0) return undefined;
  let tries = 0;
  for (const { table, key, sum } of manifest.listRows(database, path)) {
    const columns = readColumns(database, table);
    const where = columns.key.map((name) => `${name} = ?`).join(" AND ");
    const select = columns.plain.map((name, i) => `quote(${name}) AS q${i}`);
    const found = database.prepare(`SELECT ${select} FROM ${table} WHERE ${where}`).all(...key);
    // A damaged key may not be found, or be that of another row.
    if (found.length !== 1) continue;
    const quoted = columns.plain.map((_, i) => String(found[0]![`q${i}`]));
    for (const [i, name] of columns.plain.entries()) {
      // The row was found by it.
      if (name === TABLES[table]!.id) continue;
      const [head, tail] = [quoted.slice(0, i), quoted.slice(i + 1)];
      const values = listNeighbors(database, `SELECT ${name} AS value FROM ${table} WHERE ${where}`, key);
      for (const value of values) {
        if (++tries > MAX_TRIES) return undefined;
        const entry = [table, ...head, quote(database, value), ...tail];
        if (!manifest.isSumOf(entry, sum, difference.sum)) continue;
        const sql = `UPDATE ${table} SET ${name} = ? WHERE ${where}`;
        const params = [value, ...key] as SqlValue[];
        return { row: { table, key }, statements: [{ sql, params, expectChanges: 1 }] };
      }
    }
  }
}

/** Yields the values that differ in one bit from the one of a query. */
function* listNeighbors(
  database: DatabaseSync,
  sql: string,
  params: SQLInputValue[],
): Generator<string | bigint | number> {
  const statement = database.prepare(sql);
  statement.setReadBigInts(true);
  const value = statement.get(...params)?.value;
  if (typeof value === "bigint") yield* flipInteger(value);
  if (typeof value === "string") yield* flipText(value);
  if (typeof value === "number") yield* flipReal(value);
}

function* flipInteger(value: bigint): Generator<bigint> {
  const seen = new Set<bigint>();
  for (const size of INTEGER_BITS) {
    if (BigInt.asIntN(size, value) !== value) continue;
    for (let bit = 0; bit < size; bit++) {
      const flipped = BigInt.asIntN(size, value ^ (1n << BigInt(bit)));
      if (seen.has(flipped)) continue;
      seen.add(flipped);
      yield flipped;
    }
  }
}

/** SQLite stores whole numbers as integers, also in columns of reals. */
function* flipReal(value: number): Generator<number> {
  if (Number.isSafeInteger(value)) { for (const flipped of flipInteger(BigInt(value))) yield Number(flipped); }
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  for (let bit = 0n; bit < 64n; bit++) {
    view.setBigUint64(0, bits ^ (1n << bit));
    const flipped = view.getFloat64(0);
    if (Number.isFinite(flipped)) yield flipped;
  }
}

function* flipText(text: string): Generator<string> {
  const bytes = Buffer.from(text);
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    for (let bit = 0; bit < 8; bit++) {
      bytes[i] = byte ^ (1 << bit);
      if (bytes[i] === 0) continue; // No stored text has NUL.
      let flipped: string;
      try {
        flipped = decoder.decode(bytes);
      } catch {
        continue;
      }
      yield flipped;
    }
    bytes[i] = byte;
  }
}

/** Writes a value as SQLite's `quote` does. */
function quote(database: DatabaseSync, value: string | bigint | number): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`;
  return String(database.prepare("SELECT quote(CAST(? AS REAL)) AS quoted").get(value)?.quoted);
}
