/**
 * Opens what every service needs (the data folder with its key and database, events, jobs, settings and the trash), and
 * runs the cleanup tasks of all services one after another, soon after the start and then at intervals.
 */
import { ByteBudget, collectGarbage, getBudgetSizes, getMemoryBytes, startCollection } from "../async/byte_budget.ts";
import { type Config, saveConfigKey } from "../config/config.ts";
import { loadStorageKey, verifyStorageKey } from "../crypto/storage_key.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { createSealer, type PurposeSealer, type Sealer } from "../crypto/sealer.ts";
import { createEventHub, type EventHub } from "../events/event_hub.ts";
import { createJobRunner, type JobRunner } from "../jobs/job_runner.ts";
import { OwnListeners } from "../http/own_listeners.ts";
import type { Log } from "../log.ts";
import type { Lazy, LazyScope } from "../async/lazy.ts";
import { Sandbox } from "../platform/sandbox/sandbox.ts";
import { openPersistentFlag, type PersistentFlag, Settings } from "../settings/settings.ts";
import { type Database, openDatabase } from "../storage/database/database.ts";
import {
  createDatabaseError,
  DATABASE_ID_FILE_NAME,
  type DataDir,
  hasSealedData,
  IMPORT_SOURCES_FOLDER,
  openDataDir,
  readDatabaseId,
  refuseLostDatabase,
  removeUnfinishedWrites,
  writeDatabaseId,
} from "../storage/data_dir.ts";
import { openModelsFolder } from "../models/local/open_models_folder.ts";
import { finishIncoming } from "../storage/file_swap.ts";
import { IdempotentResults } from "../storage/idempotency.ts";
import { DatabaseMark, hasLog } from "../storage/database_mark.ts";
import { RetentionClock } from "../storage/retention_clock.ts";
import { Trash } from "../storage/trash.ts";
import { Versions } from "../storage/versions.ts";
import { Mutex } from "../async/locks.ts";
import { findOverdueRevisions } from "../conversations/revisions/change_log.ts";
import { getErrorMessage } from "../errors.ts";
import { planManifest } from "../integrity/manifest.ts";
import { DamageReports } from "../integrity/reported_damage.ts";

/**
 * Folders inside the data folder. Every start creates the missing ones, so that the server doesn't start if the disk
 * isn't writable.
 */
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
  IMPORT_SOURCES_FOLDER,
] as const;

/** Value of `{{user}}` if the owner hasn't set a name. */
const DEFAULT_OWNER_NAME = "User";

/** The parts that every service needs. */
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
  /** What couldn't be opened. */
  damageReports: DamageReports;
  /** Limits the memory that large requests, responses and imports use at the same time. */
  budget: ByteBudget;
  db: Database;
  events: EventHub;
  jobs: JobRunner;
  /** How far the database was at the last run. */
  databaseMark: DatabaseMark;
  /** What Parlor listens on. No outbound request may lead there. */
  ownListeners: OwnListeners;
  /** Reads foreign files and matches foreign patterns. */
  sandbox: Sandbox;
  /** By which trash, earlier versions and the like expire. */
  retention: RetentionClock;
  /** What requests with an `Idempotency-Key` made. */
  idempotency: IdempotentResults;
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
interface CoreOptions {
  config: Config;
  log: Log;
  now(): number;
  version: string;
  /** Opens the service that restores and purges trash items of a kind. */
  openTrashKind(kind: string): Promise<unknown>;
}

/**
 * Opens the data folder and everything the services share.
 *
 * @throws {AppError} Its message is for the terminal.
 */
export async function openCore(options: CoreOptions, scope: Pick<LazyScope, "onClose">): Promise<Core> {
  const { config, log, now, version, openTrashKind } = options;
  const dataDir = await openDataDir(config.dataDir);
  scope.onClose(() => dataDir.close());
  if (dataDir.sharedFolder !== undefined) {
    log(
      "warn",
      "The data folder belongs to another user, so others may be able to delete files in it, but not read them",
      {
        path: dataDir.path,
        ...dataDir.sharedFolder,
        uid: Deno.uid(),
      },
    );
  }
  await finishIncoming(dataDir.path);
  await refuseLostDatabase(dataDir);
  const storageKey = await loadStorageKey({
    dataDir: dataDir.path,
    storageKeyFile: config.storageKeyFile ?? undefined,
    sealedDataExists: await hasSealedData(dataDir),
  });
  const damageReports = new DamageReports();
  const sealer = createSealer(storageKey, (aad) => damageReports.reportSealed(aad));
  const databasePath = dataDir.file("app.db");
  const hadLog = await hasLog(databasePath);
  const opened = Promise.withResolvers<DatabaseMark>();
  const db = await openDatabase({
    path: databasePath,
    planManifest: (database) => planManifest(database, sealer),
    onManifestRemade: () => void opened.promise.then((mark) => mark.reportRemadeManifest()),
    onUpgrade: (upgrade) => log("info", "Upgraded the schema of the database", { ...upgrade }),
  });
  scope.onClose(() => db.close());
  const isFirstStart = isNewDatabase(db, dataDir);
  const settingsSealer = sealer.forPurpose("settings");
  const fileId = await readDatabaseId(dataDir);
  // Only the ID says that a database with all tables and nothing in them isn't new.
  if (isFirstStart && fileId !== undefined) throw createDatabaseError(dataDir, "has lost its content");
  await verifyStorageKey(sealer, db);
  const databaseId = await settleDatabaseId(dataDir, db, settingsSealer, fileId);
  const createdAtMs = isFirstStart
    ? await saveCreationTime(db, settingsSealer, now())
    : loadCreationTime(db, settingsSealer);
  const ownFolders = await Promise.all(FOLDERS.map(async (name) => [name, await dataDir.ensureFolder(name)]));
  const folders: Core["folders"] = {
    ...Object.fromEntries(ownFolders),
    models: await openModelsFolder(dataDir, config.modelsDir),
  };

  const written = [
    folders.characters,
    folders.personas,
    folders.workflows,
    folders.voices,
    folders.trash,
    folders[IMPORT_SOURCES_FOLDER],
  ];
  const leftovers = await removeUnfinishedWrites(dataDir, written);
  if (leftovers.length > 0) {
    log("info", "Removed temporary files of an earlier process", { names: leftovers.join(", ") });
  }

  const markDeps = { path: databasePath, db, databaseId, sealer: settingsSealer, log, now };
  const databaseMark = await DatabaseMark.open(markDeps, { hadLog });
  opened.resolve(databaseMark);
  scope.onClose(() => databaseMark.save({ isClosed: true }));
  const retention = new RetentionClock({ db, sealer: settingsSealer, log, now });
  await retention.save();
  scope.onClose(() =>
    retention.save(true).catch((error) => log("error", "Can't save the time", { error: getErrorMessage(error) }))
  );
  const { isExpired } = retention;
  const events = createEventHub(log);
  // Closes after the jobs: what they were reading is read again by the next process.
  const sandbox = new Sandbox();
  scope.onClose(() => sandbox.close());
  const jobs = createJobRunner({
    ...{ db, sealer: sealer.forPurpose("jobs"), events, log, now, isExpired },
    newId: createUuidV7,
  });
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
    damageReports,
    budget: new ByteBudget({ ...getBudgetSizes(), collectGarbage, startCollection, memoryBytes: getMemoryBytes }),
    db,
    events,
    jobs,
    databaseMark,
    ownListeners: new OwnListeners(),
    sandbox,
    retention,
    idempotency: new IdempotentResults({ db, sealer: settingsSealer, isExpired, now }),
    trash: new Trash({ db, sealer: sealer.forPurpose("trash"), events, now, isExpired, openKind: openTrashKind }),
    versions: new Versions({ folder: folders.versions, log, now, isExpired }),
    settings,
    isFirstStart,
    createdAtMs,
    getOwnerName: () => settings.get().settings.display_name || DEFAULT_OWNER_NAME,
    openFlag: (key, isSet) =>
      openPersistentFlag({ key, isSet, db, sealer: settingsSealer, save: () => saveConfigKey(config, key, true) }),
  };
}

/** Reports whether a database has no content yet. @throws {AppError} `internal` if it lacks its tables */
function isNewDatabase(db: Database, dataDir: DataDir): boolean {
  try {
    return db.get("SELECT 1 FROM setting LIMIT 1") === undefined;
  } catch (cause) {
    if (/no such table/.test(getErrorMessage(cause))) throw createDatabaseError(dataDir, "has lost its tables");
    throw cause;
  }
}

/** Where the database's ID is stored. A restored backup has that of its database. */
const DATABASE_ID = { table: "setting", id: "database_id", field: "value", version: 1 };

/**
 * Checks that the database is the one that this folder had at earlier starts, and gives a new one its ID. The database
 * gets it first, so that a start that is killed between the two leaves nothing that stops the next one.
 *
 * @throws {AppError} `internal` if it's another installation's
 */
async function settleDatabaseId(
  dataDir: DataDir,
  db: Database,
  sealer: PurposeSealer,
  fileId: string | undefined,
): Promise<string> {
  const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", DATABASE_ID.id);
  const storedId = row && new TextDecoder().decode(sealer.openNow(DATABASE_ID, row.sealed));
  if (storedId !== undefined && fileId !== undefined && storedId !== fileId) {
    throw createDatabaseError(
      dataDir,
      `belongs to another installation. If you put it there, delete the file "${dataDir.file(DATABASE_ID_FILE_NAME)}"`,
    );
  }
  // A copy from before there were IDs gets the folder's.
  const id = storedId ?? fileId ?? createUuidV7();
  if (storedId === undefined) {
    await db.write([{
      sql: "INSERT INTO setting (key, version, sealed) VALUES (?, 1, ?)",
      params: [DATABASE_ID.id, sealer.sealNow(DATABASE_ID, id)],
    }]);
  }
  if (fileId === undefined) await writeDatabaseId(dataDir, id);
  return id;
}

/** Where the creation time of the database is stored. Restoring a backup restores that of its database. */
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

/** A cleanup task. */
interface MaintenanceTask {
  /** What it does, for the log: `"remove expired trash"`. */
  name: string;
  /** How often it runs after the first time; only once if absent. */
  everyMs?: number;
  /** True if it doesn't run right after the start. */
  isLater?: boolean;
  run(): Promise<void>;
}

/** Services with cleanup tasks. Those with nothing to do aren't opened. */
interface MaintainedServices {
  attachments: Lazy<{ sweep(): Promise<unknown> }>;
  documents: Lazy<{ documents: { sweep(): Promise<unknown> } }>;
  conversations: Lazy<{ revisions: { sweep(): Promise<unknown> }; references: { sweep(): Promise<unknown> } }>;
  imports: Lazy<{ sources: { sweep(): Promise<unknown> } }>;
  speech: Lazy<unknown>;
  memory: Lazy<{ proposals: { settleReading(isEnabled: boolean): Promise<unknown> } }>;
  chat: Lazy<{ memoryReading: { check(): Promise<void> } }>;
  responses: Lazy<{ sweep(): Promise<void> }>;
  usage: Lazy<{ sweep(): Promise<void> }>;
  integrity: Lazy<{ look(): void }>;
  releases: Lazy<{ look(): void }>;
}

const MINUTE_MS = 60 * 1000;
const HOUR_MS = 60 * MINUTE_MS;

/** Delay of the first run, so that cleanup doesn't slow down the first requests. */
const FIRST_RUN_MS = 1_000;

/** Runs cleanup tasks. A task that fails is logged and doesn't stop the others. */
class Maintenance {
  readonly #tasks: readonly MaintenanceTask[];
  readonly #log: Log;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  readonly #mutex = new Mutex();

  constructor(tasks: readonly MaintenanceTask[], log: Log) {
    this.#tasks = tasks;
    this.#log = log;
  }

  /** Schedules all tasks. */
  start(): void {
    const first = this.#tasks.filter(({ isLater }) => !isLater);
    this.#timers.push(setTimeout(() => first.forEach((task) => void this.#run(task)), FIRST_RUN_MS));
    for (const task of this.#tasks) {
      if (task.everyMs !== undefined) this.#timers.push(setInterval(() => this.#run(task), task.everyMs));
    }
  }

  /** Runs all tasks now and resolves when they have ended. */
  async runAll(): Promise<void> {
    await Promise.all(this.#tasks.map((task) => this.#run(task)));
  }

  /** Stops the schedule and waits for the running task. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#mutex.waitUntilSettled();
  }

  #run(task: MaintenanceTask): Promise<void> {
    return this.#mutex.run(() => task.run()).catch((error) =>
      this.#log("error", `Maintenance failed: ${task.name}`, { error: getErrorMessage(error) })
    );
  }
}

/** Creates Parlor's cleanup tasks. */
export function createMaintenance(core: Core, services: MaintainedServices): Maintenance {
  const { db, folders, idempotency, log, now, retention, trash, versions } = core;
  return new Maintenance([
    {
      name: "remove expired trash, versions and revisions",
      everyMs: 24 * HOUR_MS,
      async run() {
        await trash.sweep();
        await versions.sweep();
        await idempotency.sweep();
        if (findOverdueRevisions(db, retention).length > 0) await (await services.conversations()).revisions.sweep();
      },
    },
    {
      name: "save how far the database is",
      everyMs: MINUTE_MS,
      run: () => core.databaseMark.save(),
    },
    {
      name: "save the time for a start with a wrong clock",
      everyMs: HOUR_MS,
      run: () => retention.save(),
    },
    {
      name: "remove unused attachments",
      everyMs: HOUR_MS,
      async run() {
        const row = db.get("SELECT 1 FROM attachment UNION ALL SELECT 1 FROM attachment_ref LIMIT 1");
        if (row === undefined && await isEmptyFolder(folders.attachments)) return;
        await (await services.conversations()).references.sweep();
        await (await services.attachments()).sweep();
      },
    },
    {
      name: "tidy documents after a crash",
      everyMs: 24 * HOUR_MS,
      async run() {
        if (!await isEmptyFolder(folders.documents)) await (await services.documents()).documents.sweep();
      },
    },
    {
      name: "remove the files of imports after 30 days",
      everyMs: 24 * HOUR_MS,
      async run() {
        if (!await isEmptyFolder(folders[IMPORT_SOURCES_FOLDER])) await (await services.imports()).sources.sweep();
      },
    },
    {
      name: "read idle chats for memories",
      everyMs: MINUTE_MS,
      async run() {
        if (core.settings.get().settings.memory_proposals) return await (await services.chat()).memoryReading.check();
        // Chats from the time when it was off are never read.
        const hasRead = db.get("SELECT 1 FROM setting WHERE key = 'memory_use'") !== undefined;
        if (hasRead) await (await services.memory()).proposals.settleReading(false);
      },
    },
    {
      name: "check the stored data",
      everyMs: 10 * MINUTE_MS,
      isLater: true,
      run: async () => (await services.integrity()).look(),
    },
    {
      name: "look for a new version",
      everyMs: HOUR_MS,
      async run() {
        const isWanted = core.config.releasesUrl !== null && core.settings.get().settings.check_releases;
        if (isWanted) (await services.releases()).look();
      },
    },
    {
      name: "remove expired responses",
      everyMs: HOUR_MS,
      async run() {
        const row = db.get("SELECT 1 FROM stored_response WHERE expires_at <= ? LIMIT 1", now());
        if (row !== undefined) await (await services.responses()).sweep();
      },
    },
    {
      name: "remove usage that is older than a year",
      everyMs: 24 * HOUR_MS,
      async run() {
        const row = db.get("SELECT 1 FROM document WHERE kind = 'usage' LIMIT 1");
        if (row !== undefined) await (await services.usage()).sweep();
      },
    },
    {
      // Each service removes its leftovers when it opens.
      name: "remove temporary files of an earlier process",
      async run() {
        if (!await isEmptyFolder(folders.replies)) await services.conversations();
        if (!await isEmptyFolder(folders.imports)) await services.speech();
        if (!await isEmptyFolder(folders.uploads)) await services.imports();
      },
    },
  ], log);
}

async function isEmptyFolder(path: string): Promise<boolean> {
  for await (const _ of Deno.readDir(path)) return false;
  return true;
}
