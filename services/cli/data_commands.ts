/** Commands that work on the data folder: `parlor backup`, `restore`, `key` and `import`. */
import { CONFIG_KEYS } from "../config/config_keys.ts";
import { findStorageKey } from "../crypto/storage_key.ts";
import { AppError } from "../errors.ts";
import { pathExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { formatContents, makeBackup } from "../backup/backup.ts";
import { formatPaths } from "../integrity/damage.ts";
import type { Healing } from "../integrity/healer.ts";
import { restoreBackup } from "../backup/restore.ts";
import { type DataCommandContext, readPassphrase, takeOptions } from "./cli_environment.ts";
import { createKeyExport, importKey, readExportedKey, rotateKey } from "../backup/key_management.ts";
import { IMPORT_KINDS, type ImportKind } from "../import_export/import_item.ts";
import type { ImportReport } from "../import_export/import_report.ts";
import type { ImportRequest } from "../import_export/imports.ts";

/** Text of `parlor backup --help` and `parlor restore --help`. */
export const BACKUP_HELP =
  `Usage: parlor backup FILE [--passphrase-file FILE] [--storage-key-only] [--replace] [options of parlor serve]
       parlor restore FILE [--passphrase-file FILE] [--replace] [--accept KEY,…] [options of parlor serve]
       parlor restore --item PATH [--accept-older] [options of parlor serve]

  backup   writes everything except models, caches and the tailnet node to one encrypted file, even while the server runs,
           and verifies it; --storage-key-only encrypts it with the storage key instead of a passphrase, without including the key
  restore  restores a backup into the data folder while the server is stopped; --replace moves existing data aside. Keys of
           its config.toml that change what runs, where the server listens or who may enter are named and left out, except
           those of --accept and those that you confirm in the terminal
  --item   restores one thing that parlor doctor --deep names, such as conversations/ID, from its earlier versions or from the
           newest backup in backup_dir that has it whole, while the server is stopped; --accept-older takes an older state of a chat

The passphrase is read from the first line of --passphrase-file, from PARLOR_BACKUP_PASSPHRASE, or from the terminal.`;

/** Creates a backup. The file isn't overwritten without `--replace`. @throws {AppError} with a message for the terminal. */
export async function runBackup(args: readonly string[], context: DataCommandContext): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "storage-key-only": false, "replace": false },
    { wordCount: 1, usage: "parlor backup FILE. See parlor backup --help" },
  );
  const { dataDir, storageKeyFile } = context.readConfig(rest);
  if (!options.has("replace") && await pathExists(path)) {
    throw new AppError("conflict", `Can't write "${path}": the file already exists. Use --replace to overwrite it`);
  }
  if (!await pathExists(`${dataDir}/app.db`)) {
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
    environment: context.environment,
    isNew: true,
  });
  const { version } = context;
  const report = await makeBackup({ dataDir, storageKey, path, passphrase, version, nowMs: Date.now() });
  const key = passphrase === undefined
    ? "It's encrypted with this data folder's storage key, which it doesn't contain: store the key somewhere else, too."
    : "It's encrypted with your passphrase: store the passphrase somewhere else.";
  context.print(
    `Backed up ${
      formatContents(report.contents)
    } (${report.files} files, ${report.sizeBytes} bytes) to "${path}" and ` +
      `${report.unreadable.length === 0 ? "verified the backup" : "compared the backup with the data"}. ${key}`,
  );
  if (report.unreadable.length > 0) {
    context.print(
      `${report.unreadable.length} of the stored things can't be read, so the backup has no good copy of them: ` +
        `${formatPaths(report.unreadable)}. Keep your earlier backups, and restore them from there (Settings > Data)`,
    );
  }
}

/** Restores a backup. @throws {AppError} with a message for the terminal; the data folder is as it was then. */
export async function runRestore(args: readonly string[], context: DataCommandContext): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "replace": false, "accept": true },
    { wordCount: 1, usage: "parlor restore FILE. See parlor restore --help" },
  );
  const { dataDir, storageKeyFile } = context.readConfig(rest);
  const file = options.get("passphrase-file");
  const accepted = options.get("accept")?.split(",").map((key) => key.trim()) ?? [];
  const unknown = accepted.find((key) => !Object.hasOwn(CONFIG_KEYS, key));
  if (unknown !== undefined) {
    throw new AppError("invalid_request", `Bad value for --accept: "${unknown}" isn't a key of config.toml`);
  }
  const { head, files, contents, previousFilesFolder, isKeyRestored, settings } = await restoreBackup({
    path,
    dataDir,
    replace: options.has("replace"),
    now: Date.now,
    storageKeyFile: storageKeyFile ?? undefined,
    getPassphrase: () => readPassphrase({ file, environment: context.environment, isNew: false }),
    acceptSetting: ({ key, line }) =>
      accepted.includes(key) ||
      (Deno.stdin.isTerminal() && confirm(`The backup's config.toml sets ${line}. Keep this setting?`)),
  });
  context.print(
    `Restored ${
      formatContents(contents)
    } (${files} files) from ${head.created_at} (Parlor ${head.version}) into "${dataDir}"`,
  );
  for (const { line, isAccepted } of settings) {
    context.print(`${isAccepted ? "Kept in" : "Left out of"} config.toml: ${line}`);
  }
  if (settings.some(({ isAccepted }) => !isAccepted)) {
    context.print(
      "These settings change what runs on this machine, where the server listens or who may enter. They're comments in " +
        "config.toml: to use one, remove the # in front of it.",
    );
  }
  if (isKeyRestored) context.print("The storage key was restored, too: it's in the file storage-key.");
  if (previousFilesFolder !== undefined) {
    context.print(`The previous data is in "${previousFilesFolder}". Delete it when everything works.`);
  }
}

/** What `parlor restore --item` has of the world around it. */
export interface RestoreItemContext {
  /** Restores an item in the data folder of the configuration. @throws {AppError} */
  heal(rest: string[], path: string, options: { acceptsOlder: boolean }): Promise<Healing>;
  print(text: string): void;
}

/** Restores one thing that can't be read. @throws {AppError} with a message for the terminal. */
export async function runRestoreItem(args: readonly string[], context: RestoreItemContext): Promise<void> {
  const { options, rest } = takeOptions(
    args,
    { "item": true, "accept-older": false },
    { wordCount: 0, usage: "parlor restore --item PATH. See parlor restore --help" },
  );
  const path = options.get("item") ?? "";
  const { from, madeAt } = await context.heal(rest, path, { acceptsOlder: options.has("accept-older") });
  const source = { version: "its version of ", backup: "the backup of ", manifest: "its stored sum, " }[from] + madeAt;
  context.print(`Restored "${path}" from ${source}`);
}

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
export async function runKey([command, ...args]: readonly string[], context: DataCommandContext): Promise<void> {
  if (command === undefined) {
    throw new AppError("invalid_request", "Usage: parlor key export | import | rotate. See parlor key --help");
  }
  const run = COMMANDS.get(command);
  if (run === undefined) {
    throw new AppError("invalid_request", `Unknown command "key ${command}". See parlor key --help`);
  }
  await run(args, context);
}

async function exportKey(args: readonly string[], context: DataCommandContext): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true, "plain": false },
    { wordCount: 1, usage: "parlor key export FILE" },
  );
  const { dataDir, storageKeyFile } = context.readConfig(rest);
  const key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined });
  if (key === undefined) throw new AppError("not_found", `No storage key in "${dataDir}" yet`);
  if (await pathExists(path)) throw new AppError("conflict", `Can't write "${path}": the file already exists`);
  const passphrase = options.has("plain")
    ? undefined
    : await readPassphrase({ file: options.get("passphrase-file"), environment: context.environment, isNew: true });
  await writeFileAtomic(path, await createKeyExport({ key, passphrase, nowMs: Date.now() }));
  context.print(
    `Exported the storage key to "${path}". Store it somewhere else: without the key, the data can't be read.`,
  );
}

async function importKeyFile(args: readonly string[], context: DataCommandContext): Promise<void> {
  const { words: [path = ""], options, rest } = takeOptions(
    args,
    { "passphrase-file": true },
    { wordCount: 1, usage: "parlor key import FILE" },
  );
  const { dataDir, storageKeyFile } = context.readConfig(rest);
  if (storageKeyFile !== null) {
    throw new AppError(
      "conflict",
      `Can't import the key: storage_key_file is set to "${storageKeyFile}", which Parlor doesn't write`,
    );
  }
  const file = options.get("passphrase-file");
  const key = await readExportedKey(
    path,
    () => readPassphrase({ file, environment: context.environment, isNew: false }),
  );
  const isNew = await importKey(dataDir, key);
  context.print(isNew ? `Imported the storage key into "${dataDir}".` : `This storage key is already in "${dataDir}".`);
}

async function rotate(args: readonly string[], context: DataCommandContext): Promise<void> {
  const { options, rest } = takeOptions(
    args,
    { "new-key-file": true, "keep-unreadable": false },
    { wordCount: 0, usage: "parlor key rotate" },
  );
  const { dataDir, storageKeyFile } = context.readConfig(rest);
  const newKeyFile = options.get("new-key-file");
  const { resealed, unreadable } = await rotateKey({
    dataDir,
    newKeyFile,
    keepUnreadable: options.has("keep-unreadable"),
    storageKeyFile: storageKeyFile ?? undefined,
  });
  context.print(`Encrypted ${resealed} values with a new key.`);
  if (unreadable > 0) context.print(`${unreadable} couldn't be decrypted and are lost.`);
  if (newKeyFile !== undefined) {
    context.print(`Before the next start, replace "${storageKeyFile}" with "${newKeyFile}".`);
  }
  context.print("Existing backups and exported keys use the old key: create new ones.");
}

/** Description of each kind, in the order of the help text. */
const KINDS: Record<ImportKind, string> = {
  sillytavern: "a SillyTavern user's data folder",
  tavern: "Tavern chats (JSONL)",
  risuai: "a local RisuAI backup or data folder, or cards, chats, personas and lorebooks from RisuAI",
  agnai: "an Agnai server's data folder, or characters, chats and memory books from Agnai",
  chatgpt: "a ChatGPT data export",
  claude: "a Claude data export",
  openwebui: "an Open WebUI chat export",
  librechat: "LibreChat conversations (JSON)",
  lobechat: "a LobeChat export",
  chatbox: "a Chatbox data export",
  lmstudio: "LM Studio conversations (JSON)",
  jan: "Jan's threads folder",
  llamacpp: "conversations exported by llama.cpp's page",
  cherrystudio: "a Cherry Studio backup",
  koboldcpp: "a KoboldCpp Lite save",
  textgen: "chat logs of text-generation-webui",
  characterai: "a dump of Character.AI chats",
  backyard: "an archive of Backyard AI (.byaf)",
  parlor: "an export from another Parlor server",
};

/** Text of `parlor import --help`. */
export const IMPORT_HELP = `Usage: parlor import KIND PATH [--dry-run] [options of parlor serve]

Imports data from another program and reports what was imported. PATH is a folder, a ZIP file or another file.
The server must be stopped. While it runs, import in the browser in Settings > Data.

  KIND       what PATH is:
${listKinds()}
  --dry-run  reads and compares everything without changing anything

Importing the same data again doesn't create duplicates.`;

/** What the command has of the world around it. */
export interface ImportCommandContext {
  /** Opens the data folder for one import. @throws {AppError} `conflict` while a server has it. */
  importPath(
    rest: string[],
    request: ImportRequest & { path: string; showProgress(done: number, total: number): void },
  ): Promise<ImportReport>;
  print(text: string): void;
  /** Prints the progress on one line that is overwritten; nothing without a terminal. */
  showProgress(text: string): void;
}

/** @returns 1 when something was refused, else 0. @throws {AppError} with a message for the terminal */
export async function runImport(args: readonly string[], context: ImportCommandContext): Promise<number> {
  const { words: [kind = "", path = ""], options, rest } = takeOptions(args, { "dry-run": false }, {
    wordCount: 2,
    usage: "parlor import KIND PATH. See parlor import --help",
  });
  if (!isKind(kind)) {
    throw new AppError("invalid_request", `Can't import "${kind}": the kinds are ${IMPORT_KINDS.join(", ")}`);
  }
  const isDryRun = options.has("dry-run");
  const report = await context.importPath(rest, {
    kind,
    path,
    isDryRun,
    showProgress: (done, total) => context.showProgress(`${done} of ${total} files`),
  });
  context.showProgress("");
  for (const line of reportLines(report)) context.print(line);
  return report.lines.some(({ level }) => level === "refused") ? 1 : 0;
}

function* reportLines({ counts, messages, lines, lines_dropped, dry_run }: ImportReport): Generator<string> {
  yield dry_run ? "Dry run: nothing was changed. An import would add:" : "Imported:";
  for (const [thing, { added, updated, present, refused }] of Object.entries(counts)) {
    if (added + updated + present + refused === 0) continue;
    const more = [[updated, "updated"], [present, "already in Parlor"], [refused, "refused"]] as const;
    const details = more.filter(([count]) => count > 0).map(([count, word]) => `, ${count} ${word}`);
    yield `  ${thing.padEnd(14)}${added} new${details.join("")}`;
  }
  yield `  ${"messages".padEnd(14)}${messages}`;
  for (const { level, source, reason, count } of lines) {
    yield `${level.replace("_", " ").padEnd(10)}${source}${count === undefined ? "" : ` (${count})`}: ${reason}`;
  }
  if (lines_dropped > 0) yield `and ${lines_dropped} more lines`;
}

function listKinds(): string {
  return IMPORT_KINDS.map((kind) => `               ${kind.padEnd(13)}${KINDS[kind]}`).join("\n");
}

function isKind(kind: string): kind is ImportKind {
  return (IMPORT_KINDS as readonly string[]).includes(kind);
}
