/** Temporary folders and opened storage for tests. */

import { openDatabase } from "../../../services/storage/database/database.ts";
import type { Database, Migration } from "../../../services/storage/database/database.ts";

/** A folder that is removed at the end of its scope. */
export interface TempFolder extends AsyncDisposable {
  readonly path: string;
  file(name: string): string;
}

/** Creates an empty folder with mode 0700. */
export async function tempFolder(): Promise<TempFolder> {
  const path = await Deno.makeTempDir({ prefix: "parlor-test-" });
  return {
    path,
    file: (name) => `${path}/${name}`,
    async [Symbol.asyncDispose]() {
      await Deno.remove(path, { recursive: true });
    },
  };
}

/** Opens a database that closes with the end of its scope. */
export async function testDatabase(path: string, migrations?: Migration[]): Promise<Database & AsyncDisposable> {
  const database = await openDatabase({ path, migrations });
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}

/** Returns the paths of all files below a folder. */
export async function filesBelow(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) paths.push(...await filesBelow(path));
    else paths.push(path);
  }
  return paths.sort();
}

/** Returns the paths of files that contain a text, in UTF-8 or UTF-16. */
export async function filesWithText(folder: string, text: string): Promise<string[]> {
  const utf16 = Array.from(text, (char) => `${char}\0`).join("");
  const found: string[] = [];
  for (const path of await filesBelow(folder)) {
    const bytes = await Deno.readFile(path).catch((error) => {
      // A temporary file of a write that goes on beside us: what it held lies under its final name.
      if (error instanceof Deno.errors.NotFound && path.endsWith(".tmp")) return new Uint8Array();
      throw error;
    });
    const content = new TextDecoder("latin1").decode(bytes);
    if (content.includes(text) || content.includes(utf16)) found.push(path);
  }
  return found;
}
