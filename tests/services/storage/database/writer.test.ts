import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createStatementCache } from "../../../../services/storage/database/writer.ts";

test("the statements used last are kept, and the others are prepared again", () => {
  using database = new DatabaseSync(":memory:");
  const prepared: string[] = [];
  const cache = createStatementCache(
    { prepare: (sql: string) => (prepared.push(sql), database.prepare(sql)) } as unknown as DatabaseSync,
  );
  const first = cache.prepare("SELECT 'first'");
  const second = cache.prepare("SELECT 'second'");
  for (let n = 0; n < 1_000; n++) {
    cache.prepare(`SELECT ${n}`);
    expect(cache.prepare("SELECT 'first'")).toBe(first);
  }
  expect(prepared).toHaveLength(1_002);
  expect(cache.prepare("SELECT 'second'")).not.toBe(second);
  expect(cache.prepare("SELECT 999").get()).toEqual({ 999: 999 });
  expect(prepared).toHaveLength(1_003);
});
