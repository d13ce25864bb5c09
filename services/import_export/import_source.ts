/**
 * Source of an import: a folder, a ZIP file, a RisuAI backup, or one file, each as a list of files. Paths in it are
 * only compared, never opened.
 */
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { AppError } from "../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../json/type_guards.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import { streamFilePieces, writePieces } from "../storage/atomic_file.ts";
import { openRisuBackup } from "./formats/risuai/risu_save.ts";
import { ImportError } from "./import_report.ts";
import { createTooLargeError, MAX_FILES, openZip } from "./import_zip.ts";

/** A file of an import. */
export interface SourceFile {
  /** With slashes, relative to the root of the import. */
  path: string;
  sizeBytes: number;
}

/** An open import. */
export interface ImportSource {
  readonly files: readonly SourceFile[];
  /** Paths that were skipped because they lead outside or aren't regular files. */
  readonly skippedPaths: readonly string[];
  /** Path of the import itself if it is a ZIP file. */
  readonly path?: string;
  /** Reads one of `files` completely. @throws {AppError} `too_large`; `unprocessable` if it is damaged. */
  read(file: SourceFile, maxBytes: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Streams one of `files` in chunks of about 100 KiB. @throws {AppError} as `read`. */
  stream(file: SourceFile, maxBytes: number): AsyncIterable<Uint8Array>;
  close(): void;
}

const MAX_DEPTH = 20;
const ZIP_MARK = [0x50, 0x4b, 0x03, 0x04];

/**
 * Opens a folder, a ZIP file or RisuAI backup (detected by content), or a single file.
 *
 * @param name Name of a single file.
 * @throws {AppError} `not_found`, `unprocessable`, `too_large`
 */
export async function openSource(path: string, name = basename(path)): Promise<ImportSource> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.stat(path);
  } catch (cause) {
    throw new AppError("not_found", `Can't import "${path}": it can't be read`, { cause });
  }
  if (info.isDirectory) return await openFolder(path);
  if (await isZip(path)) return await openZip(path);
  return await openRisuBackup(path) ?? {
    files: [{ path: name, sizeBytes: info.size }],
    skippedPaths: [],
    read: (_, maxBytes) => readFile(path, name, maxBytes),
    stream: (_, maxBytes) => streamFile(path, name, maxBytes),
    close: () => {},
  };
}

/** Returns a stable id for the same parts: 26 letters, digits, `_` or `-`. */
export function deriveStableId(...parts: string[]): string {
  return `i${createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 25)}`;
}

/** Returns a hash that identifies the content. */
export function hashContent(content: unknown): string {
  const hash = createHash("sha256");
  for (const text of splitJson(content, 2)) hash.update(text);
  return hash.digest("base64url").slice(0, 22);
}

/** Yields the result of `JSON.stringify` in pieces, so that the text of a long chat is never completely in memory. */
function* splitJson(value: unknown, levels: number): Generator<string> {
  if (!Array.isArray(value) || levels === 0) return yield JSON.stringify(value) ?? "";
  yield "[";
  for (const [index, item] of value.entries()) {
    if (index > 0) yield ",";
    yield* splitJson(item ?? null, levels - 1);
  }
  yield "]";
}

async function openFolder(root: string): Promise<ImportSource> {
  const files: SourceFile[] = [];
  const skippedPaths: string[] = [];
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) return void skippedPaths.push(below);
    for await (const entry of Deno.readDir(join(root, below))) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      // A link may lead anywhere, even to its own folder.
      if (entry.isDirectory) await walk(path, depth + 1);
      else if (!entry.isFile) skippedPaths.push(path);
      else files.push({ path, sizeBytes: (await Deno.lstat(join(root, path))).size });
      if (files.length > MAX_FILES) {
        throw new AppError("too_large", `Can't import "${root}": it has more than ${MAX_FILES} files`);
      }
    }
  };
  await walk("", 0);
  files.sort((a, b) => a.path < b.path ? -1 : 1);
  return {
    files,
    skippedPaths,
    read: ({ path }, maxBytes) => readFile(join(root, path), path, maxBytes),
    stream: ({ path }, maxBytes) => streamFile(join(root, path), path, maxBytes),
    close: () => {},
  };
}

async function readFile(path: string, name: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const { size } = await Deno.stat(path);
  if (size > maxBytes) throw createTooLargeError(name, maxBytes);
  return await Deno.readFile(path);
}

async function* streamFile(path: string, name: string, maxBytes: number): AsyncGenerator<Uint8Array> {
  if ((await Deno.stat(path)).size > maxBytes) throw createTooLargeError(name, maxBytes);
  yield* streamFilePieces(path);
}

async function isZip(path: string): Promise<boolean> {
  using file = await Deno.open(path);
  const head = new Uint8Array(ZIP_MARK.length);
  const count = await file.read(head);
  return count === head.length && ZIP_MARK.every((byte, index) => head[index] === byte);
}

/** Returns the file name without folders. */
export function getBaseName(path: string): string {
  return path.split("/").at(-1)!;
}

/** Returns the file name without folders and extension. */
export function getStem(path: string): string {
  return getBaseName(path).replace(/\.[^.]*$/, "");
}

/** Returns the extension without its dot; empty if there is none. */
export function getExtension(path: string): string {
  return /\.([^.]*)$/.exec(getBaseName(path))?.[1] ?? "";
}

/**
 * Parses a JSON object. @throws {AppError} `unprocessable` if the bytes aren't JSON, aren't an object, or nest deeper
 * than 100 levels.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject {
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new ImportError("not_json", { cause });
  }
  if (!isJsonObject(json)) throw new ImportError("not_object");
  const fault = findJsonFault(json);
  if (fault !== undefined) throw new AppError("unprocessable", fault);
  return json;
}

/** The folder for temporary files of one import: items too large to send to the serving thread. Each is removed once imported. */
export class Scratch {
  readonly #folder: string;

  /**
   * @param folder Created with the first file; the code that started the import removes it.
   * @param sandbox Reads CHARX files.
   */
  constructor(folder: string, readonly sandbox: Sandbox) {
    this.#folder = folder;
  }

  /** Writes a file and returns its path. @throws {AppError} `storage_full`, `internal`; errors of `pieces` */
  async keep(pieces: AsyncIterable<Uint8Array>): Promise<string> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, crypto.randomUUID());
    await writePieces(path, pieces);
    return path;
  }
}
