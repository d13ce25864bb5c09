import { expect, test } from "vitest";
import { ByteBudget, getBudgetSizes, type Reservation } from "../../../services/async/byte_budget.ts";

/** 100 bytes, of which 20 are for reservations of up to 10 bytes. */
const SIZES = { limitBytes: 100, reserveBytes: 20, smallBytes: 10, waitMs: Infinity };

/** Starts a reservation and records when it is granted. */
function started(budget: ByteBudget, bytes: number, granted: string[], name: string): Promise<Reservation> {
  return budget.reserve(bytes).then((reservation) => {
    granted.push(name);
    return reservation;
  });
}

test("grants reservations first come, first served, and never more than the limit", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget(SIZES);
  const granted: string[] = [];
  const first = await started(budget, 50, granted, "first");
  const second = started(budget, 60, granted, "second");
  // It would fit now, but the second one is ahead of it.
  const third = started(budget, 30, granted, "third");
  await Promise.resolve();
  expect([granted, budget.usedBytes]).toEqual([["first"], 50]);
  first.release();
  (await second).release();
  (await third).release();
  expect([granted, budget.usedBytes]).toEqual([["first", "second", "third"], 0]);
});

test("a small reservation doesn't wait behind large ones", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget(SIZES);
  await budget.reserve(80);
  const large = budget.reserve(20);
  using small = await budget.reserve(10);
  expect(budget.usedBytes).toBe(90);
  small.release();
  void large;
});

test("a reservation larger than the limit runs alone", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget(SIZES);
  const granted: string[] = [];
  const first = await started(budget, 20, granted, "first");
  const huge = started(budget, 1_000, granted, "huge");
  const next = started(budget, 20, granted, "next");
  await Promise.resolve();
  expect(granted).toEqual(["first"]);
  first.release();
  const running = await huge;
  expect(granted).toEqual(["first", "huge"]);
  running.release();
  await next;
  expect(granted).toEqual(["first", "huge", "next"]);
});

test("refuses as busy, with a time to retry, a request that waited too long", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget({ ...SIZES, waitMs: 1 });
  await budget.reserve(80);
  await expect(budget.reserve(50)).rejects.toMatchObject({
    code: "busy",
    retryAfterSeconds: expect.toSatisfy((seconds: number) => seconds > 0),
  });
  expect(budget.usedBytes).toBe(80);
});

test("a client that disconnects leaves its place in the queue to the next", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget(SIZES);
  await budget.reserve(60);
  const client = new AbortController();
  const left = budget.reserve(80, { signal: client.signal });
  const next = budget.reserve(20);
  client.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  (await next).release();
  expect(budget.usedBytes).toBe(60);
});

test("returns a reservation once, however often it is released", async () => {
  const budget = new ByteBudget(SIZES);
  const reservation = await budget.reserve(50);
  reservation.release();
  reservation.release();
  expect(budget.usedBytes).toBe(0);
});

const MIB = 1024 * 1024;

test("collects garbage before a huge reservation that could exceed the limit with it", async () => {
  const steps: string[] = [];
  let memoryBytes = 0;
  const collectGarbage = () => {
    steps.push("collected");
    memoryBytes = 20 * MIB;
    return Promise.resolve();
  };
  const sizes = { limitBytes: 200 * MIB, reserveBytes: 0, smallBytes: 8 * MIB };
  const budget = new ByteBudget({ ...sizes, collectGarbage, memoryBytes: () => memoryBytes });
  memoryBytes = 90 * MIB;
  const first = await budget.reserve(100 * MIB);
  expect(steps).toEqual([]);
  memoryBytes = 150 * MIB;
  await budget.reserve(8 * MIB); // small
  const second = budget.reserve(150 * MIB).then(() => steps.push("second"));
  first.release();
  await second;
  expect(steps).toEqual(["collected", "second"]);
});

test("doesn't collect again until memory has grown, because memory in use can't be collected", async () => {
  let collections = 0;
  let memoryBytes = 180 * MIB;
  const startCollection = () => void collections++;
  const sizes = { limitBytes: 200 * MIB, reserveBytes: 0, smallBytes: 8 * MIB };
  const budget = new ByteBudget({ ...sizes, startCollection, memoryBytes: () => memoryBytes });
  for (let n = 0; n < 4; n++) (await budget.reserve(50 * MIB)).release();
  expect(collections).toBe(1);
  memoryBytes = 250 * MIB;
  (await budget.reserve(50 * MIB)).release();
  expect(collections).toBe(2);
});

test("leaves garbage to the engine while a large reservation fits next to it", async () => {
  let collections = 0;
  let memoryBytes = 0;
  const startCollection = () => void collections++;
  const sizes = { limitBytes: 256 * MIB, reserveBytes: 64 * MIB, smallBytes: 8 * MIB };
  const budget = new ByteBudget({ ...sizes, startCollection, memoryBytes: () => memoryBytes });
  await budget.reserve(70 * MIB); // takes the first measurement
  memoryBytes = 190 * MIB;
  await budget.reserve(35 * MIB);
  expect(collections).toBe(0);
  memoryBytes = 230 * MIB;
  await budget.reserve(35 * MIB);
  expect(collections).toBe(1);
});

test(
  "a large reservation starts a collection without waiting for it, a huge one waits",
  { tags: ["F07"] },
  async () => {
    const steps: string[] = [];
    let memoryBytes = 180 * MIB;
    const budget = new ByteBudget({
      limitBytes: 200 * MIB,
      reserveBytes: 0,
      smallBytes: 8 * MIB,
      collectGarbage: () => Promise.resolve(void steps.push("collected")),
      startCollection: () => void steps.push("started"),
      memoryBytes: () => memoryBytes,
    });
    (await budget.reserve(35 * MIB)).release();
    expect(steps).toEqual(["started"]);
    memoryBytes = 300 * MIB;
    (await budget.reserve(150 * MIB)).release();
    expect(steps).toEqual(["started", "collected"]);
  },
);

test.each([
  ["no limit", 0, 256],
  ["a limit above the machine's memory", 9_223_372_036_854_772_000, 256],
  ["1 GiB", 1024 * MIB, 256],
  ["512 MiB", 512 * MIB, 176],
  ["300 MiB", 300 * MIB, 70],
  ["100 MiB", 100 * MIB, 16],
])("follows the memory limit of the container: %s", (_name, memoryLimitBytes, limitMiB) => {
  const { limitBytes, reserveBytes, smallBytes, hugeBytes, collectedBytes } = getBudgetSizes(memoryLimitBytes);
  expect(limitBytes / MIB).toBe(limitMiB);
  expect(reserveBytes / limitBytes).toBeCloseTo(1 / 4);
  expect(smallBytes / limitBytes).toBeCloseTo(1 / 32);
  if (limitMiB === 256) expect([hugeBytes, collectedBytes]).toEqual([64 * MIB, 64 * MIB]);
  else expect([hugeBytes, collectedBytes / limitBytes]).toEqual([smallBytes, expect.closeTo(1 / 8)]);
});

test("with a low limit, garbage is collected before every large reservation, and the largest runs alone", async () => {
  let collections = 0;
  let memoryBytes = 0;
  const budget = new ByteBudget({
    ...getBudgetSizes(300 * MIB),
    collectGarbage: () => Promise.resolve(void collections++),
    memoryBytes: () => memoryBytes,
  });
  const save = await budget.reserve(70 * MIB);
  await expect(budget.reserve(10 * MIB, { waitMs: 1 })).rejects.toMatchObject({ code: "busy" });
  memoryBytes = 90 * MIB;
  save.release();
  (await budget.reserve(10 * MIB)).release();
  expect(collections).toBe(1);
});
