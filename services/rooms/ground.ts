/** What every room stands on, open before the first answer: the data folder with its key and database, events, jobs, trash. */
import { ByteBudget } from "../async/byte_budget.ts";
import type { Config } from "../config/config.ts";
import { saveConfigKey } from "../config/config_file.ts";
import { settleKeyCheck } from "../crypto/key_check.ts";
import { uuidV7 } from "../crypto/random.ts";
import { createSealer, type PurposeSealer, type Sealer } from "../crypto/sealer.ts";
import { loadStorageKey } from "../crypto/storage_key.ts";
import { createEventHub, type EventHub } from "../events/event_hub.ts";
import { collectGarbage } from "../async/garbage_collection.ts";
import { createJobRunner, type JobRunner } from "../jobs/job_runner.ts";
import type { Log } from "../log.ts";
import type { CloseHook } from "../async/lazy.ts";
import { Settings } from "../settings/settings.ts";
import { openRememberedFlag, type RememberedFlag } from "../settings/persistent_flag.ts";
import { type Database, openDatabase } from "../storage/database/database.ts";
import { type DataDir, openDataDir } from "../storage/data_dir.ts";
import { openModelsFolder } from "../models/local/open_models_folder.ts";
import { finishIncoming } from "../storage/file_swap.ts";
import { holdsSealedData, refuseLostDatabase } from "../storage/database/lost_database.ts";
import { Trash } from "../storage/trash.ts";
import { Versions } from "../storage/versions.ts";

/** Folders of the data directory, made at every start so that a disk that takes none stops it. */
const FOLDERS = [
  ...["attachments", "personas", "trash", "characters", "cache", "replies", "voices", "imports"],
  ...["workflows", "uploads", "versions"],
] as const;

/** What `{{user}}` is where the owner gave no name. */
const NAMELESS_OWNER = "User";

/** What every room stands on. */
export interface Ground {
  config: Config;
  log: Log;
  now(): number;
  /** Version of the program. */
  version: string;
  dataDir: DataDir;
  folders: Record<typeof FOLDERS[number] | "models", string>;
  databasePath: string;
  storageKey: Uint8Array;
  sealer: Sealer;
  /** Memory of large requests, answers and imports. */
  budget: ByteBudget;
  db: Database;
  events: EventHub;
  jobs: JobRunner;
  trash: Trash;
  /** Earlier versions of cards, personas, attachments, workflows and voices. */
  versions: Versions;
  settings: Settings;
  /** This is the first start on the data directory. */
  isFirstStart: boolean;
  /** When the database was created; absent where it is older than this record of it. */
  createdAtMs: number | undefined;
  ownerName(): string;
  rememberedFlag(key: "setup_completed" | "builtin_app_installed", isSet: boolean): RememberedFlag;
}

/**
 * Opens the ground.
 *
 * @param options.openTrashKind Opens the room that knows what to do with a removed thing of a kind.
 * @throws {AppError} with one sentence for the owner.
 */
export async function openGround(
  options: {
    config: Config;
    log: Log;
    now(): number;
    version: string;
    openTrashKind(kind: string): Promise<unknown>;
  },
  onClose: (hook: CloseHook) => void,
): Promise<Ground> {
  const { config, log, now, version, openTrashKind } = options;
  const dataDir = await openDataDir(config.dataDir);
  onClose(() => dataDir.close());
  await finishIncoming(dataDir.path);
  await refuseLostDatabase(dataDir);
  const storageKey = await loadStorageKey({
    dataDir: dataDir.path,
    storageKeyFile: config.storageKeyFile ?? undefined,
    sealedDataExists: await holdsSealedData(dataDir),
  });
  const sealer = createSealer(storageKey);
  const databasePath = dataDir.file("app.db");
  const db = await openDatabase({ path: databasePath });
  onClose(() => db.close());
  const isFirstStart = db.get("SELECT 1 FROM setting LIMIT 1") === undefined;
  await settleKeyCheck(sealer, db);
  const createdAtMs = await settleCreation(db, sealer.forPurpose("settings"), isFirstStart ? now() : undefined);
  const made = await Promise.all(FOLDERS.map(async (name) => [name, await dataDir.ensureFolder(name)]));
  const models = await openModelsFolder(dataDir, config.modelsDir);

  const events = createEventHub();
  const jobs = createJobRunner({ db, sealer: sealer.forPurpose("jobs"), events, now, newId: uuidV7 });
  onClose(() => jobs.close());
  const settings = new Settings({ db, sealer: sealer.forPurpose("settings"), events });
  const folders: Ground["folders"] = { ...Object.fromEntries(made), models };
  return {
    ...{
      config,
      log,
      now,
      version,
      dataDir,
      databasePath,
      storageKey,
      sealer,
      budget: new ByteBudget({ collectGarbage }),
      db,
      events,
      jobs,
      settings,
      isFirstStart,
      createdAtMs,
    },
    folders,
    versions: new Versions({ folder: folders.versions, log, now }),
    trash: new Trash({ db, sealer: sealer.forPurpose("trash"), events, now, openKind: openTrashKind }),
    ownerName: () => settings.get().settings.display_name || NAMELESS_OWNER,
    rememberedFlag: (key, isSet) =>
      openRememberedFlag({
        ...{ key, isSet, db, sealer: sealer.forPurpose("settings") },
        save: () => saveConfigKey(config, key, true),
      }),
  };
}

/** Remembers when a new database was created, and gives that of an existing one. Restoring a backup brings back its own. */
async function settleCreation(db: Database, sealer: PurposeSealer, nowMs?: number): Promise<number | undefined> {
  const place = { table: "setting", id: "created_at", field: "value", version: 1 };
  if (nowMs !== undefined) {
    await db.write([{
      sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
      params: [place.id, sealer.sealNow(place, JSON.stringify(nowMs))],
    }]);
    return nowMs;
  }
  const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", place.id);
  return row && JSON.parse(new TextDecoder().decode(sealer.openNow(place, row.sealed)));
}
