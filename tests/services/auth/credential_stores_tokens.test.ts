import { expect, test } from "vitest";
import { createTokenStore, TOKENS_AAD } from "../../../services/auth/credential_stores.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";

const sealer = createSealer(new Uint8Array(32).fill(7)).forPurpose("tokens");

async function openStore() {
  const folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  const path = `${folder}/tokens.json`;
  const lines: string[] = [];
  const clock = { nowMs: Date.parse("2026-01-01T00:00:00Z") };
  const open = () => createTokenStore({ path, sealer, log: (_, line) => lines.push(line), now: () => clock.nowMs });
  return {
    path,
    lines,
    clock,
    open,
    store: open(),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

test("a created token is found by its text and listed without it; the file contains neither in plain text", async () => {
  await using at = await openStore();
  const { record, token } = await at.store.mint("script");
  expect(token).toMatch(/^parlor_[A-Za-z0-9_-]{43}$/);
  expect(await at.store.find(token)).toMatchObject({ id: record.id, label: "script" });
  expect(JSON.stringify(await at.store.list())).not.toContain(token);
  const bytes = await Deno.readFile(at.path);
  const text = new TextDecoder("latin1").decode(bytes);
  for (const secret of [token, record.hash, "script"]) expect(text.includes(secret)).toBe(false);
  const opened = new TextDecoder().decode(await sealer.open(TOKENS_AAD, bytes));
  expect([opened.includes(record.hash), opened.includes(token)]).toEqual([true, false]);
  expect((await Deno.stat(at.path)).mode! & 0o777).toBe(0o600);
});

test("a token with any character changed, removed or added is invalid", { tags: ["S14"] }, async () => {
  await using at = await openStore();
  const { token } = await at.store.mint("script");
  for (let i = 0; i < token.length; i++) {
    const other = token[i] === "A" ? "B" : "A";
    expect(await at.store.find(token.slice(0, i) + other + token.slice(i + 1))).toBeUndefined();
    expect(await at.store.find(token.slice(0, i))).toBeUndefined();
  }
  for (const other of ["", `${token}A`, "x".repeat(1024 * 1024)]) expect(await at.store.find(other)).toBeUndefined();
});

test("revoking ends one token, deleting the file ends all; a damaged file accepts none and isn't an empty list", {
  tags: ["S17"],
}, async () => {
  await using at = await openStore();
  const [a, b] = [await at.store.mint("a"), await at.store.mint("b")];
  await at.store.revoke(a.record.id);
  expect([await at.store.find(a.token), (await at.store.find(b.token))?.label]).toEqual([undefined, "b"]);
  expect([await at.store.has(a.record.id), await at.store.has(b.record.id)]).toEqual([false, true]);
  await expect(at.store.revoke(a.record.id)).rejects.toMatchObject({ code: "not_found" });
  const good = await Deno.readFile(at.path);
  await Deno.writeFile(at.path, good.subarray(0, 30));
  expect(await at.store.find(b.token)).toBeUndefined();
  await expect(at.store.list()).rejects.toMatchObject({ code: "internal" });
  await expect(at.store.mint("c")).rejects.toMatchObject({ code: "internal" });
  expect(await Deno.readFile(at.path)).toEqual(good.subarray(0, 30));
  await Deno.remove(at.path);
  expect([await at.store.find(b.token), await at.store.list()]).toEqual([undefined, []]);
});

test(
  "the last use is listed immediately, and written every ten minutes and at the end",
  { tags: ["S16"] },
  async () => {
    await using at = await openStore();
    const { token } = await at.store.mint("script");
    expect(await at.store.list()).toMatchObject([{ last_used_at: null }]);
    at.clock.nowMs += 60_000;
    const written = await Deno.readFile(at.path);
    for (let i = 0; i < 100; i++) await at.store.find(token);
    expect(await at.store.list()).toMatchObject([{ last_used_at: "2026-01-01T00:01:00.000Z" }]);
    expect(await Deno.readFile(at.path)).toEqual(written);
    await at.store.close();
    expect(await at.open().list()).toMatchObject([{ last_used_at: "2026-01-01T00:01:00.000Z" }]);
  },
);

test("recording a use doesn't restore a deleted file", { tags: ["S17"] }, async () => {
  await using at = await openStore();
  const { token } = await at.store.mint("script");
  await at.store.find(token);
  await Deno.remove(at.path);
  await at.store.close();
  await expect(Deno.stat(at.path)).rejects.toThrow(Deno.errors.NotFound);
});

test("tokens created at the same moment are all stored", async () => {
  await using at = await openStore();
  const minted = await Promise.all(Array.from({ length: 10 }, (_, i) => at.store.mint(`t${i}`)));
  expect((await at.open().list()).map(({ id }) => id).sort()).toEqual(minted.map(({ record }) => record.id).sort());
});

test("a token without a scope, from an earlier version, allows everything; an unknown scope allows nothing", async () => {
  await using at = await openStore();
  const { record, token } = await at.store.mint("old");
  const { scope, ...old } = record;
  expect(scope).toBe("all");
  const write = async (records: unknown[]) =>
    await Deno.writeFile(at.path, await sealer.seal(TOKENS_AAD, JSON.stringify(records)));
  await write([old]);
  expect(await at.open().find(token)).toMatchObject({ label: "old", scope: "all" });
  await write([{ ...old, scope: "later" }]);
  expect(await at.open().find(token)).toBeUndefined();
  await expect(at.open().list()).rejects.toMatchObject({ code: "internal" });
});
