/** A zip as an import: of gigabytes no more is held than its directory and one entry. */
import { AppError } from "../errors.ts";
import { contentOf, contentPieces, readZipDirectory, type ZipEntry } from "../storage/zip/zip_reader.ts";
import { MAX_FILES, tooLarge } from "./import_limits.ts";
import type { ImportSource, SourceFile } from "./import_source.ts";

/** Text is packed to a tenth; a thousandth, read file by file without end, is somebody's trap. */
const MOST_INFLATED = 100;
const ALWAYS_INFLATED_BYTES = 256 * 1024 * 1024;

/** Opens a zip. @throws {AppError} `unprocessable`, `too_large` */
export async function openZip(path: string): Promise<ImportSource> {
  const file = await Deno.open(path);
  try {
    const { size } = await file.stat();
    const entries = new Map<string, ZipEntry>();
    const passedOver: string[] = [];
    for (const entry of (await readZipDirectory(file, MAX_FILES)).entries) {
      if (entry.path.endsWith("/")) continue;
      if (isPlainPath(entry.path) && !entries.has(entry.path)) entries.set(entry.path, entry);
      else passedOver.push(entry.path);
    }
    const maxInflated = size * MOST_INFLATED + ALWAYS_INFLATED_BYTES;
    let inflated = 0;
    const taken = ({ path }: SourceFile, maxBytes: number): ZipEntry => {
      const entry = entries.get(path);
      if (entry === undefined) throw new AppError("not_found", `The zip has no "${path}"`);
      if (entry.sizeBytes > maxBytes) throw tooLarge(path, maxBytes);
      inflated += entry.sizeBytes;
      if (inflated <= maxInflated) return entry;
      throw new AppError("too_large", "Cannot import the zip: it inflates to more than a hundred times its size");
    };
    return {
      path,
      files: [...entries.values()].map(({ path, sizeBytes }) => ({ path, sizeBytes }))
        .sort((a, b) => a.path < b.path ? -1 : 1),
      passedOver,
      read: async (wanted, maxBytes) => await contentOf(file, taken(wanted, maxBytes)),
      pieces: (wanted, maxBytes) => contentPieces(file, taken(wanted, maxBytes)),
      close: () => file.close(),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Says whether a path stays inside: it is never opened, but what pretends to lie outside is not what it claims to be. */
export function isPlainPath(path: string): boolean {
  return path !== "" && path.length <= 4096 && !/^[/\\]|^[A-Za-z]:|\\|\0/.test(path) &&
    !path.split("/").some((name) => name === ".." || name === "." || name === "");
}
