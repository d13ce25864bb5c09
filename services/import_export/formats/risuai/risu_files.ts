/** Finds the files that RisuAI's database names, in a backup or a data folder. */
import { Buffer } from "node:buffer";
import { getBaseName, type ImportSource, type SourceFile } from "../../import_source.ts";
import { RISU_DATABASE } from "./risu_save.ts";

/** The database in a data folder. */
const FOLDER_DATABASE = "database.bin";
/** The server's data folder uses hex-encoded keys as file names. */
const HEX_NAME = /^(?:[0-9a-f]{2}){6,}$/i;
const KEYS = /^(assets|database|coldstorage|remotes)\//;

/** Files by the last part of RisuAI's names. */
export class RisuFiles {
  readonly #byName = new Map<string, SourceFile>();

  constructor(source: ImportSource) {
    for (const file of source.files) this.#byName.set(getBaseName(getRisuKey(file.path)), file);
  }

  /** The database, if there is one. */
  get database(): SourceFile | undefined {
    return this.#byName.get(RISU_DATABASE) ?? this.#byName.get(FOLDER_DATABASE);
  }

  /** Finds the file for a name such as `assets/1f2e.png`. */
  find(key: string): SourceFile | undefined {
    return this.#byName.get(getBaseName(key));
  }
}

/** Returns RisuAI's name for a file. */
export function getRisuKey(path: string): string {
  const name = getBaseName(path);
  const key = HEX_NAME.test(name) ? Buffer.from(name, "hex").toString() : "";
  return KEYS.test(key) ? key : path;
}
