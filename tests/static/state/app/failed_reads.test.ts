import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FailedReads } from "../../../../static/src/state/app/failed_reads.ts";

const LOST = { isTransient: true, retryAfterMs: undefined };
const later = (seconds: number) => vi.advanceTimersByTime(seconds * 1000);

let look: EventTarget;
beforeEach(() => {
  vi.useFakeTimers();
  look = new EventTarget();
  vi.stubGlobal("document", Object.assign(look, { visibilityState: "visible" }));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function open() {
  const loadAgain = vi.fn();
  const reads = new FailedReads(loadAgain);
  return { reads, loadAgain, close: reads.open() };
}

test("loads again once after several reads failed, and waits longer after each attempt that fails", () => {
  const { reads, loadAgain, close } = open();
  for (let n = 0; n < 3; n++) reads.add(LOST);
  later(0.6);
  expect(loadAgain).toHaveBeenCalledTimes(1);
  later(30);
  expect(loadAgain).toHaveBeenCalledTimes(1);
  reads.add(LOST);
  later(0.6);
  expect(loadAgain).toHaveBeenCalledTimes(1);
  later(0.5);
  expect(loadAgain).toHaveBeenCalledTimes(2);
  close();
});

test("does nothing about reads that were refused", () => {
  const { reads, loadAgain, close } = open();
  reads.add({ isTransient: false, retryAfterMs: undefined });
  later(60);
  expect(loadAgain).not.toHaveBeenCalled();
  close();
});

test("loads again at once when the network returns or the page is looked at", () => {
  const { reads, loadAgain, close } = open();
  reads.add(LOST);
  globalThis.dispatchEvent(new Event("online"));
  expect(loadAgain).toHaveBeenCalledTimes(1);
  reads.add(LOST);
  look.dispatchEvent(new Event("visibilitychange"));
  expect(loadAgain).toHaveBeenCalledTimes(2);
  globalThis.dispatchEvent(new Event("focus"));
  expect(loadAgain).toHaveBeenCalledTimes(2);
  close();
});

test("waits as long as the server asks, also when the page is looked at", () => {
  const { reads, loadAgain, close } = open();
  reads.add(LOST);
  reads.add({ isTransient: true, retryAfterMs: 20_000 });
  globalThis.dispatchEvent(new Event("focus"));
  later(19);
  expect(loadAgain).not.toHaveBeenCalled();
  later(1.1);
  expect(loadAgain).toHaveBeenCalledTimes(1);
  close();
});

test("stops with the page", () => {
  const { reads, loadAgain, close } = open();
  reads.add(LOST);
  close();
  later(60);
  expect(loadAgain).not.toHaveBeenCalled();
});
