import { expect, test } from "vitest";
import { loadStorageKey, parseStorageKey, verifyStorageKey } from "../../../services/crypto/storage_key.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { tempFolder, testDatabase } from "../../helpers/files/storage_folder.ts";

const modeOf = async (path: string) => ((await Deno.stat(path)).mode! & 0o777).toString(8);
const namesIn = async (path: string) => (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name);

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(() => undefined, (thrown) => thrown);
  expect(error).toMatchObject({ name: "AppError", code: "internal" });
  return error.message;
}

test(
  "creates a key of 32 random bytes with mode 0600 on the first start and reads it afterwards",
  { tags: ["K05"] },
  async () => {
    await using folder = await tempFolder();
    const key = await loadStorageKey({ dataDir: folder.path, sealedDataExists: false });
    expect(key.byteLength).toBe(32);
    expect(await modeOf(folder.file("storage-key"))).toBe("600");
    expect(await namesIn(folder.path)).toEqual(["storage-key"]);
    for (const sealedDataExists of [false, true]) {
      expect(await loadStorageKey({ dataDir: folder.path, sealedDataExists })).toEqual(key);
    }
    await using other = await tempFolder();
    expect(await loadStorageKey({ dataDir: other.path, sealedDataExists: false })).not.toEqual(key);
  },
);

test("concurrent first starts use the same key", { tags: ["K05"] }, async () => {
  await using folder = await tempFolder();
  const keys = await Promise.all(
    Array.from({ length: 20 }, () => loadStorageKey({ dataDir: folder.path, sealedDataExists: false })),
  );
  expect(new Set(keys.map((key) => key.toHex())).size).toBe(1);
  expect(await namesIn(folder.path)).toEqual(["storage-key"]);
});

test("refuses to start without the key of sealed data and creates no new one", { tags: ["K05"] }, async () => {
  await using folder = await tempFolder();
  const message = await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists: true }));
  expect(message).toContain(`Can't find the storage key "${folder.file("storage-key")}"`);
  expect(await namesIn(folder.path)).toEqual([]);
});

test.each([
  ["empty", 0, /it has 0 bytes/],
  ["short", 31, /it has 31 bytes/],
  ["long", 33, /it has 33 bytes/],
  ["much too long", 100_000, /it has 1024 bytes/],
])("refuses a key file that is %s and leaves it unchanged", { tags: ["K05"] }, async (_, byteLength, reason) => {
  await using folder = await tempFolder();
  const path = folder.file("storage-key");
  const content = new Uint8Array(byteLength).fill(0xfe);
  await Deno.writeFile(path, content, { mode: 0o600 });
  for (const sealedDataExists of [false, true]) {
    expect(await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists }))).toMatch(reason);
  }
  expect(await Deno.readFile(path)).toEqual(content);
});

test("refuses an all-zero key", { tags: ["K05"] }, async () => {
  await using folder = await tempFolder();
  await Deno.writeFile(folder.file("storage-key"), new Uint8Array(32), { mode: 0o600 });
  expect(await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists: true }))).toContain(
    "all bytes are zero",
  );
});

test.skipIf(Deno.build.os === "windows").each([0o644, 0o640, 0o604, 0o660, 0o700, 0o400])(
  "refuses a key file with mode %o in the data directory and keeps the mode",
  { tags: ["K05"] },
  async (mode) => {
    await using folder = await tempFolder();
    const path = folder.file("storage-key");
    await Deno.writeFile(path, randomBytes(32));
    await Deno.chmod(path, mode);
    const message = await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists: true }));
    expect(message).toContain(`its mode is 0${mode.toString(8)} instead of 0600`);
    expect(await modeOf(path)).toBe(mode.toString(8));
  },
);

test("refuses a folder or a link in place of the key file", { tags: ["K05"] }, async () => {
  await using folder = await tempFolder();
  await Deno.mkdir(folder.file("storage-key"));
  expect(await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists: false }))).toContain(
    "isn't a regular file",
  );
  await Deno.remove(folder.file("storage-key"));
  await Deno.writeFile(folder.file("elsewhere"), randomBytes(32), { mode: 0o600 });
  await Deno.symlink(folder.file("elsewhere"), folder.file("storage-key"));
  expect(await refusalOf(loadStorageKey({ dataDir: folder.path, sealedDataExists: false }))).toContain(
    "isn't a regular file",
  );
});

test("reads the key from storage_key_file with any mode and creates nothing in the data directory", {
  tags: ["K05"],
}, async () => {
  await using folder = await tempFolder();
  const key = randomBytes(32);
  const storageKeyFile = folder.file("secret");
  await Deno.mkdir(folder.file("data"));
  for (const content of [key, `${key.toHex()}\n`, key.toHex().toUpperCase(), `${key.toBase64()}\r\n`]) {
    await Deno.writeFile(storageKeyFile, typeof content === "string" ? new TextEncoder().encode(content) : content);
    await Deno.chmod(storageKeyFile, 0o444);
    expect(await loadStorageKey({ dataDir: folder.file("data"), storageKeyFile, sealedDataExists: true })).toEqual(key);
    await Deno.remove(storageKeyFile);
  }
  expect(await namesIn(folder.file("data"))).toEqual([]);
});

test(
  "refuses a missing storage_key_file and never creates it",
  { tags: ["K05"] },
  async () => {
    await using folder = await tempFolder();
    const storageKeyFile = folder.file("secret");
    const message = await refusalOf(loadStorageKey({ dataDir: folder.path, storageKeyFile, sealedDataExists: false }));
    expect(message).toBe(`Can't read the storage key from "${storageKeyFile}": the file doesn't exist`);
    expect(
      await refusalOf(loadStorageKey({ dataDir: folder.path, storageKeyFile: folder.path, sealedDataExists: false })),
    )
      .toContain(`Can't read the storage key from "${folder.path}": `);
    expect(await namesIn(folder.path)).toEqual([]);
  },
);

test("reads raw, hex and base64 keys and refuses anything close to them", () => {
  const key = randomBytes(32);
  const read = (text: string) => parseStorageKey(new TextEncoder().encode(text), "k");
  expect(read(key.toHex())).toEqual(key);
  expect(read(key.toBase64())).toEqual(key);
  expect(read(key.toBase64({ alphabet: "base64url", omitPadding: true }))).toEqual(key);
  const rawThatLooksLikeText = new TextEncoder().encode("0123456789abcdef0123456789abcdef");
  expect(parseStorageKey(rawThatLooksLikeText, "k")).toEqual(rawThatLooksLikeText);
  for (const text of [key.toHex().slice(1), `${key.toHex()}0`, `${key.toBase64()}=`, "x".repeat(64), " ".repeat(40)]) {
    expect(() => read(text)).toThrow(/^Can't use "k" as storage key: it has \d+ bytes/);
  }
  // A file that isn't a key may contain another secret, so it isn't quoted.
  expect(() => read("hunter2-hunter2")).toThrow(
    expect.not.objectContaining({ message: expect.stringContaining("hunter2") }),
  );
});

test("accepts the right key at every start and refuses a wrong one without writing", {
  tags: ["K05"],
}, async () => {
  await using folder = await tempFolder();
  const key = randomBytes(32);
  {
    await using database = await testDatabase(folder.file("app.db"));
    await verifyStorageKey(createSealer(key), database);
  }
  await using database = await testDatabase(folder.file("app.db"));
  await verifyStorageKey(createSealer(key), database);
  const before = database.all("SELECT * FROM setting");
  expect(before).toHaveLength(1);
  expect(await refusalOf(verifyStorageKey(createSealer(randomBytes(32)), database)))
    .toBe("Wrong storage key: the data was encrypted with another key. Restore the matching key file");
  expect(database.all("SELECT * FROM setting")).toEqual(before);
});
