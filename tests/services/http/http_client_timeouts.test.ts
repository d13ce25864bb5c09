import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallTimer } from "../../../services/http/upstream_error.ts";

const SERVER = 'the model at "http://h"';
const LIMITS = { connectMs: 10, firstByteMs: 1000, idleMs: 300 };
let caller: AbortController;
let timer: CallTimer;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  caller = new AbortController();
  timer = new CallTimer(LIMITS, SERVER, caller.signal);
});
afterEach(() => {
  timer.end();
  vi.useRealTimers();
});

/** One read of the stream: a wait of `silentMs`, then bytes. */
function read(silentMs: number): void {
  timer.startReading();
  vi.advanceTimersByTime(silentMs);
  timer.markActive();
}

test("the wait for the first byte covers headers and body, and ends at its limit", () => {
  vi.advanceTimersByTime(600);
  timer.startReading(); // headers have arrived and the body is read: the timer isn't reset
  vi.advanceTimersByTime(399);
  expect(timer.signal.aborted).toBe(false);
  vi.advanceTimersByTime(2);
  expect(timer.findAbortReason()).toMatchObject({ reason: { kind: "timeout", code: "upstream_timeout" } });
});

test("any byte, even of a comment, restarts the idle limit", () => {
  read(900);
  for (let n = 0; n < 20; n++) read(290);
  expect(timer.signal.aborted).toBe(false);
  timer.startReading();
  vi.advanceTimersByTime(299);
  expect(timer.signal.aborted).toBe(false);
  vi.advanceTimersByTime(9); // noticed at the next check, at most a fiftieth of the limit later
  expect(String(timer.signal.reason)).toContain("no data for 300 ms");
});

test("a slow reader isn't mistaken for a silent server", () => {
  read(10);
  vi.advanceTimersByTime(5_000);
  expect(timer.signal.aborted).toBe(false);
  read(290);
  expect(timer.signal.aborted).toBe(false);
});

test("after the finish reason, the wait for the end is shorter than for text", () => {
  timer.end();
  timer = new CallTimer({ ...LIMITS, idleMs: 600_000 }, SERVER, caller.signal);
  read(10);
  timer.startEnding();
  timer.startReading();
  vi.advanceTimersByTime(11_000);
  expect(timer.signal.aborted).toBe(true);
});

test("an abort by the caller, a timeout and another failure are distinguished", () => {
  expect(timer.findAbortReason()).toBeUndefined();
  const reason = new Error("left");
  caller.abort(reason);
  expect(timer.signal.reason).toBe(reason);
  expect(timer.findAbortReason()).toEqual({ reason });
});

test("a released watch has no timer and ignores its caller", () => {
  timer.release();
  expect(vi.getTimerCount()).toBe(0);
  caller.abort();
  expect(timer.signal.aborted).toBe(false);
});

test("a limit beyond the maximum of timers doesn't fire at once", () => {
  timer.end();
  timer = new CallTimer({ ...LIMITS, firstByteMs: 2 ** 40 }, SERVER, caller.signal);
  vi.advanceTimersByTime(1000);
  expect(timer.signal.aborted).toBe(false);
});
