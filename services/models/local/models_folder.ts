/** The models folder: safe paths inside it, never through a symbolic link, and a work folder for downloads. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, messageOf } from "../../errors.ts";
import { fileError, syncFolder } from "../../storage/atomic_file.ts";
import { isSafePath, type ModelFormat } from "./model_paths.ts";

/** Folder for incomplete downloads. No repository or file can have this name. */
const WORK_FOLDER = ".parts";

/** What a download is for. The same subject has the same key, whatever the commit. */
export interface DownloadSubject {
  repo: string;
  format: ModelFormat;
  /** For GGUF the file or its first shard; undefined for MLX. */
  file?: string;
}

/** Returns the key of a subject, which is the name of its work folder. */
export function toDownloadKey({ repo, format, file = "" }: DownloadSubject): string {
  return createHash("sha256").update(JSON.stringify([repo, format, file])).digest("hex").slice(0, 32);
}

/** `<datadir>/models`. */
export class ModelsFolder {
  /** Absolute path. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Returns the absolute path of a relative one.
   *
   * @throws {AppError} `invalid_request` if the path is not valid
   */
  resolve(path: string): string {
    if (!isSafePath(path)) throw new AppError("invalid_request", `"${path}" is not a valid path in the models folder`);
    return join(this.path, ...path.split("/"));
  }

  /** Returns the work folder of a download. */
  getWorkFolder(key: string): string {
    return join(this.path, WORK_FOLDER, key);
  }

  /** Creates a download's work folder. @throws {AppError} `storage_full`, `internal` */
  async makeWorkFolder(key: string): Promise<string> {
    await this.#makeFolders([WORK_FOLDER, key]);
    return this.getWorkFolder(key);
  }

  /** Deletes a download's work folder if it exists. @throws {AppError} `internal` */
  async removeWorkFolder(key: string): Promise<void> {
    await removeIfExists(this.getWorkFolder(key));
  }

  /** Deletes the work folders of all other downloads. */
  async sweep(keys: ReadonlySet<string>): Promise<void> {
    for await (const { name } of readDirIfExists(join(this.path, WORK_FOLDER))) {
      if (!keys.has(name)) await this.removeWorkFolder(name);
    }
  }

  /** Moves a complete file to its final path, durably. @throws {AppError} `storage_full`, `internal` */
  async place(partPath: string, path: string): Promise<void> {
    const target = this.resolve(path);
    const folders = path.split("/").slice(0, -1);
    await this.#makeFolders(folders);
    try {
      await Deno.rename(partPath, target);
      await syncFolder(join(this.path, ...folders));
    } catch (cause) {
      throw fileError(`Can't move the file to "${target}"`, cause);
    }
  }

  /** Creates folders. Refuses links, which could lead out of the models folder. */
  async #makeFolders(names: string[]): Promise<void> {
    let folder = this.path;
    for (const name of ["", ...names]) {
      folder = join(folder, name);
      try {
        await Deno.mkdir(folder, { mode: 0o700 });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.AlreadyExists)) {
          throw fileError(`Can't create the folder "${folder}"`, cause);
        }
        if (!(await Deno.lstat(folder)).isDirectory) {
          throw new AppError("internal", `Can't use "${folder}": it isn't a folder`);
        }
      }
    }
  }
}

/** Lists a folder. A missing folder is empty. @throws {AppError} `internal` if it can't be read */
export async function* readDirIfExists(folder: string): AsyncGenerator<Deno.DirEntry> {
  try {
    yield* Deno.readDir(folder);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory) return;
    throw new AppError("internal", `Can't read the folder "${folder}": ${messageOf(cause)}`, { cause });
  }
}

/** Returns the metadata of a file, or undefined if it doesn't exist. @throws {AppError} `internal` */
export async function statIfExists(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Can't access "${path}"`, cause);
  }
}

/** Deletes a file or a folder with its content, if it exists. @throws {AppError} `internal` */
export async function removeIfExists(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Can't delete "${path}"`, cause);
  }
}
