/** Workflows: JSON files in a folder of their own. A file put there is a workflow; the starter is there without one. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type PlainFile, readPlainFile, removeFile } from "../../storage/plain_files.ts";
import { uuidV7 } from "../../crypto/random.ts";
import { AppError } from "../../errors.ts";
import { inNameOrder } from "../../storage/collation.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { isId } from "../../storage/ids.ts";
import { fileError, fileExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { KeyedMutex } from "../../async/keyed_mutex.ts";
import type { Version, VersionCause, Versions } from "../../storage/versions.ts";
import { placeholdersIn } from "./placeholders.ts";
import { STARTER_ID, STARTER_WORKFLOW } from "./starter_workflow.ts";
import { parseWorkflow, type Workflow } from "./workflow_format.ts";
import { type ExpectedVersion, isExpected } from "../../storage/preconditions.ts";

/** A workflow as a list shows it. */
export interface WorkflowEntry {
  id: string;
  name: string;
  /** `undefined` for the starter while no file takes its place. */
  updatedAtMs?: number;
  placeholders: string[];
  /** Why it cannot be used. */
  problem?: string;
}

/** A workflow and the version of its file. */
export interface ReadWorkflow {
  workflow: Workflow;
  version: string;
}

/** Where removed ones go. */
export interface WorkflowTrash {
  put(kind: string, title: string, record: unknown): Statement;
  changed(): void;
}

/** What workflows stand on. */
export interface WorkflowParts {
  db: Database;
  /** `<datadir>/workflows` */
  folder: string;
  trash: WorkflowTrash;
  versions: Versions;
  events: EventHub;
}

/** What the trash keeps of one. */
interface TrashRecord {
  id: string;
  fileName: string;
  text: string;
  /** Names its versions in the trash; absent in records of earlier releases. */
  versions?: string;
}

const TRASH_KIND = "workflow";
/** Name of the file in a version. */
const PART = "workflow.json";

/** Reads and changes the workflows. */
export class Workflows {
  readonly #parts: WorkflowParts;
  readonly #locks = new KeyedMutex();

  constructor(parts: WorkflowParts) {
    this.#parts = parts;
  }

  /** Gives all of them by name. One that cannot be used stays in the list and says why. */
  async list(): Promise<WorkflowEntry[]> {
    const entries: WorkflowEntry[] = [];
    const files = await this.#files();
    for (const [id, fileName] of files) {
      const file = await readPlainFile(join(this.#parts.folder, fileName));
      if (file !== undefined) entries.push(entryOf(id, fileName, file));
    }
    if (!files.has(STARTER_ID)) {
      entries.push({ id: STARTER_ID, name: STARTER_ID, placeholders: placeholdersIn(STARTER_WORKFLOW) });
    }
    return inNameOrder(entries);
  }

  /** @throws {AppError} `not_found`; `unprocessable` for a file that holds no workflow in API format */
  async get(id: string): Promise<ReadWorkflow> {
    const found = await this.#find(id);
    if (found !== undefined) return { workflow: parsed(found.bytes), version: versionOf(found.bytes) };
    if (id === STARTER_ID) return { workflow: STARTER_WORKFLOW, version: STARTER_VERSION };
    throw missing(id);
  }

  /**
   * Creates or replaces a workflow.
   *
   * @param expected Version that must stand, when the caller asked for the check.
   * @throws {AppError} `unprocessable` when it is none in API format, `revision_mismatch`, `conflict`
   */
  put(id: string, json: unknown, expected?: ExpectedVersion): Promise<ReadWorkflow & { isNew: boolean }> {
    const workflow = parseWorkflow(json);
    return this.#inTurn(id, async () => {
      const { folder } = this.#parts;
      const before = await this.#find(id);
      checkVersion(
        id,
        before === undefined && id === STARTER_ID ? STARTER_VERSION : versionOf(before?.bytes),
        expected,
      );
      const path = join(folder, before?.fileName ?? `${id}.json`);
      if (before === undefined) await this.#refuseClash(id, path);
      const bytes = new TextEncoder().encode(`${JSON.stringify(workflow, null, 2)}\n`);
      await this.#replace(id, before, { path, bytes, cause: "put" });
      return { workflow, version: versionOf(bytes), isNew: before === undefined };
    });
  }

  /** Lists the earlier versions of a workflow, newest first. @throws {AppError} `not_found` */
  async versions(id: string): Promise<Version[]> {
    if (id !== STARTER_ID && await this.#find(id) === undefined) throw missing(id);
    return await this.#parts.versions.list(resourceOf(id));
  }

  /** Returns an earlier version. @throws {AppError} `not_found`, `unprocessable` */
  async version(id: string, n: number): Promise<Workflow> {
    return parsed(await this.#readVersion(id, n));
  }

  /** Restores an earlier version. What it replaces becomes a version. @throws {AppError} `not_found`, `revision_mismatch` */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<ReadWorkflow> {
    return this.#inTurn(id, async () => {
      const before = await this.#find(id);
      if (before === undefined) throw missing(id);
      checkVersion(id, versionOf(before.bytes), expected);
      const bytes = await this.#readVersion(id, n);
      const workflow = parsed(bytes);
      await this.#replace(id, before, { path: join(this.#parts.folder, before.fileName), bytes, cause: "restore" });
      return { workflow, version: versionOf(bytes) };
    });
  }

  /** Moves a workflow to the trash. @throws {AppError} `not_found`, `revision_mismatch`, `conflict` for the starter that ships */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#inTurn(id, async () => {
      const { db, folder, trash, versions, events } = this.#parts;
      const found = await this.#find(id);
      if (found === undefined && id === STARTER_ID) {
        throw new AppError("conflict", "The starter workflow ships with Parlor and cannot be removed");
      }
      if (found === undefined) throw missing(id);
      checkVersion(id, versionOf(found.bytes), expected);
      const text = new TextDecoder().decode(found.bytes);
      const record = { id, fileName: found.fileName, text, versions: uuidV7() } satisfies TrashRecord;
      await db.write([trash.put(TRASH_KIND, nameOf(found.fileName), record)]);
      await removeFile(join(folder, found.fileName));
      await versions.moveToTrash(resourceOf(id), record.versions);
      events.publish({ kind: "workflow", id });
      trash.changed();
    });
  }

  /** Brings one back from the trash. @throws {AppError} `conflict` when its id is taken */
  restore(value: unknown, takeOut: Statement): Promise<void> {
    const { id, fileName, text, versions: entry } = value as TrashRecord;
    return this.#inTurn(id, async () => {
      const { db, folder, versions, events } = this.#parts;
      const path = join(folder, fileName);
      if (await this.#find(id) !== undefined || await fileExists(path)) {
        throw new AppError("conflict", `There is a workflow "${id}" again`);
      }
      await writeFileAtomic(path, text);
      await db.write([takeOut]);
      await versions.restoreFromTrash(resourceOf(id), entry);
      events.publish({ kind: "workflow", id });
    });
  }

  /** Removes for good what lay in the trash. */
  async purge(value: unknown, takeOut: Statement): Promise<void> {
    await this.#parts.db.write([takeOut]);
    await this.#parts.versions.purge("workflows", (value as TrashRecord).versions);
  }

  /** Writes the file of a workflow and keeps what it was. */
  async #replace(
    id: string,
    before: PlainFile | undefined,
    { path, bytes, cause }: { path: string; bytes: Uint8Array; cause: VersionCause },
  ): Promise<void> {
    const { versions, events } = this.#parts;
    const isKept = before !== undefined && Buffer.compare(before.bytes, bytes) !== 0;
    const parts = isKept ? [{ name: PART, path }] : [];
    await versions.replace(resourceOf(id), { cause, parts, touched: [path] }, () => writeFileAtomic(path, bytes));
    events.publish({ kind: "workflow", id });
  }

  async #readVersion(id: string, n: number): Promise<Uint8Array> {
    const path = (await this.#parts.versions.parts(resourceOf(id), n)).get(PART);
    const file = path === undefined ? undefined : await readPlainFile(path);
    if (file !== undefined) return file.bytes;
    throw new AppError("internal", `The file of version ${n} of workflow "${id}" is missing`);
  }

  /** Gives the file of each workflow. */
  async #files(): Promise<Map<string, string>> {
    const { folder } = this.#parts;
    const files = new Map<string, string>();
    try {
      for await (const { name, isFile } of Deno.readDir(folder)) {
        if (isFile && /^[^.].*\.json$/i.test(name)) files.set(idOf(nameOf(name)), name);
      }
    } catch (cause) {
      throw fileError(`Cannot look through "${folder}"`, cause);
    }
    return files;
  }

  async #find(id: string): Promise<(PlainFile & { fileName: string }) | undefined> {
    const fileName = (await this.#files()).get(id);
    const file = fileName === undefined ? undefined : await readPlainFile(join(this.#parts.folder, fileName));
    return fileName === undefined || file === undefined ? undefined : { ...file, fileName };
  }

  async #refuseClash(id: string, path: string): Promise<void> {
    for (const other of (await this.#files()).keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The id "${id}" differs from "${other}" by letter case alone`);
      }
    }
    if (await fileExists(path)) throw new AppError("conflict", `Cannot write "${path}": something else has that name`);
  }

  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }
}

function resourceOf(id: string) {
  return { kind: "workflows" as const, id };
}

const STARTER_VERSION = versionOf(new TextEncoder().encode(JSON.stringify(STARTER_WORKFLOW)));

function entryOf(id: string, fileName: string, { bytes, mtimeMs }: PlainFile): WorkflowEntry {
  const entry = { id, name: nameOf(fileName), updatedAtMs: mtimeMs };
  try {
    return { ...entry, placeholders: placeholdersIn(parsed(bytes)) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...entry, placeholders: [], problem: error.message };
  }
}

function parsed(bytes: Uint8Array): Workflow {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new AppError("unprocessable", "Cannot use the workflow: its file is not JSON", { cause });
  }
  return parseWorkflow(json);
}

function nameOf(fileName: string): string {
  return fileName.replace(/\.json$/i, "");
}

/** Of a file whose name is no id: the same file always has the same one. */
function idOf(stem: string): string {
  return isId(stem) ? stem : `w-${createHash("sha256").update(stem).digest("hex").slice(0, 24)}`;
}

function versionOf(bytes: Uint8Array): string;
function versionOf(bytes: Uint8Array | undefined): string | undefined;
function versionOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
}

function checkVersion(id: string, found: string | undefined, expected: ExpectedVersion | undefined): void {
  if (isExpected(expected, found)) return;
  throw new AppError(
    "revision_mismatch",
    `The workflow "${id}" is at ${found === undefined ? "no version" : `version ${found}`}, not at the one asked for`,
  );
}

function missing(id: string): AppError {
  return new AppError("not_found", `There is no workflow "${id}"`);
}
