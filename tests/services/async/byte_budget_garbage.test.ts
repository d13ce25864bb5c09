import { expect, test } from "vitest";
import { collectGarbage, getMemoryBytes, startCollection } from "../../../services/async/byte_budget.ts";

const MIB = 1024 * 1024;

/** Waits until the current task ends: a new WeakRef holds its object until then. */
const endTask = () => new Promise((resolve) => setTimeout(resolve, 1));

/** Refers to an object that nothing else refers to. */
function makeGarbage(): WeakRef<object> {
  return new WeakRef({ text: "garbage" });
}

/** Leaves an old object that nothing refers to: only a whole collection removes it. Returns whether it's removed. */
async function leaveOldGarbage(): Promise<() => boolean> {
  let isRemoved = false;
  const registry = new FinalizationRegistry(() => isRemoved = true);
  let object: object | undefined = { text: "old" };
  registry.register(object, undefined);
  await collectGarbage();
  await collectGarbage();
  object = undefined;
  // Refers to the registry, which is forgotten otherwise.
  return () => registry !== undefined && isRemoved;
}

/** Allocates some 2 MiB of objects that stay: far less than what makes the engine collect by itself. */
async function growHeap(): Promise<object[]> {
  const objects: object[] = [];
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 20_000; n++) objects.push({ n });
    await endTask();
  }
  return objects;
}

/** Allocates objects that live for a moment until the check succeeds. They don't make a whole collection due. */
async function workUntil(check: () => boolean): Promise<void> {
  while (!check()) {
    Array.from({ length: 10_000 }, (_, n) => ({ n }));
    await endTask();
  }
}

test("collects the garbage of this thread", async () => {
  const garbage = makeGarbage();
  await endTask();
  await collectGarbage();
  expect(garbage.deref()).toBeUndefined();
});

test("starts a collection before the engine would, which takes no memory for it", { tags: ["F07"] }, async () => {
  const inUse = Array.from({ length: 1_000_000 }, (_, n) => ({ n }));
  const isRemoved = await leaveOldGarbage();
  const residentBytes = Deno.memoryUsage().rss;
  startCollection();
  const grown = await growHeap();
  await workUntil(isRemoved);
  expect(Deno.memoryUsage().rss - residentBytes).toBeLessThan(128 * MIB);
  expect([inUse.length, grown.length]).toEqual([1_000_000, 40_000]);
});

/** Collects unused buffers. The engine frees them at once but reports that later. */
async function collectBuffers(): Promise<void> {
  await collectGarbage();
  await expect.poll(() => {
    const { heapUsed, external } = Deno.memoryUsage();
    return heapUsed + external - getMemoryBytes();
  }).toBeLessThan(MIB);
}

test("the buffer that starts a collection isn't counted as memory in use", async () => {
  await collectBuffers();
  const before = getMemoryBytes();
  startCollection();
  expect(Math.abs(getMemoryBytes() - before)).toBeLessThan(64 * MIB);
  await collectGarbage();
  expect(Deno.memoryUsage().external).toBeLessThan(200 * MIB);
  await collectBuffers();
  expect(Math.abs(getMemoryBytes() - before)).toBeLessThan(64 * MIB);
});
