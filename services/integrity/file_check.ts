/** Opens every file of the data folder that has to be readable, and names those that aren't. */
import { listSealedFiles } from "../backup/sealed_file_check.ts";
import { CardCodec } from "../characters/card/card_codec.ts";
import { CARD_NAME } from "../characters/index/card_rows.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { Sandbox } from "../platform/sandbox/sandbox.ts";
import { pathExists } from "../storage/atomic_file.ts";

/** Where to look. */
export interface FilePlace {
  dataDir: string;
  sealer: Sealer;
  /** The open database, which lists the attachments. */
  database: { all<T>(sql: string): T[] };
}

/** A file that was opened. */
export interface CheckedFile {
  /** Path of its item: `"attachments/NAME"`. */
  path: string;
  sizeBytes: number;
  isReadable: boolean;
}

/** Folders of files that people may add, change and remove by hand. Such a file is damaged only if it can't be read. */
const PLAIN_FOLDERS = ["characters", "personas", "workflows"] as const;

/** Opens the files one after another, as slowly as they are asked for. @param only Path of the one item to check */
export async function* checkFiles(place: FilePlace, only?: string): AsyncGenerator<CheckedFile> {
  const { dataDir } = place;
  for await (const { path: file, item: path = file, open, isCurrent } of listSealedFiles(place)) {
    if (only !== undefined && path !== only) continue;
    const sizeBytes = (await Deno.stat(`${dataDir}/${file}`).catch(() => undefined))?.size ?? 0;
    const isReadable = await open().then(() => true, () => false);
    if (!isReadable && !await (isCurrent?.() ?? pathExists(`${dataDir}/${file}`))) continue; // Removed meanwhile
    yield { path, sizeBytes, isReadable };
  }
  // Long cards are read by a child. It starts with the first of them.
  await using sandbox = new Sandbox();
  const codec = new CardCodec(sandbox);
  for (const folder of PLAIN_FOLDERS) {
    const names = await Array.fromAsync(Deno.readDir(`${dataDir}/${folder}`)).catch(() => []);
    for (const { name, isFile } of names) {
      if (!isFile || !CARD_NAME.test(name) || (folder === "workflows" && !/\.json$/i.test(name))) continue;
      const path = `${folder}/${name.replace(/\.[^.]+$/, "")}`;
      if (only !== undefined && path !== only) continue;
      const found = await readPlain(`${dataDir}/${folder}/${name}`, folder === "workflows" ? undefined : codec);
      if (found !== undefined) yield { path, ...found };
    }
  }
}

/** @returns `undefined` if it was removed meanwhile. */
async function readPlain(
  path: string,
  codec: CardCodec | undefined,
): Promise<{ sizeBytes: number; isReadable: boolean } | undefined> {
  let sizeBytes = 0;
  try {
    sizeBytes = Deno.statSync(path).size;
    if (codec === undefined) JSON.parse(Deno.readTextFileSync(path));
    else await checkCard(path, codec);
    return { sizeBytes, isReadable: true };
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? undefined : { sizeBytes, isReadable: false };
  }
}

/** @throws {AppError} if there is no card in it. */
async function checkCard(path: string, codec: CardCodec): Promise<void> {
  using file = await Deno.open(path);
  await codec.check(path, file);
}
