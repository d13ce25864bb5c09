import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createCliCodes } from "../../../services/auth/auth.ts";
import { createOperatorProof, isOperatorProof } from "../../../services/crypto/storage_key.ts";

const owner = { rpId: "desk.example", credentialId: "key1" };
const verifier = "v".repeat(43);
const challenge = createHash("sha256").update(verifier).digest("base64url");

test("a code can be redeemed once, with its verifier, at its RP ID, within two minutes", () => {
  let nowMs = 0;
  const codes = createCliCodes(() => nowMs);
  const good = codes.issue(owner, challenge);
  expect(codes.redeem(good, verifier, "desk.example")).toEqual(owner);
  expect(codes.redeem(good, verifier, "desk.example")).toBeUndefined();
  const spoilt = codes.issue(owner, challenge);
  expect(codes.redeem(spoilt, "w".repeat(43), "desk.example")).toBeUndefined();
  expect(codes.redeem(spoilt, verifier, "desk.example")).toBeUndefined();
  expect(codes.redeem(codes.issue(owner, challenge), verifier, "phone.example")).toBeUndefined();
  const late = codes.issue(owner, challenge);
  nowMs = 2 * 60 * 1000;
  expect(codes.redeem(late, verifier, "desk.example")).toBeUndefined();
  expect(codes.redeem("unknown", verifier, "desk.example")).toBeUndefined();
});

test("an operator's proof is valid for a minute, unchanged, under its key", () => {
  const key = new Uint8Array(32).fill(1);
  const proof = createOperatorProof(key, 1_000_000);
  expect(isOperatorProof(proof, key, 1_060_000)).toBe(true);
  expect(isOperatorProof(proof, key, 1_060_001)).toBe(false);
  expect(isOperatorProof(proof, key, 900_000)).toBe(false);
  expect(isOperatorProof(proof, new Uint8Array(32).fill(2), 1_000_000)).toBe(false);
  expect(isOperatorProof(proof.replace("1000000", "1000001"), key, 1_000_000)).toBe(false);
  expect(isOperatorProof("parlor-operator.", key, 1_000_000)).toBe(false);
});
