import { expect, test } from "vitest";
import { PlaintextCache } from "../../../services/conversations/plaintext_cache.ts";

const block = (id: number, ...bytes: number[]) => ({ id, version: 1, sealed: new Uint8Array(bytes) });

test("a text is found by the very bytes and version, and by no others of its id", () => {
  const cache = new PlaintextCache<number>();
  cache.keep(block(1, 1, 2, 3), "text");
  expect(cache.find(block(1, 1, 2, 3))).toBe("text");
  for (const other of [block(1, 1, 2, 4), block(1, 1, 2), block(1, 1, 2, 3, 0), block(2, 1, 2, 3)]) {
    expect(cache.find(other)).toBeUndefined();
  }
  expect(cache.find({ ...block(1, 1, 2, 3), version: 2 })).toBeUndefined();
});

test("the next version takes the place of the one before; one whose write failed harms nobody", () => {
  const cache = new PlaintextCache<number>();
  cache.keep(block(1, 1), "old");
  cache.keep(block(1, 2), "never written");
  expect(cache.find(block(1, 1))).toBeUndefined();
  cache.keep(block(1, 1), "old");
  expect(cache.find(block(1, 1))).toBe("old");
});

test("what was used last stays, within the bound, and a text beyond it is not kept at all", () => {
  const cache = new PlaintextCache<number>(10);
  cache.keep(block(1, 1), "aaaa");
  cache.keep(block(2, 2), "bbbb");
  expect(cache.find(block(1, 1))).toBe("aaaa");
  cache.keep(block(3, 3), "cccc");
  expect([1, 2, 3].map((n) => cache.find(block(n, n)))).toEqual(["aaaa", undefined, "cccc"]);
  cache.keep(block(1, 4), "d".repeat(11));
  expect(cache.find(block(1, 4))).toBeUndefined();
  cache.keep(block(2, 2), "bbbb");
  expect([2, 3].map((n) => cache.find(block(n, n)))).toEqual(["bbbb", "cccc"]);
});
