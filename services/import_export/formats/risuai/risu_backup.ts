/**
 * RisuAI's local backup: entries of a name and content, each with its length. Images come first and the database last,
 * so a backup of gigabytes is scanned by its lengths.
 *
 * @see https://github.com/kwaroran/RisuAI drive/backuplocal.ts at 460ecae (2025-12-31)
 */
import { AppError } from "../../../errors.ts";
import { readBytesAt } from "../../../storage/atomic_file.ts";
import { MAX_FILES, tooLarge } from "../../import_zip.ts";
import type { ImportSource, SourceFile } from "../../import_source.ts";
import { RISU_DATABASE } from "./risu_save.ts";

interface Entry extends SourceFile {
  at: number;
}

/** A name is a hash with an extension, or the name of the database. */
const MAX_NAME_BYTES = 512;
const LENGTH_BYTES = 4;

/** Opens a backup; `undefined` if the file doesn't start like one. An incomplete last entry is ignored. */
export async function openRisuBackup(path: string): Promise<ImportSource | undefined> {
  const file = await Deno.open(path);
  let isOurs = false;
  try {
    const { size } = await file.stat();
    const entries = await readEntries(file, size);
    if (entries.size === 0) return undefined;
    isOurs = true;
    const read: ImportSource["read"] = async ({ path: name }, maxBytes) => {
      const entry = entries.get(name);
      if (entry === undefined) throw new AppError("not_found", `The backup has no "${name}"`);
      if (entry.sizeBytes > maxBytes) throw tooLarge(name, maxBytes);
      const bytes = await readBytesAt(file, entry.at, entry.sizeBytes);
      if (bytes === undefined) throw new AppError("unprocessable", `"${name}" is incomplete`);
      return bytes;
    };
    return {
      files: [...entries.values()].map(({ path, sizeBytes }) => ({ path, sizeBytes })),
      passedOver: [],
      read,
      async *pieces(wanted, maxBytes) {
        yield await read(wanted, maxBytes);
      },
      close: () => file.close(),
    };
  } finally {
    if (!isOurs) file.close();
  }
}

async function readEntries(file: Deno.FsFile, size: number): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  for (let at = 0; at + LENGTH_BYTES <= size;) {
    const nameBytes = await readLength(file, at);
    if (nameBytes === undefined || nameBytes === 0 || nameBytes > MAX_NAME_BYTES) break;
    const name = await readBytesAt(file, at + LENGTH_BYTES, nameBytes);
    const sizeBytes = await readLength(file, at + LENGTH_BYTES + nameBytes);
    if (name === undefined || sizeBytes === undefined) break;
    const path = new TextDecoder().decode(name);
    if (path !== RISU_DATABASE && !/^[^/\\\0]+\.[a-z0-9]{2,5}$/i.test(path)) break;
    const contentAt = at + 2 * LENGTH_BYTES + nameBytes;
    if (contentAt + sizeBytes > size) break;
    entries.set(path, { path, sizeBytes, at: contentAt });
    if (entries.size > MAX_FILES) {
      throw new AppError("too_large", `Can't import the backup: it has more than ${MAX_FILES} files`);
    }
    at = contentAt + sizeBytes;
  }
  return entries;
}

async function readLength(file: Deno.FsFile, at: number): Promise<number | undefined> {
  const bytes = await readBytesAt(file, at, LENGTH_BYTES);
  return bytes && new DataView(bytes.buffer).getUint32(0, true);
}
