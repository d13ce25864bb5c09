import { expect, test } from "vitest";
import { readSession, signSession } from "../../../services/auth/sessions.ts";

const key = new Uint8Array(32).fill(1);
const claims = { id: "s1", rp_id: "desk.example", credential_id: "key1", issued: 1_700_000_000_000 };
const value = signSession(key, claims);
const replaced = (text: string, at: number, character: string) => text.slice(0, at) + character + text.slice(at + 1);

test("a signed value says what was signed, in characters a cookie takes", () => {
  expect(readSession(key, value)).toEqual(claims);
  expect(value).toMatch(/^[A-Za-z0-9._-]+$/);
});

test("no value with any character changed, cut or added counts", { tags: ["S05"] }, () => {
  for (let i = 0; i < value.length; i++) {
    for (const character of ["A", "B", "_", ".", "1"]) {
      if (character !== value[i]) expect(readSession(key, replaced(value, i, character))).toBeUndefined();
    }
    expect(readSession(key, value.slice(0, i))).toBeUndefined();
  }
  for (const other of [`${value}=`, `${value}A`, ` ${value}`, "", ".", "..", "1..", "x".repeat(5_000)]) {
    expect(readSession(key, other)).toBeUndefined();
  }
});

test("neither another key's signature nor one of another value or version counts", { tags: ["S05"] }, () => {
  expect(readSession(new Uint8Array(32).fill(2), value)).toBeUndefined();
  const [, , mac] = value.split(".");
  const [version, other] = signSession(key, { ...claims, id: "s2" }).split(".");
  expect(readSession(key, `${version}.${other}.${mac}`)).toBeUndefined();
  expect(readSession(key, value.replace(/^1/, "2"))).toBeUndefined();
  expect(readSession(key, value.replace(/^1/, "none"))).toBeUndefined();
});
