/**
 * Earlier versions of files and small documents: cards, personas, attachments, workflows, voices.
 *
 * A version is a folder, `versions/<kind>/<hash of the id>/<n>.<milliseconds>.<cause>/`, with the replaced files. The
 * folder name contains all metadata, so there is no index that could disagree with the files. Replaced files are stored
 * as hard links, without copying. The folder is complete before the new file replaces the old, so a crash at any moment
 * leaves the current file in place and never loses a replaced one.
 */
import { basename, dirname, join } from "node:path";
import { nodeCrypto } from "../crypto/random.ts";
import type { Aad } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { pathExists, syncFolder, toFileError, writeFileAtomic } from "./atomic_file.ts";
import type { IsExpired } from "./retention_clock.ts";

/** What replaced a version. */
export const VERSION_CAUSES = ["put", "patch", "avatar", "portrait", "restore"] as const;
export type VersionCause = (typeof VERSION_CAUSES)[number];

/** Kinds of resources. Each is the name of a folder. */
export type VersionedKind = "characters" | "personas" | "attachments" | "workflows" | "voices";

/** One resource. */
export interface VersionedResource {
  kind: VersionedKind;
  id: string;
}

/** A version that can be restored. */
export interface Version {
  /** Starts at 1 for each resource. Numbers are never reused. */
  n: number;
  /** When it was replaced, in milliseconds since 1970. */
  createdAtMs: number;
  cause: VersionCause;
}

/** A part of a version: an existing file, or bytes, which may be encrypted with the version number in the AAD. */
export type VersionPart = { name: string } & ({ path: string } | { bytes(n: number): Uint8Array });

/** Maximum age and number of versions per resource. */
export interface VersionLimits {
  maxAgeMs: number;
  maxCount: number;
  maxBytes: number;
}

/** See docs/decisions/0030-earlier-versions.md. */
const DEFAULT_LIMITS: VersionLimits = {
  maxAgeMs: 30 * 24 * 60 * 60 * 1000,
  maxCount: 50,
  maxBytes: 256 * 1024 * 1024,
};

/** Logs failures that can't be handled. */
type Log = (level: "warn" | "error", message: string, facts: { error: string }) => void;

/** Suffix of a version folder that is still being written; it gets its number when it's complete. */
const UNFINISHED = ".new";
const VERSION_NAME = new RegExp(`^([1-9]\\d{0,14})\\.(\\d{1,15})\\.(${VERSION_CAUSES.join("|")})$`);
/** Name of the empty file that stores the highest number after its version expired. */
const LAST_NUMBER = /^last\.(\d{1,15})$/;
const TRASH_PREFIX = "trash-";
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** Creates, lists and expires versions. Callers serialize the changes of a resource. */
export class Versions {
  readonly #folder: string;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #isExpired: IsExpired;
  readonly #limits: VersionLimits;

  /** @param options.folder `<datadir>/versions`, which exists. */
  constructor(options: {
    folder: string;
    log: Log;
    now(): number;
    isExpired: IsExpired;
    limits?: Partial<VersionLimits>;
  }) {
    this.#folder = options.folder;
    this.#log = options.log;
    this.#now = options.now;
    this.#isExpired = options.isExpired;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
  }

  /** Lists the versions of a resource, newest first. @throws {AppError} `internal` */
  async list(resource: VersionedResource): Promise<Version[]> {
    const { versions } = await this.#read(this.#getFolder(resource));
    const { maxAgeMs } = this.#limits;
    return versions.filter(({ createdAtMs }) => !this.#isExpired(createdAtMs, maxAgeMs)).sort((a, b) => b.n - a.n);
  }

  /**
   * Finds the files of a version.
   *
   * @returns Paths by the names of the parts.
   * @throws {AppError} `not_found` for an unknown number, `internal`
   */
  async listParts(resource: VersionedResource, n: number): Promise<Map<string, string>> {
    const version = (await this.list(resource)).find((one) => one.n === n);
    if (version === undefined) throw new AppError("not_found", `Version ${n} of "${resource.id}" not found`);
    const folder = join(this.#getFolder(resource), getFileName(version));
    return new Map((await listNames(folder)).map((name) => [name, join(folder, name)]));
  }

  /**
   * Runs a write that replaces a resource and stores the replaced files as a version. If the write fails, all files
   * stay unchanged.
   *
   * @param options.parts The replaced files; without any, no version is created.
   * @param options.touched Every file that `write` creates, replaces or removes.
   * @throws {AppError} `storage_full`, `internal`; errors of `write`.
   */
  async replace<T>(
    resource: VersionedResource,
    { cause, parts, touched }: { cause: VersionCause; parts: readonly VersionPart[]; touched: readonly string[] },
    write: () => Promise<T>,
  ): Promise<T> {
    const version = parts.length === 0 ? undefined : await this.#keep(resource, cause, parts);
    const before = new Set(parts.flatMap((part) => "path" in part ? [part.path] : []));
    const created: string[] = [];
    try {
      for (const path of touched) if (!before.has(path) && !await pathExists(path)) created.push(path);
      const result = await write();
      await this.#thinOut(resource);
      return result;
    } catch (error) {
      await this.#putBack(version, parts, created);
      throw error;
    }
  }

  /**
   * Moves the versions of a removed resource aside, so that a new resource with the same id doesn't get them.
   *
   * Call it last: after an interrupted removal, the versions are still in place for a restored resource.
   *
   * @param entry Id of the trash item; a UUID.
   */
  async moveToTrash(resource: VersionedResource, entry: string): Promise<void> {
    const folder = this.#getFolder(resource);
    if (await pathExists(folder)) await tryRename(folder, this.#openTrashed(resource.kind, entry));
  }

  /** Moves versions back to a resource that was restored from the trash. */
  async restoreFromTrash(resource: VersionedResource, entry: string | undefined): Promise<void> {
    if (entry === undefined) return;
    const from = this.#openTrashed(resource.kind, entry);
    const to = this.#getFolder(resource);
    // The folder only exists after an interrupted removal. Its versions are the current ones.
    if (await pathExists(from) && !await pathExists(to)) await tryRename(from, to);
  }

  /** Deletes the versions of a resource that is deleted without going to the trash. */
  async remove(resource: VersionedResource): Promise<void> {
    await removeTree(this.#getFolder(resource));
  }

  /** Deletes the versions of a resource that was purged from the trash. */
  async purge(kind: VersionedKind, entry: string | undefined): Promise<void> {
    if (entry !== undefined) await removeTree(this.#openTrashed(kind, entry));
  }

  /** Deletes expired versions and leftovers of interrupted writes. */
  async sweep(): Promise<void> {
    const { maxAgeMs } = this.#limits;
    for (const kind of await listNames(this.#folder)) {
      for (const name of await listNames(join(this.#folder, kind))) {
        const folder = join(this.#folder, kind, name);
        const { versions } = await this.#read(folder);
        const expired = versions.filter(({ createdAtMs }) => this.#isExpired(createdAtMs, maxAgeMs));
        if (expired.length === 0) continue;
        await this.#rememberNumber(folder, Math.max(...expired.map(({ n }) => n)));
        for (const version of expired) await removeTree(join(folder, getFileName(version)));
      }
    }
  }

  /** Creates a version from files that are about to be replaced. @returns Its folder. */
  async #keep(resource: VersionedResource, cause: VersionCause, parts: readonly VersionPart[]): Promise<string> {
    const folder = this.#getFolder(resource);
    const unfinished = join(folder, UNFINISHED);
    try {
      const isNew = !await pathExists(folder);
      await Deno.mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      await removeTree(unfinished);
      await Deno.mkdir(unfinished, { mode: FOLDER_MODE });
      const { versions, last } = await this.#read(folder);
      const n = Math.max(last, ...versions.map((version) => version.n)) + 1;
      for (const part of parts) await writePart(part, n, join(unfinished, part.name));
      await syncFolder(unfinished);
      const version = join(folder, getFileName({ n, createdAtMs: this.#now(), cause }));
      await Deno.rename(unfinished, version);
      await syncFolder(folder);
      if (isNew) { for (const above of [dirname(folder), this.#folder]) await syncFolder(above); }
      return version;
    } catch (cause) {
      await removeTree(unfinished).catch(() => {});
      throw toFileError(`Can't save the earlier version of "${resource.id}"`, cause);
    }
  }

  /** Undoes a failed write. Works on a full disk, because it needs no space. */
  async #putBack(
    version: string | undefined,
    parts: readonly VersionPart[],
    created: readonly string[],
  ): Promise<void> {
    try {
      for (const path of created) await removeTree(path);
      if (version === undefined) return;
      for (const part of parts) if ("path" in part) await Deno.rename(join(version, part.name), part.path);
      await removeTree(version);
    } catch (error) {
      // The version stays and can be restored.
      this.#log("error", "Can't restore the files after a failed write", { error: getErrorMessage(error) });
    }
  }

  /**
   * Deletes versions beyond the limits, starting with the one that was current for the shortest time, so that an hour
   * of autosaves doesn't displace last week's version. The newest version stays.
   */
  async #thinOut(resource: VersionedResource): Promise<void> {
    const { maxCount, maxBytes } = this.#limits;
    const folder = this.#getFolder(resource);
    try {
      const { versions } = await this.#read(folder);
      const ordered = versions.sort((a, b) => a.n - b.n);
      const sizes = new Map<number, number>();
      for (const version of ordered) sizes.set(version.n, await measureFile(join(folder, getFileName(version))));
      const sumBytes = () => ordered.reduce((sum, { n }) => sum + sizes.get(n)!, 0);
      while (ordered.length > 1 && (ordered.length > maxCount || sumBytes() > maxBytes)) {
        const spans = ordered.slice(0, -1).map(({ createdAtMs }, i) =>
          createdAtMs - (ordered[i - 1]?.createdAtMs ?? 0)
        );
        const [removed] = ordered.splice(spans.indexOf(Math.min(...spans)), 1);
        await removeTree(join(folder, getFileName(removed!)));
      }
    } catch (error) {
      this.#log("warn", "Can't delete surplus versions", { error: getErrorMessage(error) });
    }
  }

  async #rememberNumber(folder: string, n: number): Promise<void> {
    const { last, versions } = await this.#read(folder);
    if (n <= last || versions.some((version) => version.n > n)) return;
    const file = await Deno.open(join(folder, `last.${n}`), { create: true, write: true, mode: FILE_MODE });
    file.close();
    if (last > 0) await removeTree(join(folder, `last.${last}`));
  }

  async #read(folder: string): Promise<{ versions: Version[]; last: number }> {
    const names = await listNames(folder);
    const versions = names.flatMap((name): Version[] => {
      const [, n, createdAtMs, cause] = VERSION_NAME.exec(name) ?? [];
      return n === undefined ? [] : [{ n: Number(n), createdAtMs: Number(createdAtMs), cause: cause as VersionCause }];
    });
    return { versions, last: Math.max(0, ...names.map((name) => Number(LAST_NUMBER.exec(name)?.[1] ?? 0))) };
  }

  /**
   * Returns the folder of a resource. Its ID is hashed, because IDs may differ only in case or be device names, which
   * some file systems don't support.
   */
  #getFolder({ kind, id }: VersionedResource): string {
    return join(this.#folder, kind, nodeCrypto().createHash("sha256").update(id).digest("hex").slice(0, 40));
  }

  #openTrashed(kind: VersionedKind, entry: string): string {
    return join(this.#folder, kind, TRASH_PREFIX + basename(entry));
  }
}

function getFileName({ n, createdAtMs, cause }: Version): string {
  return `${n}.${createdAtMs}.${cause}`;
}

async function writePart(part: VersionPart, n: number, to: string): Promise<void> {
  if ("bytes" in part) return await writeFileAtomic(to, part.bytes(n));
  await linkOrCopy(part.path, to);
}

/** Creates a hard link, or a copy if the file system has no hard links (exFAT, some network shares). */
export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await Deno.link(from, to);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) throw cause;
    await Deno.copyFile(from, to);
    if (Deno.build.os !== "windows") await Deno.chmod(to, FILE_MODE);
    using file = await Deno.open(to, { read: true, write: true });
    await file.sync();
  }
}

/** Returns the additional authenticated data for a sealed part of a version. */
export function createVersionAad({ kind, id }: VersionedResource, n: number): Aad {
  return { table: "version", id: `${kind}/${id}`, field: "sealed", version: n };
}

/** Parses the number in the name of a version folder. */
export function parseVersionNumber(name: string): number | undefined {
  const n = VERSION_NAME.exec(name)?.[1];
  return n === undefined ? undefined : Number(n);
}

/** Returns the total size of versions. A file linked by several versions counts once. */
async function measureFile(folder: string): Promise<number> {
  let sizeBytes = 0;
  for (const name of await listNames(folder)) {
    const { size, nlink } = await Deno.lstat(join(folder, name));
    sizeBytes += size / Math.max(1, nlink ?? 1);
  }
  return sizeBytes;
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return [];
    throw toFileError(`Can't list "${folder}"`, cause);
  }
}

async function tryRename(from: string, to: string): Promise<void> {
  try {
    await Deno.rename(from, to);
    await syncFolder(dirname(to));
  } catch (cause) {
    throw toFileError(`Can't move "${from}"`, cause);
  }
}

async function removeTree(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw toFileError(`Can't remove "${path}"`, cause);
  }
}
