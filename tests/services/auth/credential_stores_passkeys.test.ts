import { expect, test } from "vitest";
import { createCredentialStore, CREDENTIALS_AAD } from "../../../services/auth/credential_stores.ts";
import { credentialRecord } from "../../helpers/app/enrolled.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";

const sealer = createSealer(new Uint8Array(32).fill(7)).forPurpose("credentials");
const otherSealer = createSealer(new Uint8Array(32).fill(8)).forPurpose("credentials");

async function openStore() {
  const folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  const path = `${folder}/credentials.json`;
  const lines: string[] = [];
  const store = createCredentialStore({ path, sealer, log: (_, line) => lines.push(line) });
  return { path, lines, store, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}

const oneRecord = JSON.stringify({
  credentials: [{ ...credentialRecord("key1", "localhost"), name: "Laptop" }],
  gated_rp_ids: ["localhost"],
});

test("without a file every RP ID is in grace", async () => {
  await using at = await openStore();
  expect(await at.store.isGated("localhost")).toBe(false);
  expect(await at.store.load()).toEqual([]);
});

test("an enrolled RP ID is gated, and others aren't", async () => {
  await using at = await openStore();
  await Deno.writeFile(at.path, sealer.sealNow(CREDENTIALS_AAD, oneRecord));
  expect(await at.store.isGated("localhost")).toBe(true);
  expect(await at.store.isGated("desk.example")).toBe(false);
  expect(await at.store.load()).toMatchObject([{ id: "key1", name: "Laptop" }]);
});

test("grace returns when the file is deleted, and ends when it is restored", { tags: ["G07"] }, async () => {
  await using at = await openStore();
  const sealed = sealer.sealNow(CREDENTIALS_AAD, oneRecord);
  for (let round = 0; round < 2; round++) {
    await Deno.writeFile(at.path, sealed);
    expect(await at.store.isGated("localhost")).toBe(true);
    await Deno.remove(at.path);
    expect(await at.store.isGated("localhost")).toBe(false);
  }
});

test.each([
  ["empty", new Uint8Array()],
  ["truncated", sealer.sealNow(CREDENTIALS_AAD, oneRecord).subarray(0, 40)],
  ["plain JSON, unsealed", new TextEncoder().encode(oneRecord)],
  ["sealed under another key", otherSealer.sealNow(CREDENTIALS_AAD, oneRecord)],
  ["sealed for another place", sealer.sealNow({ ...CREDENTIALS_AAD, id: "tokens" }, oneRecord)],
  ["no JSON inside", sealer.sealNow(CREDENTIALS_AAD, "nonsense")],
  ["of the wrong type", sealer.sealNow(CREDENTIALS_AAD, '{"id":"key1"}')],
  ["a list of wrong records", sealer.sealNow(CREDENTIALS_AAD, '{"credentials":[{"id":1}],"gated_rp_ids":[]}')],
  ["without the RPIDs it gates", sealer.sealNow(CREDENTIALS_AAD, oneRecord.replace('["localhost"]', "[]"))],
])("a file that is %s gates everything and is reported once", { tags: ["G06"] }, async (_name, content) => {
  await using at = await openStore();
  await Deno.writeFile(at.path, content);
  expect(await at.store.isGated("localhost")).toBe(true);
  expect(await at.store.isGated("never.enrolled")).toBe(true);
  await expect(at.store.load()).rejects.toMatchObject({ code: "internal" });
  expect(at.lines).toHaveLength(1);
});

test("a folder or a dangling link in place of the file gates everything", { tags: ["G06"] }, async () => {
  await using at = await openStore();
  await Deno.mkdir(at.path);
  expect(await at.store.isGated("localhost")).toBe(true);
  await Deno.remove(at.path);
  await Deno.symlink(`${at.path}.gone`, at.path);
  expect(await at.store.isGated("localhost")).toBe(true);
});

test(
  "concurrent sign-ins are compared in sequence, and a rejected one stores nothing",
  { tags: ["G13"] },
  async () => {
    await using at = await openStore();
    await at.store.add(credentialRecord("key1", "desk.example"), true);
    const record = (counter: number) => at.store.recordSignIn("key1", counter, `2026-01-0${counter}T00:00:00.000Z`);
    expect(await Promise.all([record(0), record(0)])).toEqual([undefined, undefined]);
    const refused = expect.stringContaining("counter");
    expect(await Promise.all([record(2), record(1), record(2), record(3), record(0)])).toEqual([
      ...[undefined, refused, refused, undefined, refused],
    ]);
    expect(await at.store.find("key1")).toMatchObject({ counter: 3, last_used_at: "2026-01-03T00:00:00.000Z" });
    await at.store.remove("key1");
    expect(await record(4)).toContain("revoked");
  },
);
