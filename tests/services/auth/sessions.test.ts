import { expect, test } from "vitest";
import { openSessionKey, readSession, signSession } from "../../../services/auth/sessions.ts";

const key = new Uint8Array(32).fill(1);
const claims = { id: "s1", rp_id: "desk.example", credential_id: "key1", issued: 1_700_000_000_000 };
const value = signSession(key, claims);
const replaced = (text: string, at: number, character: string) => text.slice(0, at) + character + text.slice(at + 1);

test("a signed value can be read back, and consists of characters that cookies allow", () => {
  expect(readSession(key, value)).toEqual(claims);
  expect(value).toMatch(/^[A-Za-z0-9._-]+$/);
});

test("a value with any character changed, removed or added is invalid", { tags: ["S05"] }, () => {
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

test("a signature with another key, or of another value or version, is invalid", { tags: ["S05"] }, () => {
  expect(readSession(new Uint8Array(32).fill(2), value)).toBeUndefined();
  const [, , mac] = value.split(".");
  const [version, other] = signSession(key, { ...claims, id: "s2" }).split(".");
  expect(readSession(key, `${version}.${other}.${mac}`)).toBeUndefined();
  expect(readSession(key, value.replace(/^1/, "2"))).toBeUndefined();
  expect(readSession(key, value.replace(/^1/, "none"))).toBeUndefined();
});

async function folder() {
  const path = await Deno.makeTempDir({ prefix: "parlor-test-" });
  const lines: string[] = [];
  const file = `${path}/session-key`;
  return {
    file,
    lines,
    open: () => openSessionKey(file, (_, line) => lines.push(line)),
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

test("the first start creates 32 random bytes with mode 0600, and the next start reads them", async () => {
  await using at = await folder();
  const first = await at.open();
  expect([first.isFresh, (await Deno.stat(at.file)).mode! & 0o777]).toEqual([true, 0o600]);
  const again = await at.open();
  expect(again.isFresh).toBe(false);
  expect(await again.read()).toEqual(await first.read());
  expect((await first.read())!.byteLength).toBe(32);
});

test("a key file that is deleted at runtime is created again on the next use", { tags: ["S10"] }, async () => {
  await using at = await folder();
  const key = await at.open();
  const before = await key.read();
  await Deno.remove(at.file);
  const after = await key.read();
  expect(after).not.toEqual(before);
  expect((await Deno.stat(at.file)).mode! & 0o777).toBe(0o600);
  expect(await key.read()).toBe(after);
});

const FAULTS: [string, (file: string) => Promise<void>, RegExp][] = [
  ["empty", (file) => Deno.writeFile(file, new Uint8Array(), { mode: 0o600 }), /0 bytes instead of 32/],
  ["31 bytes", (file) => Deno.writeFile(file, new Uint8Array(31).fill(7), { mode: 0o600 }), /31 bytes instead of 32/],
  ["all zero", (file) => Deno.writeFile(file, new Uint8Array(32), { mode: 0o600 }), /all bytes are zero/],
  ["of mode 0644", async (file) => {
    await Deno.writeFile(file, new Uint8Array(32).fill(7));
    await Deno.chmod(file, 0o644);
  }, /mode is 0644 instead of 0600/],
  ["a symlink", async (file) => {
    await Deno.writeFile(`${file}.real`, new Uint8Array(32).fill(7), { mode: 0o600 });
    await Deno.symlink(`${file}.real`, file);
  }, /isn't a regular file/],
  ["a folder", (file) => Deno.mkdir(file), /isn't a regular file/],
];

test.each(FAULTS)(
  "a key file that is %s stops startup with the reason",
  { tags: ["S10"] },
  async (_name, spoil, reason) => {
    await using at = await folder();
    await spoil(at.file);
    await expect(at.open()).rejects.toThrow(reason);
  },
);

test.each(FAULTS)(
  "a key file that becomes %s at runtime isn't used, and is reported once",
  { tags: ["S10"] },
  async (_name, spoil, reason) => {
    await using at = await folder();
    const key = await at.open();
    const before = await key.read();
    const good = await Deno.readFile(at.file);
    await Deno.remove(at.file);
    await spoil(at.file);
    expect([await key.read(), await key.read()]).toEqual([undefined, undefined]);
    expect(at.lines).toEqual([expect.stringMatching(reason)]);
    await Deno.remove(at.file, { recursive: true });
    await Deno.writeFile(at.file, good, { mode: 0o600 });
    expect(await key.read()).toEqual(before);
  },
);

test(
  "with umask 000 and concurrent starts, there is one key, which is private from its first byte",
  { tags: ["S11"] },
  async () => {
    await using at = await folder();
    const umask = Deno.umask(0);
    try {
      const keys = await Promise.all(Array.from({ length: 8 }, async () => (await at.open()).read()));
      expect(new Set(keys.map((key) => key!.toString())).size).toBe(1);
      expect((await Deno.stat(at.file)).mode! & 0o777).toBe(0o600);
    } finally {
      Deno.umask(umask);
    }
  },
);
