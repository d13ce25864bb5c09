import { expect, test } from "vitest";
import { utf8Bytes } from "../../../services/crypto/utf8_bytes.ts";

test.each([
  ["nothing", ""],
  ["ASCII with all its control characters", String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code))],
  ["other letters, first, last and between", "éa", "aé", "a\u0080b"],
  ["beyond the basic plane", "a😀b"],
  ["half a surrogate pair, as the platform replaces it", "a\ud83db"],
  ["a text of three bytes per character around the limit of the buffer", "€".repeat(1_365), "€".repeat(1_366)],
  ["a long text", "x".repeat(5_000)],
  ["a long text with other letters", "ü".repeat(5_000)],
])("encodes %s like TextEncoder", (_, ...texts) => {
  for (const text of texts) expect(utf8Bytes(text)).toEqual(new TextEncoder().encode(text));
});

test("returns bytes that later calls don't change", () => {
  const first = utf8Bytes("first");
  utf8Bytes("other");
  expect(new TextDecoder().decode(first)).toBe("first");
});
