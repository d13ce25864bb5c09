import { expect, test } from "vitest";
import { KeyedMutex, Mutex } from "../../../services/async/keyed_mutex.ts";

test("a mutex runs work one after another, also after work that failed", async () => {
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
  await mutex.settled();
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
