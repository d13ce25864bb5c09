/** `parlor backup FILE` and `parlor restore FILE`. */
import { findStorageKey } from "../crypto/storage_key.ts";
import { AppError } from "../errors.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { contentsText } from "../backup/data_files.ts";
import { makeBackup } from "../backup/backup.ts";
import { restoreBackup } from "../backup/restore.ts";
import { type DataOutside, readPassphrase, takeOptions } from "./cli_environment.ts";

/** Text of `parlor backup --help` and `parlor restore --help`. */
export const BACKUP_HELP =
  `Usage: parlor backup FILE [--passphrase-file FILE] [--storage-key-only] [--replace] [options of parlor serve]
       parlor restore FILE [--passphrase-file FILE] [--replace] [options of parlor serve]

  backup   writes everything except models, caches and the tailnet node to one encrypted file, even while the server runs,
           and verifies it; --storage-key-only encrypts it with the storage key instead of a passphrase, without including the key
  restore  restores a backup into the data folder while the server is stopped; --replace moves existing data aside

The passphrase is the first line of the file named by --passphrase-file, PARLOR_BACKUP_PASSPHRASE, or typed.`;

/** Creates a backup. The file isn't overwritten without `--replace`. @throws {AppError} with a message for the terminal. */
export async function runBackup(args: readonly string[], outside: DataOutside): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "storage-key-only": false, "replace": false },
    { wordCount: 1, usage: "parlor backup FILE; parlor backup --help says more" },
  );
  const { dataDir, storageKeyFile } = outside.place(rest);
  if (!options.has("replace") && await fileExists(path)) {
    throw new AppError("conflict", `Can't write "${path}": the file already exists. Use --replace to overwrite it`);
  }
  if (!await fileExists(`${dataDir}/app.db`)) {
    throw new AppError(
      "not_found",
      `Can't back up "${dataDir}": it contains no Parlor data. Use --data-dir for another folder`,
    );
  }
  const storageKey = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  if (storageKey === undefined) {
    throw new AppError("not_found", `Can't back up "${dataDir}": its storage key is missing`);
  }
  const passphrase = options.has("storage-key-only") ? undefined : await readPassphrase({
    file: options.get("passphrase-file"),
    environment: outside.environment,
    isNew: true,
  });
  const { version } = outside;
  const report = await makeBackup({ dataDir, storageKey, path, passphrase, version, nowMs: Date.now() });
  const key = passphrase === undefined
    ? "It's encrypted with this data folder's storage key, which it doesn't contain: store the key somewhere else, too."
    : "It's encrypted with your passphrase: store the passphrase somewhere else.";
  outside.print(
    `Backed up ${contentsText(report.contents)} (${report.files} files, ${report.sizeBytes} bytes) to "${path}" and ` +
      `verified the backup. ${key}`,
  );
}

/** Restores a backup. @throws {AppError} with a message for the terminal; the data folder is as it was then. */
export async function runRestore(args: readonly string[], outside: DataOutside): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "replace": false },
    { wordCount: 1, usage: "parlor restore FILE; parlor restore --help says more" },
  );
  const { dataDir, storageKeyFile } = outside.place(rest);
  const file = options.get("passphrase-file");
  const { head, files, contents, keptIn, isKeyRestored } = await restoreBackup({
    path,
    dataDir,
    replace: options.has("replace"),
    now: Date.now,
    storageKeyFile: storageKeyFile ?? undefined,
    passphrase: () => readPassphrase({ file, environment: outside.environment, isNew: false }),
  });
  outside.print(
    `Restored ${
      contentsText(contents)
    } (${files} files) from ${head.created_at} (Parlor ${head.version}) into "${dataDir}"`,
  );
  if (isKeyRestored) outside.print("The storage key was restored, too: it's in the file storage-key.");
  if (keptIn !== undefined) outside.print(`The previous data is in "${keptIn}". Delete it when everything works.`);
}
