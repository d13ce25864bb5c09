import { expect, test } from "vitest";
import { KeyedMutex, KeyedSemaphore, Mutex, Semaphore } from "../../../services/async/locks.ts";

test("a mutex runs work in sequence, even after failed work", async () => {
  const mutex = new Mutex();
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`${name} starts`);
    await new Promise((resolve) => setTimeout(resolve));
    log.push(`${name} ends`);
    if (name === "a") throw new Error("a failed");
  };
  const failing = mutex.run(work("a"));
  const second = mutex.run(work("b"));
  await expect(failing).rejects.toThrow("a failed");
  await second;
  await mutex.waitUntilSettled();
  expect(log).toEqual(["a starts", "a ends", "b starts", "b ends"]);
});

test("a keyed mutex lets work under different keys run at the same time", async () => {
  const locks = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const blocked = locks.run("a", () => gate.promise);
  const behind = locks.run("a", () => "behind");
  await expect(locks.run("b", () => "free")).resolves.toBe("free");
  gate.resolve();
  await blocked;
  await expect(behind).resolves.toBe("behind");
});

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

test("a signal ends the wait for a permit, which goes to the next", async () => {
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
