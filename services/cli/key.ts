/** `parlor key export|import|rotate`. */
import { findStorageKey } from "../crypto/storage_key.ts";
import { AppError } from "../errors.ts";
import { fileExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { exportedKey, importKey, readExportedKey } from "../backup/key_export.ts";
import { rotateKey } from "../backup/key_rotation.ts";
import { type DataOutside, readPassphrase, takeOptions } from "./cli_environment.ts";

/** Text of `parlor key --help`. */
export const KEY_HELP = `Usage: parlor key export FILE [--passphrase-file FILE] [--plain] [options of parlor serve]
       parlor key import FILE [--passphrase-file FILE] [options of parlor serve]
       parlor key rotate [--new-key-file FILE] [--keep-unreadable] [options of parlor serve]

  export  writes the storage key to a file, encrypted with a passphrase; --plain writes it unencrypted, for storage_key_file
  import  puts an exported key into a data folder whose key was lost, while the server is stopped
  rotate  creates a new key and encrypts all data with it, while the server is stopped; needs as much free space as the
          data. If storage_key_file is set, writes the new key to --new-key-file; then replace the old file yourself`;

const COMMANDS = new Map([["export", exportKey], ["import", importKeyFile], ["rotate", rotate]]);

/** Runs one of them. @throws {AppError} with a message for the terminal. */
export async function runKey([command, ...args]: readonly string[], outside: DataOutside): Promise<void> {
  if (command === undefined) {
    throw new AppError("invalid_request", "Usage: parlor key export | import | rotate. See parlor key --help");
  }
  const run = COMMANDS.get(command);
  if (run === undefined) {
    throw new AppError("invalid_request", `Unknown command "key ${command}". See parlor key --help`);
  }
  await run(args, outside);
}

async function exportKey(args: readonly string[], outside: DataOutside): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "plain": false },
    { wordCount: 1, usage: "parlor key export FILE" },
  );
  const { dataDir, storageKeyFile } = outside.place(rest);
  const key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  if (key === undefined) throw new AppError("not_found", `No storage key in "${dataDir}" yet`);
  if (await fileExists(path)) throw new AppError("conflict", `Can't write "${path}": the file already exists`);
  const passphrase = options.has("plain")
    ? undefined
    : await readPassphrase({ file: options.get("passphrase-file"), environment: outside.environment, isNew: true });
  await writeFileAtomic(path, await exportedKey({ key, passphrase, nowMs: Date.now() }));
  outside.print(
    `Exported the storage key to "${path}". Store it somewhere else: without the key, the data can't be read.`,
  );
}

async function importKeyFile(args: readonly string[], outside: DataOutside): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true },
    { wordCount: 1, usage: "parlor key import FILE" },
  );
  const { dataDir, storageKeyFile } = outside.place(rest);
  if (storageKeyFile !== null) {
    throw new AppError(
      "conflict",
      `Can't import the key: storage_key_file is set to "${storageKeyFile}", which Parlor doesn't write`,
    );
  }
  const file = options.get("passphrase-file");
  const key = await readExportedKey(
    path,
    () => readPassphrase({ file, environment: outside.environment, isNew: false }),
  );
  const isNew = await importKey(dataDir, key);
  outside.print(isNew ? `Imported the storage key into "${dataDir}".` : `This storage key is already in "${dataDir}".`);
}

async function rotate(args: readonly string[], outside: DataOutside): Promise<void> {
  const { options, rest } = takeOptions(
    args,
    { "new-key-file": true, "keep-unreadable": false },
    { wordCount: 0, usage: "parlor key rotate" },
  );
  const { dataDir, storageKeyFile } = outside.place(rest);
  const newKeyFile = options.get("new-key-file");
  const { resealed, unreadable } = await rotateKey({
    dataDir,
    newKeyFile,
    keepUnreadable: options.has("keep-unreadable"),
    storageKeyFile: storageKeyFile ?? undefined,
  });
  outside.print(`Encrypted ${resealed} values with a new key.`);
  if (unreadable > 0) outside.print(`${unreadable} couldn't be decrypted and are lost.`);
  if (newKeyFile !== undefined) {
    outside.print(`Before the next start, replace "${storageKeyFile}" with "${newKeyFile}".`);
  }
  outside.print("Existing backups and exported keys use the old key: create new ones.");
}
