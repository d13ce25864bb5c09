/** Opens what every service needs: the data folder with its key and database, events, jobs, settings and the trash. */
import { ByteBudget, collectGarbage, getMemoryBytes, startCollection } from "../async/byte_budget.ts";
import type { Config } from "../config/config.ts";
import { saveConfigKey } from "../config/config_file.ts";
import { loadStorageKey, settleKeyCheck } from "../crypto/storage_key.ts";
import { uuidV7 } from "../crypto/random.ts";
import { createSealer, type PurposeSealer, type Sealer } from "../crypto/sealer.ts";
import { createEventHub, type EventHub } from "../events/event_hub.ts";
import { createJobRunner, type JobRunner } from "../jobs/job_runner.ts";
import type { Log } from "../log.ts";
import type { LazyScope } from "../async/lazy.ts";
import { openPersistentFlag, type PersistentFlag, Settings } from "../settings/settings.ts";
import { type Database, openDatabase } from "../storage/database/database.ts";
import { type DataDir, holdsSealedData, openDataDir, refuseLostDatabase } from "../storage/data_dir.ts";
import { openModelsFolder } from "../models/local/open_models_folder.ts";
import { finishIncoming } from "../storage/file_swap.ts";
import { Trash } from "../storage/trash.ts";
import { Versions } from "../storage/versions.ts";

/** Folders inside the data folder. Every start creates the missing ones, so a disk that can't be written stops the start. */
const FOLDERS = [
  "attachments",
  "personas",
  "trash",
  "characters",
  "cache",
  "replies",
  "voices",
  "imports",
  "workflows",
  "uploads",
  "versions",
  "documents",
] as const;

/** Value of `{{user}}` when the owner has set no name. */
const DEFAULT_OWNER_NAME = "User";

/** What every service needs. */
export interface Core {
  config: Config;
  log: Log;
  now(): number;
  /** Version of Parlor. */
  version: string;
  dataDir: DataDir;
  folders: Record<typeof FOLDERS[number] | "models", string>;
  databasePath: string;
  storageKey: Uint8Array;
  sealer: Sealer;
  /** Limits the memory that large requests, responses and imports use at the same time. */
  budget: ByteBudget;
  db: Database;
  events: EventHub;
  jobs: JobRunner;
  trash: Trash;
  /** Earlier versions of cards, personas, attachments, workflows and voices. */
  versions: Versions;
  settings: Settings;
  /** True on the first start with this data folder. */
  isFirstStart: boolean;
  /** When the database was created, in ms since 1970; `undefined` for databases older than this record. */
  createdAtMs: number | undefined;
  /** Returns the owner's display name, or "User". */
  getOwnerName(): string;
  openFlag(key: "setup_completed" | "builtin_app_installed", isSet: boolean): PersistentFlag;
}

/** Inputs of `openCore`. */
export interface CoreOptions {
  config: Config;
  log: Log;
  now(): number;
  version: string;
  /** Opens the service that restores and purges one kind of trash items. */
  openTrashKind(kind: string): Promise<unknown>;
}

/**
 * Opens the data folder and everything the services share.
 *
 * @throws {AppError} With a message for the person at the terminal.
 */
export async function openCore(options: CoreOptions, scope: Pick<LazyScope, "onClose">): Promise<Core> {
  const { config, log, now, version, openTrashKind } = options;
  const dataDir = await openDataDir(config.dataDir);
  scope.onClose(() => dataDir.close());
  await finishIncoming(dataDir.path);
  await refuseLostDatabase(dataDir);
  const storageKey = await loadStorageKey({
    dataDir: dataDir.path,
    storageKeyFile: config.storageKeyFile ?? undefined,
    sealedDataExists: await holdsSealedData(dataDir),
  });
  const sealer = createSealer(storageKey);
  const databasePath = dataDir.file("app.db");
  const db = await openDatabase({
    path: databasePath,
    onUpgrade: (upgrade) => log("info", "Upgraded the schema of the database", { ...upgrade }),
  });
  scope.onClose(() => db.close());
  const isFirstStart = db.get("SELECT 1 FROM setting LIMIT 1") === undefined;
  await settleKeyCheck(sealer, db);
  const settingsSealer = sealer.forPurpose("settings");
  const createdAtMs = isFirstStart
    ? await saveCreationTime(db, settingsSealer, now())
    : loadCreationTime(db, settingsSealer);
  const ownFolders = await Promise.all(FOLDERS.map(async (name) => [name, await dataDir.ensureFolder(name)]));
  const folders: Core["folders"] = {
    ...Object.fromEntries(ownFolders),
    models: await openModelsFolder(dataDir, config.modelsDir),
  };

  const events = createEventHub(log);
  const jobs = createJobRunner({ db, sealer: sealer.forPurpose("jobs"), events, log, now, newId: uuidV7 });
  scope.onClose(() => jobs.close());
  const settings = new Settings({ db, sealer: settingsSealer, events });
  return {
    config,
    log,
    now,
    version,
    dataDir,
    folders,
    databasePath,
    storageKey,
    sealer,
    budget: new ByteBudget({ collectGarbage, startCollection, memoryBytes: getMemoryBytes }),
    db,
    events,
    jobs,
    trash: new Trash({ db, sealer: sealer.forPurpose("trash"), events, now, openKind: openTrashKind }),
    versions: new Versions({ folder: folders.versions, log, now }),
    settings,
    isFirstStart,
    createdAtMs,
    getOwnerName: () => settings.get().settings.display_name || DEFAULT_OWNER_NAME,
    openFlag: (key, isSet) =>
      openPersistentFlag({ key, isSet, db, sealer: settingsSealer, save: () => saveConfigKey(config, key, true) }),
  };
}

/** Where the creation time of the database is stored. Restoring a backup brings back that of its database. */
const CREATED_AT = { table: "setting", id: "created_at", field: "value", version: 1 };

async function saveCreationTime(db: Database, sealer: PurposeSealer, nowMs: number): Promise<number> {
  await db.write([{
    sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
    params: [CREATED_AT.id, sealer.sealNow(CREATED_AT, JSON.stringify(nowMs))],
  }]);
  return nowMs;
}

function loadCreationTime(db: Database, sealer: PurposeSealer): number | undefined {
  const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", CREATED_AT.id);
  return row && JSON.parse(new TextDecoder().decode(sealer.openNow(CREATED_AT, row.sealed)));
}
