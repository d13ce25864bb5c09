import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallWatch } from "../../../services/http/timeouts.ts";

const LIMITS = { connectMs: 10, firstByteMs: 1000, idleMs: 300 };
let caller: AbortController;
let watch: CallWatch;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  caller = new AbortController();
  watch = new CallWatch(LIMITS, caller.signal, "http://h");
});
afterEach(() => {
  watch.end();
  vi.useRealTimers();
});

/** One read of the stream: `silentMs` of waiting, then bytes. */
function read(silentMs: number): void {
  watch.waiting();
  vi.advanceTimersByTime(silentMs);
  watch.arrived();
}

test("the wait for the first byte spans headers and body, and ends at its limit", () => {
  vi.advanceTimersByTime(600);
  watch.waiting(); // headers have come, the body is read: the clock is not set back
  vi.advanceTimersByTime(399);
  expect(watch.signal.aborted).toBe(false);
  vi.advanceTimersByTime(2);
  expect(watch.reasonOf(new Error("x"))).toMatchObject({ own: { kind: "timeout", code: "upstream_timeout" } });
});

test("any byte, a comment included, begins the idle limit anew", () => {
  read(900);
  for (let n = 0; n < 20; n++) read(290);
  expect(watch.signal.aborted).toBe(false);
  watch.waiting();
  vi.advanceTimersByTime(299);
  expect(watch.signal.aborted).toBe(false);
  vi.advanceTimersByTime(9); // seen at the next look, a fiftieth of the limit later at most
  expect(String(watch.signal.reason)).toContain("no byte for 300 ms");
});

test("a reader that takes its time is not taken for a silent server", () => {
  read(10);
  vi.advanceTimersByTime(5_000);
  expect(watch.signal.aborted).toBe(false);
  read(290);
  expect(watch.signal.aborted).toBe(false);
});

test("after the finish reason the end is not waited for as long as for text", () => {
  watch.end();
  watch = new CallWatch({ ...LIMITS, idleMs: 600_000 }, caller.signal, "http://h");
  read(10);
  watch.ending();
  watch.waiting();
  vi.advanceTimersByTime(11_000);
  expect(watch.signal.aborted).toBe(true);
});

test("the caller's abort is told apart from our own limit and from a foreign failure", () => {
  const foreign = new Error("socket");
  expect(watch.reasonOf(foreign)).toEqual({ foreign });
  const reason = new Error("left");
  caller.abort(reason);
  expect(watch.signal.reason).toBe(reason);
  expect(watch.reasonOf(foreign)).toEqual({ own: reason });
});

test("a released watch has no timer and does not hear its caller", () => {
  watch.release();
  expect(vi.getTimerCount()).toBe(0);
  caller.abort();
  expect(watch.signal.aborted).toBe(false);
});

test("a limit beyond what a timer can take does not fire at once", () => {
  watch.end();
  watch = new CallWatch({ ...LIMITS, firstByteMs: 2 ** 40 }, caller.signal, "http://h");
  vi.advanceTimersByTime(1000);
  expect(watch.signal.aborted).toBe(false);
});
