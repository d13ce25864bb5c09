/**
 * The files of an import on disk, and its temporary files, for the child that reads the import: it asks for bytes, and
 * nothing here looks at them. The child's side is import_source.ts.
 */
import { basename, join } from "node:path";
import { MAX_CHARX_BYTES } from "../characters/charx/charx_format.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { readPiece } from "../platform/sandbox/remote_file.ts";
import type { SandboxFunction } from "../platform/sandbox/sandbox.ts";
import { toFileError } from "../storage/atomic_file.ts";
import { MAX_FILES } from "./import_zip.ts";

/** What the child is told about the import. */
export interface ImportFacts {
  /** Of a single file; absent for a folder. */
  name?: string;
  sizeBytes: number;
}

/** A page of the files of a folder. */
export interface ImportFileList {
  /** Path relative to the folder, with slashes, and size in bytes. */
  files: [path: string, sizeBytes: number][];
  /** The first paths that were skipped because they aren't regular files. Only in the first page. */
  skippedPaths: string[];
}

/** Id of an import that is one file. */
export const WHOLE_IMPORT = "import";
/** Number of files in a page of a list. */
export const LISTED_FILES = 5_000;
/** Maximum number of skipped paths in the report. */
const MAX_SKIPPED = 1_000;
const MAX_DEPTH = 20;
/** Temporary files hold what the import holds, perhaps inflated; a folder or ZIP file may repeat it for characters. */
const KEPT_RATIO = 100;
const ALWAYS_KEPT_BYTES = 1024 * 1024 * 1024;

/** The files of one import. Close it after use. */
export class ImportFiles {
  readonly facts: ImportFacts;
  readonly #root: string;
  readonly #files: [path: string, sizeBytes: number][];
  readonly #skippedPaths: string[];
  readonly #scratch: string;
  #opened: { id: string; file: Deno.FsFile } | undefined;
  #kept: { id: string; file: Deno.FsFile; sizeBytes: number } | undefined;
  readonly #keptPaths = new Map<string, string>();
  #keptBytes = 0;

  /**
   * Finds the files.
   *
   * @param name Name of a single file.
   * @param scratch Folder for temporary files; created with the first one, and removed by `close`.
   * @throws {AppError} `not_found`, `too_large`
   */
  static async open(path: string, name: string | undefined, scratch: string): Promise<ImportFiles> {
    let info: Deno.FileInfo;
    try {
      info = await Deno.stat(path);
    } catch (cause) {
      throw new AppError("not_found", `Can't import "${path}": it can't be read`, { cause });
    }
    if (!info.isDirectory) {
      return new ImportFiles(path, { name: name ?? basename(path), sizeBytes: info.size }, [], [], scratch);
    }
    const { files, skippedPaths } = await listFolder(path);
    return new ImportFiles(path, { sizeBytes: sum(files.map(([, size]) => size)) }, files, skippedPaths, scratch);
  }

  private constructor(
    root: string,
    facts: ImportFacts,
    files: [string, number][],
    skippedPaths: string[],
    scratch: string,
  ) {
    this.#root = root;
    this.facts = facts;
    this.#files = files;
    this.#skippedPaths = skippedPaths;
    this.#scratch = scratch;
  }

  /** What the child may call. A file that can't be read is its answer; a full disk ends the import. */
  readonly functions: Record<"list" | "file" | "keep", SandboxFunction> = {
    list: (value) => {
      const from = Number(value) || 0;
      const page: ImportFileList = {
        files: this.#files.slice(from, from + LISTED_FILES),
        skippedPaths: from === 0 ? this.#skippedPaths : [],
      };
      return { value: page };
    },
    file: async (value) => {
      try {
        return { bytes: [await readPiece(await this.#openFile(String((value as { id?: unknown })?.id)), value)] };
      } catch (error) {
        return { value: getErrorMessage(error) };
      }
    },
    keep: async (value, [piece]) => await this.#keep(String(value), piece ?? new Uint8Array()),
  };

  /** Returns the path of a temporary file or of the import. @throws {AppError} `unprocessable` for anything else */
  getPath(id: string): string {
    const path = id === WHOLE_IMPORT && this.facts.name !== undefined ? this.#root : this.#keptPaths.get(id);
    if (path === undefined) throw new AppError("unprocessable", `The import has no file "${id}"`);
    return path;
  }

  /** Removes a temporary file once it's imported. Does nothing for other paths. */
  async forget(path: string): Promise<void> {
    for (const [id, kept] of this.#keptPaths) {
      if (kept !== path) continue;
      this.#keptPaths.delete(id);
      await Deno.remove(path).catch(() => {});
    }
  }

  /** Closes all files and removes the temporary ones. */
  async close(): Promise<void> {
    this.#opened?.file.close();
    this.#kept?.file.close();
    this.#opened = this.#kept = undefined;
    await Deno.remove(this.#scratch, { recursive: true }).catch(() => {});
  }

  /** Opens a file, and closes the one before: an import reads one after another. */
  async #openFile(id: string): Promise<Deno.FsFile> {
    if (this.#opened?.id === id) return this.#opened.file;
    const listed = /^\d{1,7}$/.test(id) ? this.#files[Number(id)] : undefined;
    const file = await Deno.open(listed === undefined ? this.getPath(id) : join(this.#root, listed[0]));
    this.#opened?.file.close();
    this.#opened = { id, file };
    return file;
  }

  /** Adds a piece to a temporary file, which is created with its first piece. */
  async #keep(id: string, piece: Uint8Array): Promise<void> {
    try {
      if (this.#kept?.id !== id) {
        if (this.#keptPaths.has(id)) {
          throw new AppError("unprocessable", "Can't read the import: its file is written twice");
        }
        await Deno.mkdir(this.#scratch, { recursive: true, mode: 0o700 });
        const path = join(this.#scratch, crypto.randomUUID());
        const file = await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
        this.#kept?.file.close();
        this.#kept = { id, file, sizeBytes: 0 };
        this.#keptPaths.set(id, path);
      }
      const { file } = this.#kept!;
      this.#kept!.sizeBytes += piece.length;
      this.#keptBytes += piece.length;
      const maxBytes = this.facts.sizeBytes * KEPT_RATIO + ALWAYS_KEPT_BYTES;
      if (this.#kept!.sizeBytes > 2 * MAX_CHARX_BYTES || this.#keptBytes > maxBytes) {
        throw new AppError("too_large", "Can't import it: its temporary files are too large");
      }
      for (let at = 0; at < piece.length;) at += await file.write(piece.subarray(at));
    } catch (cause) {
      throw toFileError("Can't write a temporary file", cause);
    }
  }
}

/** Lists all files below a folder, without following links. @throws {AppError} `too_large` */
async function listFolder(root: string): Promise<{ files: [string, number][]; skippedPaths: string[] }> {
  const files: [string, number][] = [];
  const skippedPaths: string[] = [];
  const skip = (path: string) => skippedPaths.length < MAX_SKIPPED && skippedPaths.push(path);
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) return void skip(below);
    for await (const entry of Deno.readDir(join(root, below))) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      // A link may lead anywhere, even to its own folder.
      if (entry.isDirectory) await walk(path, depth + 1);
      else if (!entry.isFile) skip(path);
      else files.push([path, (await Deno.lstat(join(root, path))).size]);
      if (files.length > MAX_FILES) {
        throw new AppError("too_large", `Can't import "${root}": it has more than ${MAX_FILES} files`);
      }
    }
  };
  await walk("", 0);
  return { files, skippedPaths };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
