import { expect, test } from "vitest";
import { Openings } from "../../../services/async/lazy.ts";

test("it is opened once, when it is first asked for, and everything is given back in reverse", async () => {
  const openings = new Openings();
  const told: string[] = [];
  openings.onClose(() => void told.push("close ground"));
  const cellar = openings.onDemand((onClose) => {
    told.push("open cellar");
    onClose(() => void told.push("close cellar"));
    return Promise.resolve("cellar");
  });
  const house = openings.onDemand(async (onClose) => {
    onClose(() => void told.push("close house"));
    return `house over ${await cellar()}`;
  });
  expect([told, cellar.opened]).toEqual([[], undefined]);
  expect(await Promise.all([house(), house(), cellar()])).toEqual(["house over cellar", "house over cellar", "cellar"]);
  await openings.close();
  expect(told).toEqual(["open cellar", "close house", "close cellar", "close ground"]);
});

test("what cannot be opened gives back its parts, and is tried again by whoever asks next", async () => {
  const openings = new Openings();
  const told: string[] = [];
  let isFull = true;
  const room = openings.onDemand((onClose) => {
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
  await openings.close();
  expect(told).toEqual(["part closed", "part closed"]);
});

test("closing waits for what is being opened, and nothing is opened after it", async () => {
  const openings = new Openings();
  const told: string[] = [];
  const go = Promise.withResolvers<void>();
  const slow = openings.onDemand(async (onClose) => {
    await go.promise;
    onClose(() => void told.push("closed"));
    return "slow";
  });
  const late = openings.onDemand(() => Promise.resolve("late"));
  const asked = slow();
  const closing = openings.close();
  await expect(late()).rejects.toMatchObject({ code: "not_available" });
  go.resolve();
  expect(await asked).toBe("slow");
  await closing;
  expect(told).toEqual(["closed"]);
});
