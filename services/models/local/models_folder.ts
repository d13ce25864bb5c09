/** The folder of models: places inside it by checked names, never through a symbolic link, and the corner for what is not whole. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, messageOf } from "../../errors.ts";
import { fileError, syncFolder } from "../../storage/atomic_file.ts";
import { isSafePath, type ModelFormat } from "./model_paths.ts";

/** Folder below the models folder for downloads that are not whole; its name is none that a repository or file can have. */
const WORK_FOLDER = ".parts";

/** What a download is of: two asks for the same thing have the same key, whatever commit is the newest. */
export interface DownloadSubject {
  repo: string;
  format: ModelFormat;
  /** Of GGUF the file, or the first of its shards; of MLX nothing. */
  file?: string;
}

/** Gives the key of a subject: the name of its work folder. */
export function keyOf({ repo, format, file = "" }: DownloadSubject): string {
  return createHash("sha256").update(JSON.stringify([repo, format, file])).digest("hex").slice(0, 32);
}

/** `<datadir>/models`. */
export class ModelsFolder {
  /** Absolute. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Gives the absolute path of something below, by the names the API uses.
   *
   * @throws {AppError} `invalid_request` for a path that is none
   */
  resolve(path: string): string {
    if (!isSafePath(path)) throw new AppError("invalid_request", `Cannot use "${path}" as a path below models`);
    return join(this.path, ...path.split("/"));
  }

  /** Gives where a download's parts lie. */
  workFolder(key: string): string {
    return join(this.path, WORK_FOLDER, key);
  }

  /** Makes a download's work folder. @throws {AppError} `storage_full`, `internal` */
  async makeWorkFolder(key: string): Promise<string> {
    await this.#makeFolders([WORK_FOLDER, key]);
    return this.workFolder(key);
  }

  /** Removes a download's work folder, also where there is none. @throws {AppError} `internal` */
  async removeWorkFolder(key: string): Promise<void> {
    await removeIfThere(this.workFolder(key));
  }

  /** Removes what no download speaks of any more. */
  async sweep(keys: ReadonlySet<string>): Promise<void> {
    for await (const { name } of readIfThere(join(this.path, WORK_FOLDER))) {
      if (!keys.has(name)) await this.removeWorkFolder(name);
    }
  }

  /** Gives a whole file its final name, durably. @throws {AppError} `storage_full`, `internal` */
  async place(partPath: string, path: string): Promise<void> {
    const target = this.resolve(path);
    const folders = path.split("/").slice(0, -1);
    await this.#makeFolders(folders);
    try {
      await Deno.rename(partPath, target);
      await syncFolder(join(this.path, ...folders));
    } catch (cause) {
      throw fileError(`Cannot place "${target}"`, cause);
    }
  }

  /** Folders below, each a real one: a link planted there would lead the bytes elsewhere. */
  async #makeFolders(names: string[]): Promise<void> {
    let folder = this.path;
    for (const name of ["", ...names]) {
      folder = join(folder, name);
      try {
        await Deno.mkdir(folder, { mode: 0o700 });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.AlreadyExists)) throw fileError(`Cannot make the folder "${folder}"`, cause);
        if (!(await Deno.lstat(folder)).isDirectory) {
          throw new AppError("internal", `Cannot use "${folder}" as a folder: something else has that name`);
        }
      }
    }
  }
}

/** Lists a folder; one that is not there is empty. @throws {AppError} `internal` when it cannot be read */
export async function* readIfThere(folder: string): AsyncGenerator<Deno.DirEntry> {
  try {
    yield* Deno.readDir(folder);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound || cause instanceof Deno.errors.NotADirectory) return;
    throw new AppError("internal", `Cannot read the folder "${folder}": ${messageOf(cause)}`, { cause });
  }
}

/** Gives what is known of a name, `undefined` when there is nothing of it. @throws {AppError} `internal` */
export async function lookIfThere(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw fileError(`Cannot look at "${path}"`, cause);
  }
}

/** Removes a file or a folder with all in it. @throws {AppError} `internal` */
export async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Cannot remove "${path}"`, cause);
  }
}
