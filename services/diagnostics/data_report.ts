/** The owner's view of the installation: disk usage, backups and problems. */
import type { DatabaseMark } from "../storage/database_mark.ts";
import { join } from "node:path";
import type { BackupFile, Backups } from "../backup/backups.ts";
import { type BackupSettings, isSameDisk } from "../backup/backup_settings.ts";
import { AppError } from "../errors.ts";
import { toFileError } from "../storage/atomic_file.ts";
import type { FindingsRequest, FindingsResponse } from "./diagnostics_worker.ts";
import type { DoctorConfig } from "./doctor.ts";
import { toPlainConfig } from "./running_server.ts";
import { createProblem, type Finding } from "./finding.ts";
import { IMPORT_SOURCES_FOLDER } from "../storage/data_dir.ts";
import { countFreeFiles } from "../process/open_files.ts";
import { openWorker } from "../process/worker.ts";

/** Disk usage and backups. */
export interface DataReport {
  used: SpaceUsed;
  /** Where backups go and how often, and what of it a flag or the environment sets. */
  backupSettings: BackupSettings & { fixed: readonly (keyof BackupSettings)[] };
  /** The backup folder is on the disk of the data; `undefined` if that isn't known. */
  isSameDisk: boolean | undefined;
  /** Newest first. */
  backups: BackupFile[];
}

/** How much to read for the page, which waits for the result; `parlor doctor` reads everything. */
const MAX_READ_BYTES = 256 * 1024 * 1024;

/** Fewer files and connections are soon used up by a few browsers, downloads and tool servers. */
const FEW_FILES = 256;
/** Files that the checks need. */
const CHECK_FILES = 24;

/** Reports on the data and the installation. */
export class Diagnostics {
  readonly #config: DoctorConfig;
  readonly #backups: Pick<Backups, "list" | "getSettings">;
  readonly #databaseMark: Pick<DatabaseMark, "save" | "isGone">;
  readonly #backupPassphrase: string | undefined;
  #running: Promise<Finding[]> | undefined;

  /** @param backupPassphrase Encrypts the daily backups, if set. */
  constructor(
    config: DoctorConfig,
    backups: Pick<Backups, "list" | "getSettings">,
    databaseMark: Pick<DatabaseMark, "save" | "isGone">,
    backupPassphrase: string | undefined,
  ) {
    this.#config = config;
    this.#backupPassphrase = backupPassphrase;
    this.#backups = backups;
    this.#databaseMark = databaseMark;
  }

  /** Measures the data and lists the backups. @throws {AppError} if a folder can't be read. */
  async measureData(): Promise<DataReport> {
    const { dataDir, modelsDir } = this.#config;
    const backupSettings = this.#backups.getSettings();
    const { folder } = backupSettings;
    const [used, backups, onSameDisk] = await Promise.all([
      measureSpace(dataDir, modelsDir),
      this.#backups.list(),
      folder === null ? undefined : isSameDisk(folder, dataDir),
    ]);
    return { used, backupSettings, isSameDisk: onSameDisk, backups };
  }

  /** Checks the installation like `parlor doctor`. Concurrent calls share one check. @throws {AppError} `internal` */
  listFindings(): Promise<Finding[]> {
    return this.#running ??= this.#runChecks().finally(() => this.#running = undefined);
  }

  async #runChecks(): Promise<Finding[]> {
    const freeFiles = countFreeFiles(FEW_FILES);
    const tight: Finding[] = freeFiles === FEW_FILES ? [] : [createProblem("few_open_files", { count: freeFiles })];
    // Without files for its Worker, nothing can be checked, and that's what has to be known.
    if (freeFiles < CHECK_FILES) return tight;
    await this.#databaseMark.save();
    // The rest would describe a new, empty folder.
    if (this.#databaseMark.isGone) return [...tight, createProblem("database_lost")];
    return [...tight, ...await this.#checkInWorker()];
  }

  async #checkInWorker(): Promise<Finding[]> {
    const { folder: backupDir, schedule: backupSchedule } = this.#backups.getSettings();
    // The whole configuration can't be cloned.
    const config = { ...toPlainConfig(this.#config), backupDir, backupSchedule };
    const worker = openWorker(new URL("./diagnostics_worker.ts", import.meta.url));
    const { promise, resolve, reject } = Promise.withResolvers<FindingsResponse>();
    worker.onmessage = ({ data }: MessageEvent<FindingsResponse>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault(); // an unhandled error event would end the process
      reject(new AppError("internal", `Can't check the installation: ${event.message}`));
    };
    try {
      worker.postMessage(
        { config, backupPassphrase: this.#backupPassphrase, maxBytes: MAX_READ_BYTES } satisfies FindingsRequest,
      );
      const answer = await promise;
      if ("findings" in answer) return answer.findings;
      throw new AppError("internal", `Can't check the installation: ${answer.failure}`);
    } finally {
      worker.terminate();
    }
  }
}

/** Category. */
type SpaceUse = "chats" | "characters" | "attachments" | "documents" | "models" | "voices" | "imports" | "rest";

/** Sizes in bytes, largest first; empty categories are omitted. */
type SpaceUsed = { what: SpaceUse; sizeBytes: number }[];

/** Category of each folder; the database and its log count as chats. */
const FOLDERS: Readonly<Record<string, SpaceUse>> = {
  characters: "characters",
  attachments: "attachments",
  documents: "documents",
  models: "models",
  voices: "voices",
  [IMPORT_SOURCES_FOLDER]: "imports",
};

/**
 * Measures a data folder without following links, except to the models.
 *
 * @param modelsDir Models folder, if it is outside the data folder.
 * @throws {AppError} if the data folder can't be listed.
 */
export async function measureSpace(dataDir: string, modelsDir: string | null): Promise<SpaceUsed> {
  const sizes = new Map<SpaceUse, number>();
  const names = await Array.fromAsync(Deno.readDir(dataDir), ({ name }) => name).catch((cause) => {
    throw toFileError(`Can't list "${dataDir}"`, cause);
  });
  const models = await Deno.realPath(modelsDir ?? join(dataDir, "models")).catch(() => undefined);
  if (models !== undefined) sizes.set("models", await measurePath(models));
  for (const name of names) {
    if (name === "models" && modelsDir === null) continue;
    const use = name.startsWith("app.db") ? "chats" : FOLDERS[name] ?? "rest";
    sizes.set(use, (sizes.get(use) ?? 0) + await measurePath(join(dataDir, name)));
  }
  return [...sizes].filter(([, sizeBytes]) => sizeBytes > 0).map(([what, sizeBytes]) => ({ what, sizeBytes }))
    .sort((a, b) => b.sizeBytes - a.sizeBytes);
}

/** Files that disappear while measuring count as empty. */
async function measurePath(path: string): Promise<number> {
  const info = await Deno.lstat(path).catch(() => undefined);
  if (info === undefined) return 0;
  if (!info.isDirectory) return info.size;
  const names = await Array.fromAsync(Deno.readDir(path), ({ name }) => name).catch(() => []);
  let sizeBytes = 0;
  for (const name of names) sizeBytes += await measurePath(join(path, name));
  return sizeBytes;
}
