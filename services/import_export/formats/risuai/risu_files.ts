/** The files that RisuAI's database names, wherever they lie: in a backup, or in the data folder of one of its forms. */
import { Buffer } from "node:buffer";
import type { ImportSource, SourceFile } from "../../import_source.ts";
import { RISU_DATABASE } from "./risu_save.ts";
import { baseOf } from "../../file_names.ts";

/** The database in a data folder. */
const FOLDER_DATABASE = "database.bin";
/** Names of files in the folder of its server are keys written in hexadecimal digits. */
const HEX_NAME = /^(?:[0-9a-f]{2}){6,}$/i;
const KEYS = /^(assets|database|coldstorage|remotes)\//;

/** Files by the last part of RisuAI's names for them. */
export class RisuFiles {
  readonly #byName = new Map<string, SourceFile>();

  constructor(source: ImportSource) {
    for (const file of source.files) this.#byName.set(baseOf(risuKeyOf(file.path)), file);
  }

  /** Gives the database, where there is one. */
  get database(): SourceFile | undefined {
    return this.#byName.get(RISU_DATABASE) ?? this.#byName.get(FOLDER_DATABASE);
  }

  /** Gives the file of `assets/1f2e.png` or of any other name in the database. */
  find(key: string): SourceFile | undefined {
    return this.#byName.get(baseOf(key));
  }
}

/** Gives RisuAI's own name for a file. */
export function risuKeyOf(path: string): string {
  const name = baseOf(path);
  const key = HEX_NAME.test(name) ? Buffer.from(name, "hex").toString() : "";
  return KEYS.test(key) ? key : path;
}
