import { expect, test, vi } from "vitest";
import { ByteBudget, type Reservation } from "../../../services/async/byte_budget.ts";

/** 100 bytes, of which 20 are for reservations of up to 10 bytes. */
const SIZES = { limitBytes: 100, reserveBytes: 20, smallBytes: 10, waitMs: Infinity };

/** Starts a reservation and notes when it is granted. */
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
  // It would fit now, but the second came before it.
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

test("refuses as busy, with a time to retry, what waited too long", { tags: ["F07"] }, async () => {
  const budget = new ByteBudget({ ...SIZES, waitMs: 1 });
  await budget.reserve(80);
  await expect(budget.reserve(50)).rejects.toMatchObject({
    code: "busy",
    retryAfterSeconds: expect.toSatisfy((seconds: number) => seconds > 0),
  });
  expect(budget.usedBytes).toBe(80);
});

test("a client that disconnects leaves the queue to those behind it", { tags: ["F07"] }, async () => {
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

test("collects garbage before a very large reservation, and after it before its space is used again", async () => {
  const mib = 1024 * 1024;
  const steps: string[] = [];
  const collectGarbage = vi.fn(() => {
    steps.push("collected");
    return Promise.resolve();
  });
  const budget = new ByteBudget({ limitBytes: 100 * mib, reserveBytes: 0, smallBytes: 8 * mib, collectGarbage });
  const first = await budget.reserve(80 * mib);
  const second = budget.reserve(80 * mib).then(() => steps.push("second"));
  first.release();
  await second;
  expect(steps).toEqual(["collected", "collected", "second"]);
});
