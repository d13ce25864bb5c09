import { expect, test } from "vitest";
import type { Database } from "../../../../services/storage/database/database.ts";
import { sample } from "../../../helpers/files/sample.ts";
import { startChild } from "../../../helpers/processes/storage_child.ts";
import { tempFolder, testDatabase } from "../../../helpers/files/storage_folder.ts";

const ROUNDS = sample(30, 200);
/** A process is killed during its first writes, or after at most this many acknowledged ones. */
const MAX_UNITS = 24;
const FIRST_WRITES_MS = 20;

interface Round {
  acknowledged: number[];
  last: number;
}

/**
 * Lets a child write until it is killed at a random moment. The moment is a number of writes, not a time:
 * on a busy machine, a time that allows many writes elsewhere may end before the first.
 */
async function writeUntilKilled(path: string, first: number): Promise<Round> {
  const child = startChild("storage_crash_child.ts", [path, String(first)]);
  const ready = await child.lines.next();
  expect(ready.value, "the child must open the store that the kill before it left").toBe("ready");
  const readyAtMs = performance.now();
  const units = Math.floor(Math.random() * MAX_UNITS);
  let killed: Promise<void> | undefined;
  const killWithin = (ms: number) => {
    killed = new Promise<void>((resolve) => setTimeout(resolve, Math.random() * ms)).then(() => child.kill());
  };
  if (units === 0) killWithin(FIRST_WRITES_MS);
  const acknowledged: number[] = [];
  for (let line = await child.lines.next(); !line.done; line = await child.lines.next()) {
    acknowledged.push(Number(line.value));
    // Between two acknowledgements, wherever the next writes are at that time.
    if (acknowledged.length === units) killWithin((performance.now() - readyAtMs) / 2);
  }
  await killed;
  await child.end();
  return { acknowledged, last: Math.max(first, ...acknowledged) };
}

function numbersIn(database: Database, sql: string): Set<number> {
  return new Set(database.all<{ id: string }>(sql).map(({ id }) => Number(id.slice(1))));
}

test(
  `loses no acknowledged write and splits no unit when killed under load: ${ROUNDS} rounds`,
  { tags: ["D02"], timeout: 60_000 + ROUNDS.count * 10_000 },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("app.db");
    const acknowledged: number[] = [];
    let first = 0;
    for (let round = 0; round < ROUNDS.count; round++) {
      const result = await writeUntilKilled(path, first);
      acknowledged.push(...result.acknowledged);
      first = result.last + 1000; // beyond any unit that was written but not acknowledged
      await using database = await testDatabase(path);
      expect(database.all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
      const settings = numbersIn(database, "SELECT key AS id FROM setting");
      const drafts = numbersIn(database, "SELECT conversation_id AS id FROM draft");
      expect(acknowledged.filter((n) => !settings.has(n))).toEqual([]);
      expect(settings).toEqual(drafts);
      if (acknowledged.length > 0) {
        expect(database.get<{ version: number }>("SELECT version FROM document")?.version)
          .toBeGreaterThanOrEqual(Math.max(...acknowledged));
      }
    }
    expect(acknowledged.length, "the lives were too short to show anything").toBeGreaterThan(ROUNDS.count);
  },
);
