import { expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { RetentionClock } from "../../../services/storage/retention_clock.ts";
import { tempFolder, testDatabase } from "../../helpers/files/storage_folder.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const WEEK_MS = 7 * DAY_MS;
const YEAR_MS = 365 * DAY_MS;
const START_MS = Date.parse("2026-05-01T10:00:00Z");

/** A clock of a server that can be stopped and started at any time, also a wrong one. */
async function openClock() {
  const folder = await tempFolder();
  const db = await testDatabase(folder.file("app.db"));
  const sealer = createSealer(new Uint8Array(32)).forPurpose("settings");
  const lines: string[] = [];
  let nowMs = START_MS;
  const open = () => new RetentionClock({ db, sealer, log: (_, line) => void lines.push(line), now: () => nowMs });
  let clock = open();
  return {
    lines,
    isExpired: (createdAtMs: number) => clock.isExpired(createdAtMs, WEEK_MS),
    /** Runs for a while, with the maintenance of each day. */
    async run(durationMs: number) {
      const untilMs = nowMs + durationMs;
      while (nowMs < untilMs) {
        nowMs = Math.min(nowMs + DAY_MS, untilMs);
        await clock.save();
      }
    },
    /** Stops, and starts with another time. */
    async startAt(timeMs: number) {
      await clock.save(true);
      nowMs = timeMs;
      clock = open();
      await clock.save();
    },
    now: () => nowMs,
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test("with a right clock, age is the difference of two times, also for what is older than the first start", async () => {
  await using clock = await openClock();
  expect([START_MS - WEEK_MS - 1, START_MS - WEEK_MS].map(clock.isExpired)).toEqual([true, false]);
  await clock.run(6 * DAY_MS);
  await clock.startAt(clock.now() + 2 * DAY_MS);
  expect([START_MS, START_MS + DAY_MS].map(clock.isExpired)).toEqual([true, false]);
  expect(clock.lines).toEqual([]);
});

test.each([["ahead", 2 * YEAR_MS], ["behind", -2 * YEAR_MS]])(
  "a start with a clock two years %s expires nothing, neither then nor when the clock is right again",
  async (_, offsetMs) => {
    await using clock = await openClock();
    await clock.run(DAY_MS);
    const before = clock.now();
    await clock.startAt(before + offsetMs);
    const during = clock.now();
    expect([before, during].map(clock.isExpired)).toEqual([false, false]);
    await clock.run(MINUTE_MS);
    await clock.startAt(before + 2 * MINUTE_MS);
    const after = clock.now();
    expect([before, during, after].map(clock.isExpired)).toEqual([false, false, false]);
    expect(clock.lines).toHaveLength(2);
    // Everything expires once that much time has been witnessed.
    await clock.run(WEEK_MS - 2 * MINUTE_MS);
    expect(clock.isExpired(after)).toBe(false);
    await clock.run(3 * MINUTE_MS);
    expect([before, during, after].map(clock.isExpired)).toEqual([true, true, true]);
  },
);

test("a server that was off for a long time has seen three days of it", async () => {
  await using clock = await openClock();
  await clock.startAt(START_MS + 30 * DAY_MS);
  expect(clock.isExpired(START_MS)).toBe(false);
  await clock.startAt(START_MS + 60 * DAY_MS);
  expect(clock.isExpired(START_MS)).toBe(false);
  await clock.startAt(START_MS + 90 * DAY_MS);
  expect(clock.isExpired(START_MS)).toBe(true);
  // Imported items can be from a time when it was off.
  expect([START_MS + 10 * DAY_MS, START_MS + 89 * DAY_MS].map(clock.isExpired)).toEqual([false, false]);
  await clock.run(6 * DAY_MS);
  expect([START_MS + 10 * DAY_MS, START_MS + 89 * DAY_MS].map(clock.isExpired)).toEqual([true, false]);
  await clock.run(2 * DAY_MS);
  expect(clock.isExpired(START_MS + 89 * DAY_MS)).toBe(true);
});

test("a computer without a clock battery doesn't age anything by its starts in 1970", async () => {
  await using clock = await openClock();
  await clock.run(MINUTE_MS);
  for (let start = 0; start < 10; start++) {
    const stoppedAtMs = clock.now();
    await clock.startAt(MINUTE_MS);
    await clock.run(MINUTE_MS);
    await clock.startAt(stoppedAtMs + 5 * MINUTE_MS);
    expect([START_MS, START_MS - 5 * DAY_MS, clock.now()].map(clock.isExpired)).toEqual([false, false, false]);
  }
  expect(clock.isExpired(START_MS - WEEK_MS)).toBe(true);
});

test("keeps what was seen over hundreds of jumps", async () => {
  await using clock = await openClock();
  for (let start = 0; start < 250; start++) {
    await clock.startAt(START_MS + (start % 2 === 0 ? YEAR_MS : 0) + start * MINUTE_MS);
    expect(clock.isExpired(START_MS)).toBe(false);
  }
  await clock.run(8 * DAY_MS);
  expect(clock.isExpired(START_MS)).toBe(true);
});
