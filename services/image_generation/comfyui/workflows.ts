/** Workflows: JSON files in the folder `workflows`. Files added by hand appear as workflows; the starter needs no file. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import {
  pathExists,
  type PlainFile,
  readPlainFile,
  removeFile,
  toFileError,
  writeFileAtomic,
} from "../../storage/atomic_file.ts";
import { createUuidV7 } from "../../crypto/random.ts";
import { AppError } from "../../errors.ts";
import { sortByName } from "../../json/text.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { isId } from "../../storage/ids.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { KeyedMutex } from "../../async/locks.ts";
import type { Version, VersionCause, Versions } from "../../storage/versions.ts";
import { assertExpected, type ExpectedVersion } from "../../storage/preconditions.ts";
import { listPlaceholders, parseWorkflow, STARTER_ID, STARTER_WORKFLOW, type Workflow } from "./workflow_format.ts";

/** A workflow in the list. */
export interface WorkflowEntry {
  id: string;
  name: string;
  /** Absent for the built-in starter. */
  updatedAtMs?: number;
  placeholders: string[];
  /** Why it can't be used. */
  problem?: string;
}

/** A workflow and the version of its file. */
export interface VersionedWorkflow {
  workflow: Workflow;
  version: string;
}

/** The operations of the trash that workflows use. */
export interface WorkflowTrash {
  put(kind: string, title: string, record: unknown): Statement;
  publishChange(): void;
}

/** The dependencies of workflows. */
export interface WorkflowsDeps {
  db: Database;
  /** `<datadir>/workflows` */
  folder: string;
  trash: WorkflowTrash;
  versions: Versions;
  events: EventHub;
  damageReports: { report(path: string): void };
}

/** A workflow in the trash. */
interface TrashRecord {
  id: string;
  fileName: string;
  text: string;
  /** Id of its versions in the trash. Missing in records of earlier releases. */
  versions?: string;
}

const TRASH_KIND = "workflow";
/** File name in a version. */
const PART = "workflow.json";

/** Manages the workflows. */
export class Workflows {
  readonly #deps: WorkflowsDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: WorkflowsDeps) {
    this.#deps = deps;
  }

  /** Lists all workflows by name. One that can't be used has a `problem`. */
  async list(): Promise<WorkflowEntry[]> {
    const entries: WorkflowEntry[] = [];
    const files = await this.#listFiles();
    for (const [id, fileName] of files) {
      const file = await readPlainFile(join(this.#deps.folder, fileName));
      if (file === undefined) continue;
      const entry = toEntry(id, fileName, file);
      if (entry.problem !== undefined) this.#deps.damageReports.report(`workflows/${id}`);
      entries.push(entry);
    }
    if (!files.has(STARTER_ID)) {
      entries.push({ id: STARTER_ID, name: STARTER_ID, placeholders: listPlaceholders(STARTER_WORKFLOW) });
    }
    return sortByName(entries);
  }

  /** @throws {AppError} `not_found`; `unprocessable` if its file isn't a workflow in API format */
  async get(id: string): Promise<VersionedWorkflow> {
    const found = await this.#find(id);
    if (found !== undefined) return { workflow: parseFile(found.bytes), version: hashVersion(found.bytes) };
    if (id === STARTER_ID) return { workflow: STARTER_WORKFLOW, version: STARTER_VERSION };
    throw createNotFoundError(id);
  }

  /**
   * Creates or replaces a workflow.
   *
   * @param expected The version the stored workflow must have.
   * @throws {AppError} `unprocessable` if it isn't in API format, `revision_mismatch`, `conflict`
   */
  put(id: string, json: unknown, expected?: ExpectedVersion): Promise<VersionedWorkflow & { isNew: boolean }> {
    const workflow = parseWorkflow(json);
    return this.#lock(id, async () => {
      const { folder } = this.#deps;
      const before = await this.#find(id);
      const current = before === undefined && id === STARTER_ID ? STARTER_VERSION : hashVersion(before?.bytes);
      assertExpected(`workflow "${id}"`, expected, current);
      const path = join(folder, before?.fileName ?? `${id}.json`);
      if (before === undefined) await this.#refuseClash(id, path);
      const bytes = new TextEncoder().encode(`${JSON.stringify(workflow, null, 2)}\n`);
      await this.#replace(id, before, { path, bytes, cause: "put" });
      return { workflow, version: hashVersion(bytes), isNew: before === undefined };
    });
  }

  /** Lists the earlier versions of a workflow, newest first. @throws {AppError} `not_found` */
  async listVersions(id: string): Promise<Version[]> {
    if (id !== STARTER_ID && await this.#find(id) === undefined) throw createNotFoundError(id);
    return await this.#deps.versions.list(toResource(id));
  }

  /** Returns an earlier version. @throws {AppError} `not_found`, `unprocessable` */
  async getVersion(id: string, n: number): Promise<Workflow> {
    return parseFile(await this.#readVersion(id, n));
  }

  /** Restores an earlier version. The current one becomes a version. @throws {AppError} `not_found`, `revision_mismatch` */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<VersionedWorkflow> {
    return this.#lock(id, async () => {
      const before = await this.#find(id);
      if (before === undefined) throw createNotFoundError(id);
      assertExpected(`workflow "${id}"`, expected, hashVersion(before.bytes));
      const bytes = await this.#readVersion(id, n);
      const workflow = parseFile(bytes);
      await this.#replace(id, before, { path: join(this.#deps.folder, before.fileName), bytes, cause: "restore" });
      return { workflow, version: hashVersion(bytes) };
    });
  }

  /** Moves a workflow to the trash. @throws {AppError} `not_found`, `revision_mismatch`; `conflict` for the built-in starter */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#lock(id, async () => {
      const { db, folder, trash, versions, events } = this.#deps;
      const found = await this.#find(id);
      if (found === undefined && id === STARTER_ID) {
        throw new AppError("conflict", "The starter workflow is built in and can't be deleted");
      }
      if (found === undefined) throw createNotFoundError(id);
      assertExpected(`workflow "${id}"`, expected, hashVersion(found.bytes));
      const text = new TextDecoder().decode(found.bytes);
      const record = { id, fileName: found.fileName, text, versions: createUuidV7() } satisfies TrashRecord;
      await db.write([trash.put(TRASH_KIND, removeExtension(found.fileName), record)]);
      await removeFile(join(folder, found.fileName));
      await versions.moveToTrash(toResource(id), record.versions);
      events.publish({ kind: "workflow", id });
      trash.publishChange();
    });
  }

  /** Restores a workflow from the trash. @throws {AppError} `conflict` if its id is taken */
  restore(value: unknown, removal: Statement): Promise<void> {
    const { id, fileName, text, versions: entry } = value as TrashRecord;
    return this.#lock(id, async () => {
      const { db, folder, versions, events } = this.#deps;
      const path = join(folder, fileName);
      if (await this.#find(id) !== undefined || await pathExists(path)) {
        throw new AppError("conflict", `Can't restore the workflow: "${id}" already exists`);
      }
      await writeFileAtomic(path, text);
      await db.write([removal]);
      await versions.restoreFromTrash(toResource(id), entry);
      events.publish({ kind: "workflow", id });
    });
  }

  /** Permanently deletes a workflow in the trash. */
  async purge(value: unknown, removal: Statement): Promise<void> {
    await this.#deps.db.write([removal]);
    await this.#deps.versions.purge("workflows", (value as TrashRecord).versions);
  }

  /** Writes the file of a workflow. The previous content becomes a version. */
  async #replace(
    id: string,
    before: PlainFile | undefined,
    { path, bytes, cause }: { path: string; bytes: Uint8Array; cause: VersionCause },
  ): Promise<void> {
    const { versions, events } = this.#deps;
    const hasChanged = before !== undefined && Buffer.compare(before.bytes, bytes) !== 0;
    const parts = hasChanged ? [{ name: PART, path }] : [];
    await versions.replace(toResource(id), { cause, parts, touched: [path] }, () => writeFileAtomic(path, bytes));
    events.publish({ kind: "workflow", id });
  }

  async #readVersion(id: string, n: number): Promise<Uint8Array> {
    const path = (await this.#deps.versions.listParts(toResource(id), n)).get(PART);
    const file = path === undefined ? undefined : await readPlainFile(path);
    if (file !== undefined) return file.bytes;
    throw new AppError("internal", `The file of version ${n} of workflow "${id}" is missing`);
  }

  /** Lists the file names by workflow id. */
  async #listFiles(): Promise<Map<string, string>> {
    const { folder } = this.#deps;
    const files = new Map<string, string>();
    try {
      for await (const { name, isFile } of Deno.readDir(folder)) {
        if (isFile && /^[^.].*\.json$/i.test(name)) files.set(toId(removeExtension(name)), name);
      }
    } catch (cause) {
      throw toFileError(`Can't read the folder "${folder}"`, cause);
    }
    return files;
  }

  async #find(id: string): Promise<(PlainFile & { fileName: string }) | undefined> {
    const fileName = (await this.#listFiles()).get(id);
    const file = fileName === undefined ? undefined : await readPlainFile(join(this.#deps.folder, fileName));
    return fileName === undefined || file === undefined ? undefined : { ...file, fileName };
  }

  async #refuseClash(id: string, path: string): Promise<void> {
    for (const other of (await this.#listFiles()).keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The ID "${id}" differs from "${other}" only in case`);
      }
    }
    if (await pathExists(path)) {
      throw new AppError("conflict", `Can't write "${path}": another file or folder has this name`);
    }
  }

  #lock<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }
}

function toResource(id: string) {
  return { kind: "workflows" as const, id };
}

const STARTER_VERSION = hashVersion(new TextEncoder().encode(JSON.stringify(STARTER_WORKFLOW)));

function toEntry(id: string, fileName: string, { bytes, mtimeMs }: PlainFile): WorkflowEntry {
  const entry = { id, name: removeExtension(fileName), updatedAtMs: mtimeMs } satisfies Partial<WorkflowEntry>;
  try {
    return { ...entry, placeholders: listPlaceholders(parseFile(bytes)) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...entry, placeholders: [], problem: error.message };
  }
}

function parseFile(bytes: Uint8Array): Workflow {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new AppError("unprocessable", "Can't use the workflow: its file isn't JSON", { cause });
  }
  return parseWorkflow(json);
}

function removeExtension(fileName: string): string {
  return fileName.replace(/\.json$/i, "");
}

/** Returns the id for a file name. A name that isn't a valid ID is hashed, so that the ID of a file never changes. */
function toId(stem: string): string {
  return isId(stem) ? stem : `w-${createHash("sha256").update(stem).digest("hex").slice(0, 24)}`;
}

function hashVersion(bytes: Uint8Array): string;
function hashVersion(bytes: Uint8Array | undefined): string | undefined;
function hashVersion(bytes: Uint8Array | undefined): string | undefined {
  return bytes && createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
}

function createNotFoundError(id: string): AppError {
  return new AppError("not_found", `Workflow "${id}" not found`);
}
