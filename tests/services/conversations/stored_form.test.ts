import { expect, test } from "vitest";
import { PlaintextCache } from "../../../services/conversations/stored_form.ts";

const block = (id: number, ...bytes: number[]) => ({ id, version: 1, sealed: new Uint8Array(bytes) });

test("finds a plaintext only by the same bytes and version", () => {
  const cache = new PlaintextCache<number>();
  cache.set(block(1, 1, 2, 3), "text");
  expect(cache.find(block(1, 1, 2, 3))).toBe("text");
  for (const other of [block(1, 1, 2, 4), block(1, 1, 2), block(1, 1, 2, 3, 0), block(2, 1, 2, 3)]) {
    expect(cache.find(other)).toBeUndefined();
  }
  expect(cache.find({ ...block(1, 1, 2, 3), version: 2 })).toBeUndefined();
});

test("replaces the version before, also if the write of a version fails", () => {
  const cache = new PlaintextCache<number>();
  cache.set(block(1, 1), "old");
  cache.set(block(1, 2), "never written");
  expect(cache.find(block(1, 1))).toBeUndefined();
  cache.set(block(1, 1), "old");
  expect(cache.find(block(1, 1))).toBe("old");
});

test("drops the least recently used plaintexts, and never stores one larger than the limit", () => {
  const cache = new PlaintextCache<number>(10);
  cache.set(block(1, 1), "aaaa");
  cache.set(block(2, 2), "bbbb");
  expect(cache.find(block(1, 1))).toBe("aaaa");
  cache.set(block(3, 3), "cccc");
  expect([1, 2, 3].map((n) => cache.find(block(n, n)))).toEqual(["aaaa", undefined, "cccc"]);
  cache.set(block(1, 4), "d".repeat(11));
  expect(cache.find(block(1, 4))).toBeUndefined();
  cache.set(block(2, 2), "bbbb");
  expect([2, 3].map((n) => cache.find(block(n, n)))).toEqual(["bbbb", "cccc"]);
});
