import { expect, test } from "vitest";
import { LazyScope } from "../../../services/async/lazy.ts";

test("it is opened once, when it is first asked for, and everything is given back in reverse", async () => {
  const scope = new LazyScope();
  const told: string[] = [];
  scope.onClose(() => void told.push("close ground"));
  const cellar = scope.lazy((onClose) => {
    told.push("open cellar");
    onClose(() => void told.push("close cellar"));
    return Promise.resolve("cellar");
  });
  const house = scope.lazy(async (onClose) => {
    onClose(() => void told.push("close house"));
    return `house over ${await cellar()}`;
  });
  expect([told, cellar.opened]).toEqual([[], undefined]);
  expect(await Promise.all([house(), house(), cellar()])).toEqual(["house over cellar", "house over cellar", "cellar"]);
  await scope.close();
  expect(told).toEqual(["open cellar", "close house", "close cellar", "close ground"]);
});

test("what cannot be opened gives back its parts, and is tried again by whoever asks next", async () => {
  const scope = new LazyScope();
  const told: string[] = [];
  let isFull = true;
  const room = scope.lazy((onClose) => {
    onClose(() => void told.push("part closed"));
    return isFull ? Promise.reject(new Error("The disk is full")) : Promise.resolve("room");
  });
  await expect(Promise.allSettled([room(), room()])).resolves.toMatchObject([
    { reason: { message: "The disk is full" } },
    { reason: { message: "The disk is full" } },
  ]);
  expect([told, room.opened]).toEqual([["part closed"], undefined]);
  isFull = false;
  expect(await room()).toBe("room");
  await scope.close();
  expect(told).toEqual(["part closed", "part closed"]);
});

test("closing waits for what is being opened, and nothing is opened after it", async () => {
  const scope = new LazyScope();
  const told: string[] = [];
  const go = Promise.withResolvers<void>();
  const slow = scope.lazy(async (onClose) => {
    await go.promise;
    onClose(() => void told.push("closed"));
    return "slow";
  });
  const late = scope.lazy(() => Promise.resolve("late"));
  const asked = slow();
  const closing = scope.close();
  await expect(late()).rejects.toMatchObject({ code: "not_available" });
  go.resolve();
  expect(await asked).toBe("slow");
  await closing;
  expect(told).toEqual(["closed"]);
});
