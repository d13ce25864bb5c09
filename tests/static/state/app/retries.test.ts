import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Retries } from "../../../../static/src/state/app/retries.ts";

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
  const repeat = vi.fn();
  const retries = new Retries(repeat);
  return { retries, repeat, close: retries.open() };
}

test("repeats once after several failures, and waits longer after each attempt that fails", () => {
  const { retries, repeat, close } = open();
  for (let n = 0; n < 3; n++) retries.add(LOST);
  later(0.6);
  expect(repeat).toHaveBeenCalledTimes(1);
  later(30);
  expect(repeat).toHaveBeenCalledTimes(1);
  retries.add(LOST);
  later(0.6);
  expect(repeat).toHaveBeenCalledTimes(1);
  later(0.5);
  expect(repeat).toHaveBeenCalledTimes(2);
  close();
});

test("does nothing about what was refused", () => {
  const { retries, repeat, close } = open();
  retries.add({ isTransient: false, retryAfterMs: undefined });
  later(60);
  expect(repeat).not.toHaveBeenCalled();
  close();
});

test("repeats at once when the network returns or the page is looked at", () => {
  const { retries, repeat, close } = open();
  retries.add(LOST);
  globalThis.dispatchEvent(new Event("online"));
  expect(repeat).toHaveBeenCalledTimes(1);
  retries.add(LOST);
  look.dispatchEvent(new Event("visibilitychange"));
  expect(repeat).toHaveBeenCalledTimes(2);
  globalThis.dispatchEvent(new Event("focus"));
  expect(repeat).toHaveBeenCalledTimes(2);
  close();
});

test("waits as long as the server asks, also when the page is looked at", () => {
  const { retries, repeat, close } = open();
  retries.add(LOST);
  retries.add({ isTransient: true, retryAfterMs: 20_000 });
  globalThis.dispatchEvent(new Event("focus"));
  later(19);
  expect(repeat).not.toHaveBeenCalled();
  later(1.1);
  expect(repeat).toHaveBeenCalledTimes(1);
  close();
});

test("stops with the page", () => {
  const { retries, repeat, close } = open();
  retries.add(LOST);
  close();
  later(60);
  expect(repeat).not.toHaveBeenCalled();
});
