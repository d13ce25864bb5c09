/**
 * Files that were imported, stored encrypted for 30 days, so that a later version can read them again without a new
 * export. A file starts with a line of JSON about it.
 */
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer, Sealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { isJsonObject } from "../json/type_guards.ts";
import type { Log } from "../log.ts";
import { removeFile, streamFilePieces, TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import { isId } from "../storage/ids.ts";
import type { RetentionClock } from "../storage/retention_clock.ts";
import {
  getImportSourceFile,
  IMPORT_SOURCES_PURPOSE,
  readSealedFile,
  readSealedRange,
  writeSealedFile,
} from "../storage/sealed_file.ts";
import { IMPORT_KINDS, type ImportKind } from "./import_item.ts";

/** A stored file. */
export interface ImportSourceFile {
  id: string;
  kind: ImportKind;
  /** Name of the file, if the client sent it. */
  name?: string;
  sizeBytes: number;
  createdAtMs: number;
}

/** Dependencies of `ImportSources`. */
export interface ImportSourcesDeps {
  sealer: Sealer;
  /** Folder of the files. */
  sourceFolder: string;
  retention: Pick<RetentionClock, "isExpired">;
  log: Log;
  now(): number;
}

const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
const MAX_NAME = 200;
/** Maximum length of the first line. */
const MAX_HEAD_BYTES = 4096;
const NEW_LINE = 10;

/** The stored files. */
export class ImportSources {
  readonly #deps: ImportSourcesDeps;
  readonly #sealer: PurposeSealer;

  constructor(deps: ImportSourcesDeps) {
    this.#deps = deps;
    this.#sealer = deps.sealer.forPurpose(IMPORT_SOURCES_PURPOSE);
  }

  /** Lists the files that haven't expired and can be read, newest first. */
  async list(): Promise<ImportSourceFile[]> {
    const found: ImportSourceFile[] = [];
    for (const id of await this.#listIds()) {
      const source = await this.#find(id);
      if (source !== undefined) found.push(source);
    }
    return found.sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
  }

  /** @throws {AppError} `not_found` */
  async get(id: string): Promise<ImportSourceFile> {
    const source = isId(id) ? await this.#find(id) : undefined;
    if (source === undefined) throw createMissingError(id);
    return source;
  }

  /**
   * Stores a copy of a file.
   *
   * @returns Its ID.
   * @throws {AppError} `storage_full`; the reason of `signal`
   */
  async add(
    path: string,
    { kind, name, signal }: { kind: ImportKind; name?: string; signal: AbortSignal },
  ): Promise<string> {
    const { sourceFolder, now } = this.#deps;
    const id = createUuidV7();
    const { size: sizeBytes } = await Deno.stat(path);
    const facts: Omit<ImportSourceFile, "id"> = {
      kind,
      name: name?.toWellFormed().slice(0, MAX_NAME),
      sizeBytes,
      createdAtMs: now(),
    };
    async function* content(): AsyncGenerator<Uint8Array> {
      yield new TextEncoder().encode(`${JSON.stringify(facts)}\n`);
      for await (const piece of streamFilePieces(path)) {
        signal.throwIfAborted();
        yield piece;
      }
    }
    await writeSealedFile(this.#sealer, getImportSourceFile(sourceFolder, id), content());
    return id;
  }

  /** Yields the content of a file. @throws {AppError} `internal` if it's damaged or was removed; reason of `signal` */
  async *read(id: string, signal: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let isHead = true;
    for await (const piece of readSealedFile(this.#sealer, getImportSourceFile(this.#deps.sourceFolder, id))) {
      signal.throwIfAborted();
      // The first line is shorter than a piece.
      yield isHead ? piece.subarray(piece.indexOf(NEW_LINE) + 1) : piece;
      isHead = false;
    }
  }

  /** Deletes a file for good. @throws {AppError} `not_found` */
  async remove(id: string): Promise<void> {
    if (!(await this.#listIds()).includes(id)) throw createMissingError(id);
    await removeFile(getImportSourceFile(this.#deps.sourceFolder, id).path);
  }

  /** Deletes files that are older than 30 days, and those that can't be read when they were written before that. */
  async sweep(): Promise<void> {
    const { sourceFolder, retention, log } = this.#deps;
    for (const id of await this.#listIds()) {
      const { path } = getImportSourceFile(sourceFolder, id);
      const createdAtMs = (await this.#readHead(id))?.createdAtMs ?? (await Deno.stat(path)).mtime?.getTime();
      if (createdAtMs === undefined || !retention.isExpired(createdAtMs, RETENTION_MS)) continue;
      await removeFile(path);
      log("debug", "Removed the file of an import after 30 days", { id });
    }
  }

  async #find(id: string): Promise<ImportSourceFile | undefined> {
    const source = await this.#readHead(id);
    return source !== undefined && this.#deps.retention.isExpired(source.createdAtMs, RETENTION_MS)
      ? undefined
      : source;
  }

  /** Returns what its first line says; `undefined` if it's missing or can't be read. */
  async #readHead(id: string): Promise<ImportSourceFile | undefined> {
    try {
      const file = getImportSourceFile(this.#deps.sourceFolder, id);
      const { value: head } = await readSealedRange(this.#sealer, file, { start: 0, end: MAX_HEAD_BYTES - 1 }).next();
      const line: unknown = JSON.parse(new TextDecoder().decode(head!.subarray(0, head!.indexOf(NEW_LINE))));
      return isJsonObject(line) && IMPORT_KINDS.includes(line.kind as ImportKind)
        ? { ...line as unknown as Omit<ImportSourceFile, "id">, id }
        : undefined;
    } catch {
      return undefined;
    }
  }

  async #listIds(): Promise<string[]> {
    const entries = await Array.fromAsync(Deno.readDir(this.#deps.sourceFolder));
    return entries.filter(({ isFile, name }) => isFile && !name.endsWith(TEMPORARY_ENDING) && isId(name))
      .map(({ name }) => name);
  }
}

function createMissingError(id: string): AppError {
  return new AppError("not_found", `The file "${id}" of an import isn't stored. Files are deleted after 30 days`);
}
