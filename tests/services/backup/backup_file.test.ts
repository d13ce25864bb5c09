import { expect, test } from "vitest";
import { openBackup, streamBackup } from "../../../services/backup/backup_file.ts";
import { runParlor } from "../../helpers/processes/parlor_command.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const storageKey = new Uint8Array(32).fill(7);
const seal = { kdf: "scrypt", n: 1024, r: 8, p: 1, salt: "c2FsdA==", sealed: "c2VhbGVk" };
const head = { format: 1, version: "1.0.0", created_at: "2026-01-01T00:00:00.000Z", key: "storage_key" };

/** Headers that a damaged disk or transfer may leave. */
const DAMAGED: [string, string][] = [
  ["JSON that is cut", JSON.stringify(head).slice(0, -20) + "}"],
  ["a letter changed", JSON.stringify(head).replace('"key"', 'xkey"')],
  ["an empty object", "{}"],
  ["another format number", JSON.stringify({ ...head, format: "1" })],
  ["no key", JSON.stringify({ ...head, key: undefined })],
  ["an unknown key", JSON.stringify({ ...head, key: "storage_kex" })],
  ["a key that is null", JSON.stringify({ ...head, key: null })],
  ["a version that is no text", JSON.stringify({ ...head, version: 1 })],
  ["a newer format without a version", JSON.stringify({ format: 2 })],
  ["a cost of scrypt that is none", JSON.stringify({ ...head, key: { ...seal, n: 1 } })],
  ["a cost of scrypt that nobody can pay", JSON.stringify({ ...head, key: { ...seal, n: 2 ** 40 } })],
  ["a seal without salt", JSON.stringify({ ...head, key: { ...seal, salt: undefined } })],
];

test.each(DAMAGED)(
  "a backup whose header has %s is rejected with one sentence",
  { tags: ["K07"] },
  async (_name, json) => {
    await using folder = await tempFolder();
    const path = folder.file("parlor.backup");
    await Deno.writeTextFile(path, `parlor backup ${json}\nsealed`);
    const keys = {
      getPassphrase: () => Promise.resolve("a passphrase"),
      getStorageKey: () => Promise.resolve(storageKey),
    };
    await expect(openBackup(path, keys)).rejects.toMatchObject({
      code: "unprocessable",
      message: `Can't read the backup "${path}": its header is damaged`,
    });
  },
);

test("a changed byte anywhere in the header is rejected with Parlor's own error", { tags: ["K07"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("parlor.backup");
  const parts = await Array.fromAsync(streamBackup({ version: "1.0.0", nowMs: 0 }, { storageKey }, noEntries()));
  const bytes = new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
  for (let at = 0; at <= bytes.indexOf(10); at++) {
    const changed = bytes.slice();
    changed[at]! ^= 1;
    await Deno.writeFile(path, changed);
    const opening = (async () => {
      using backup = await openBackup(path, { getStorageKey: () => Promise.resolve(storageKey) });
      await Array.fromAsync(backup.entries);
    })();
    await expect(opening, `byte ${at}`).rejects.toMatchObject({
      code: expect.stringMatching(/^(unprocessable|internal)$/),
    });
  }
});

test("parlor restore prints one line for a damaged header", { tags: ["K07"], timeout: 180_000 }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("parlor.backup");
  await Deno.writeTextFile(path, 'parlor backup {"format":1,}\nsealed');
  const end = await runParlor(["restore", path, "--data-dir", folder.file("data")]);
  expect(end).toEqual({
    code: 1,
    stdout: "",
    stderr: `parlor: Can't read the backup "${path}": its header is damaged\n`,
  });
});

async function* noEntries() {}
