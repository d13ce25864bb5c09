/**
 * Source of an import in the child that reads it: a folder, a ZIP file, a RisuAI backup, or one file, each as a list of
 * files. Parlor's side is import_files.ts. Paths in it are only compared, never opened.
 */
import { createHash } from "node:crypto";
import { AppError } from "../errors.ts";
import { findJsonFault, isJsonObject, type JsonObject, parseJsonBytes } from "../json/type_guards.ts";
import type { SandboxHost } from "../platform/sandbox/child.ts";
import { PIECE_BYTES, RemoteFile } from "../platform/sandbox/remote_file.ts";
import { readBytesAt } from "../storage/atomic_file.ts";
import { openRisuBackup } from "./formats/risuai/risu_save.ts";
import { type ImportFacts, type ImportFileList, LISTED_FILES, WHOLE_IMPORT } from "./import_files.ts";
import { ImportError } from "./import_report.ts";
import type { PatternOrder } from "./pattern_child.ts";
import type { PatternEdit } from "./python_pattern.ts";
import { createTooLargeError, openZip } from "./import_zip.ts";

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
  /** True if the import is a ZIP file. */
  readonly isZip?: boolean;
  /** Reads one of `files` completely. @throws {AppError} `too_large`; `unprocessable` if it is damaged. */
  read(file: SourceFile, maxBytes: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Streams one of `files` in chunks of at most 256 KiB. @throws {AppError} as `read`. */
  stream(file: SourceFile, maxBytes: number): AsyncIterable<Uint8Array>;
}

const STREAMED_BYTES = 256 * 1024;
const ZIP_MARK = [0x50, 0x4b, 0x03, 0x04];

/** What the reader of an import asks of Parlor: its files, and temporary ones. Files have ids, never paths. */
export class ImportHost {
  readonly #sizes = new Map<string, number>();
  #kept = 0;

  constructor(readonly host: SandboxHost, readonly facts: ImportFacts) {
    if (facts.name !== undefined) this.#sizes.set(WHOLE_IMPORT, facts.sizeBytes);
  }

  /** Lists the files of a folder. */
  async list(): Promise<{ files: (SourceFile & { id: string })[]; skippedPaths: string[] }> {
    const files: (SourceFile & { id: string })[] = [];
    let skippedPaths: string[] = [];
    for (;;) {
      const page = (await this.host.call("list", files.length)).value as ImportFileList;
      if (files.length === 0) skippedPaths = page.skippedPaths;
      for (const [path, sizeBytes] of page.files) {
        const id = `${files.length}`;
        this.#sizes.set(id, sizeBytes);
        files.push({ id, path, sizeBytes });
      }
      if (page.files.length < LISTED_FILES) return { files, skippedPaths };
    }
  }

  /** Opens a file of the folder, a temporary file, or the import if it's one file. */
  open(id: string): RemoteFile {
    return new RemoteFile(this.host, this.#sizes.get(id)!, id);
  }

  /** Applies an edit of a text in a separate child; `undefined` if it can't be applied or takes too long. */
  async edit(text: string, edit: PatternEdit): Promise<string | undefined> {
    const { value } = await this.host.call("edit", { text, ...edit } satisfies PatternOrder);
    return typeof value === "string" ? value : undefined;
  }

  /**
   * Writes a temporary file, for an item that is too large for a message.
   *
   * @returns Its id.
   * @throws Errors of `pieces`
   */
  async keep(pieces: AsyncIterable<Uint8Array>): Promise<string> {
    const id = `kept-${++this.#kept}`;
    let sizeBytes = 0;
    await this.host.call("keep", id);
    for await (const piece of pieces) {
      for (let at = 0; at < piece.length; at += PIECE_BYTES) {
        await this.host.call("keep", id, [piece.subarray(at, at + PIECE_BYTES)]);
      }
      sizeBytes += piece.length;
    }
    this.#sizes.set(id, sizeBytes);
    return id;
  }
}

/**
 * Opens a folder, a ZIP file or RisuAI backup (detected by content), or a single file.
 *
 * @throws {AppError} `unprocessable`, `too_large`
 */
export async function openSource(host: ImportHost): Promise<ImportSource> {
  const { name, sizeBytes } = host.facts;
  if (name === undefined) return await openFolder(host);
  const file = host.open(WHOLE_IMPORT);
  if (await isZip(file)) return await openZip(file);
  return await openRisuBackup(file) ?? {
    files: [{ path: name, sizeBytes }],
    skippedPaths: [],
    read: (_, maxBytes) => readFile(file, name, maxBytes),
    stream: (_, maxBytes) => streamFile(file, name, maxBytes),
  };
}

async function openFolder(host: ImportHost): Promise<ImportSource> {
  const { files, skippedPaths } = await host.list();
  const ids = new Map(files.map(({ path, id }) => [path, id]));
  const open = ({ path }: SourceFile) => host.open(ids.get(path)!);
  return {
    files: files.map(({ path, sizeBytes }) => ({ path, sizeBytes })).sort((a, b) => a.path < b.path ? -1 : 1),
    skippedPaths,
    read: (file, maxBytes) => readFile(open(file), file.path, maxBytes),
    stream: (file, maxBytes) => streamFile(open(file), file.path, maxBytes),
  };
}

async function readFile(file: RemoteFile, name: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (file.sizeBytes > maxBytes) throw createTooLargeError(name, maxBytes);
  const bytes = await readBytesAt(file, 0, file.sizeBytes);
  if (bytes === undefined) throw new Error("The file has become shorter");
  return bytes;
}

async function* streamFile(file: RemoteFile, name: string, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (file.sizeBytes > maxBytes) throw createTooLargeError(name, maxBytes);
  for (let at = 0; at < file.sizeBytes; at += STREAMED_BYTES) {
    const piece = await readBytesAt(file, at, Math.min(STREAMED_BYTES, file.sizeBytes - at));
    if (piece === undefined) throw new Error("The file has become shorter");
    yield piece;
  }
}

async function isZip(file: RemoteFile): Promise<boolean> {
  const head = await readBytesAt(file, 0, ZIP_MARK.length);
  return head !== undefined && ZIP_MARK.every((byte, index) => head[index] === byte);
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
