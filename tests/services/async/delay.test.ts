import { expect, test } from "vitest";
import { delay } from "../../../services/async/delay.ts";

test("a delay ends early when it is woken, and fails with the signal's reason", async () => {
  await delay(60_000, undefined, Promise.resolve());
  await delay(60_000, undefined, Promise.reject(new Error("counts as a wake-up")));
  const leaving = new AbortController();
  const waiting = delay(60_000, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(delay(0, leaving.signal)).rejects.toThrow("gone");
});
