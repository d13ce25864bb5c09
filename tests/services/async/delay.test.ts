import { expect, test } from "vitest";
import { delay, raceAbort } from "../../../services/async/delay.ts";

test("a delay ends early when it is woken, and fails with the signal's reason", async () => {
  await delay(60_000, undefined, Promise.resolve());
  await delay(60_000, undefined, Promise.reject(new Error("counts as a wake-up")));
  const leaving = new AbortController();
  const waiting = delay(60_000, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(delay(0, leaving.signal)).rejects.toThrow("gone");
});

test("work is waited for until the signal aborts, and may fail afterwards", async () => {
  const leaving = new AbortController();
  expect(await raceAbort(Promise.resolve("done"), leaving.signal)).toBe("done");
  await expect(raceAbort(Promise.reject(new Error("broken")), leaving.signal)).rejects.toThrow("broken");
  const work = Promise.withResolvers<void>();
  const waiting = raceAbort(work.promise, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(raceAbort(work.promise, leaving.signal)).rejects.toThrow("gone");
  work.reject(new Error("too late"));
});
