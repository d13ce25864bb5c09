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

test("an older response that arrives after a newer one is ignored", async () => {
  const { taken, started: [first, second] } = startReads(2);
  second!.resolve("second");
  await second!.ended;
  first!.resolve("first");
  await first!.ended;
  expect(taken).toEqual(["second"]);
});

test("responses that arrive in order are all taken", async () => {
  const { taken, started: [first, second] } = startReads(2);
  first!.resolve("first");
  await first!.ended;
  second!.resolve("second");
  await second!.ended;
  expect(taken).toEqual(["first", "second"]);
});

test("a failed read is reported and makes no older one outdated", async () => {
  const { taken, started: [first, second] } = startReads(2);
  second!.reject(new Error("offline"));
  await expect(second!.ended).rejects.toThrow("offline");
  first!.resolve("first");
  await first!.ended;
  expect(taken).toEqual(["first"]);
});
