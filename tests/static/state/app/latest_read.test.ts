/** Reads that overlap. */
import { expect, test } from "vitest";
import { LatestRead } from "../../../../static/src/state/app/latest_read.ts";

function startReads(count: number) {
  const reads = new LatestRead();
  const taken: string[] = [];
  const started = Array.from({ length: count }, () => {
    const response = Promise.withResolvers<string>();
    return { ...response, ended: reads.run(() => response.promise, (value) => void taken.push(value)) };
  });
  return { taken, started };
}

test.each([
  ["an older response that arrives after a newer one is ignored", [1, 0], ["second"]],
  ["responses that arrive in order are all taken", [0, 1], ["first", "second"]],
])("%s", async (_, order, expected) => {
  const { taken, started } = startReads(2);
  for (const index of order) {
    started[index]!.resolve(["first", "second"][index]!);
    await started[index]!.ended;
  }
  expect(taken).toEqual(expected);
});

test("a failed read is reported and makes no older one outdated", async () => {
  const { taken, started: [first, second] } = startReads(2);
  second!.reject(new Error("offline"));
  await expect(second!.ended).rejects.toThrow("offline");
  first!.resolve("first");
  await first!.ended;
  expect(taken).toEqual(["first"]);
});

test("the failure of an older read isn't reported after a newer response", async () => {
  const { taken, started: [first, second] } = startReads(2);
  second!.resolve("second");
  await second!.ended;
  first!.reject(new Error("offline"));
  await expect(first!.ended).resolves.toBeUndefined();
  expect(taken).toEqual(["second"]);
});

test("a value that a change answered isn't replaced by a read that began before", async () => {
  const latest = new LatestRead();
  const taken: string[] = [];
  const slow = Promise.withResolvers<string>();
  const reading = latest.run(() => slow.promise, (value) => taken.push(value));
  latest.put("changed", (value) => taken.push(value));
  slow.resolve("old");
  await reading;
  await latest.run(() => Promise.resolve("new"), (value) => taken.push(value));
  expect(taken).toEqual(["changed", "new"]);
});
