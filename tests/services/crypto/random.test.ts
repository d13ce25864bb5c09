import { expect, test } from "vitest";
import { createUuidV7, randomBytes, randomToken } from "../../../services/crypto/random.ts";

test.each([0, 1, 32, 65_536, 200_001])("fills all of %i random bytes", (byteLength) => {
  const bytes = randomBytes(byteLength);
  expect(bytes.byteLength).toBe(byteLength);
  if (byteLength >= 32) expect(bytes.subarray(-32).every((byte) => byte === 0)).toBe(false);
  if (byteLength >= 32) expect(randomBytes(byteLength)).not.toEqual(bytes);
});

test("encodes random tokens as base64url, never twice the same", () => {
  const tokens = Array.from({ length: 1000 }, () => randomToken(32));
  expect(tokens.filter((token) => !/^[A-Za-z0-9_-]{43}$/.test(token))).toEqual([]);
  expect(new Set(tokens).size).toBe(1000);
  expect(randomToken(1)).toMatch(/^[A-Za-z0-9_-]{2}$/);
});

test("creates UUIDs version 7 that sort by time", async () => {
  const beforeMs = Date.now();
  const first = createUuidV7();
  const afterMs = Date.now();
  expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const carriedMs = parseInt(first.replaceAll("-", "").slice(0, 12), 16);
  expect(carriedMs).toBeGreaterThanOrEqual(beforeMs);
  expect(carriedMs).toBeLessThanOrEqual(afterMs);
  while (Date.now() === afterMs) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(createUuidV7() > first).toBe(true);
  expect(new Set(Array.from({ length: 10_000 }, createUuidV7)).size).toBe(10_000);
});
