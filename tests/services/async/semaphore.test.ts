import { expect, test } from "vitest";
import { KeyedSemaphore, Semaphore } from "../../../services/async/semaphore.ts";

test("a semaphore grants its permits first come, first served", async () => {
  const semaphore = new Semaphore(1);
  const release = await semaphore.acquire();
  const order: string[] = [];
  const take = (name: string) =>
    semaphore.acquire().then((release) => {
      order.push(name);
      release();
    });
  const waiting = [take("first"), take("second")];
  release();
  release(); // has no effect
  await Promise.all([...waiting, take("third")]);
  expect(order).toEqual(["first", "second", "third"]);
  expect(semaphore.isIdle).toBe(true);
});

test("a signal ends the wait for a permit, and the permit goes to the next", async () => {
  const semaphore = new KeyedSemaphore(1);
  const release = await semaphore.acquire("a");
  const leaving = new AbortController();
  const gone = semaphore.acquire("a", leaving.signal);
  const next = semaphore.acquire("a");
  leaving.abort(new Error("gone"));
  await expect(gone).rejects.toThrow("gone");
  await expect(semaphore.acquire("a", leaving.signal)).rejects.toThrow("gone");
  release();
  (await next)();
  await (await semaphore.acquire("b"))();
});
