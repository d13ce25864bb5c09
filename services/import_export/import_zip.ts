/** A ZIP file as an import source, and the limits of all imports. Only its directory and one entry are in memory. */
import { AppError } from "../errors.ts";
import { readContent, readZipDirectory, streamContent, type ZipEntry } from "../storage/zip/zip_reader.ts";
import type { RandomAccessFile } from "../storage/atomic_file.ts";
import type { ImportSource, SourceFile } from "./import_source.ts";

/** Maximum number of files; more than years with such a program produce. */
export const MAX_FILES = 500_000;

/** Creates the error for a file that exceeds its limit. */
export function createTooLargeError(path: string, maxBytes: number): AppError {
  return new AppError("too_large", `"${path}" is larger than ${maxBytes} bytes`);
}

/** Maximum ratio. Text compresses to a tenth; a thousandth, file after file, is a ZIP bomb. */
const MAX_RATIO = 100;
const ALWAYS_INFLATED_BYTES = 256 * 1024 * 1024;

/** Opens a ZIP file. @throws {AppError} `unprocessable`, `too_large` */
export async function openZip(file: RandomAccessFile): Promise<ImportSource> {
  const entries = new Map<string, ZipEntry>();
  const skippedPaths: string[] = [];
  for (const entry of (await readZipDirectory(file, MAX_FILES)).entries) {
    if (entry.path.endsWith("/")) continue;
    if (isPlainPath(entry.path) && !entries.has(entry.path)) entries.set(entry.path, entry);
    else skippedPaths.push(entry.path);
  }
  const maxInflated = (await file.stat()).size * MAX_RATIO + ALWAYS_INFLATED_BYTES;
  let inflated = 0;
  const releaseEntry = ({ path }: SourceFile, maxBytes: number): ZipEntry => {
    const entry = entries.get(path);
    if (entry === undefined) throw new AppError("not_found", `The ZIP file has no "${path}"`);
    if (entry.sizeBytes > maxBytes) throw createTooLargeError(path, maxBytes);
    inflated += entry.sizeBytes;
    if (inflated <= maxInflated) return entry;
    throw new AppError(
      "too_large",
      `Can't import the ZIP file: it decompresses to more than ${MAX_RATIO} times its size`,
    );
  };
  return {
    isZip: true,
    files: [...entries.values()].map(({ path, sizeBytes }) => ({ path, sizeBytes }))
      .sort((a, b) => a.path < b.path ? -1 : 1),
    skippedPaths,
    read: async (entry, maxBytes) => await readContent(file, releaseEntry(entry, maxBytes)),
    stream: (entry, maxBytes) => streamContent(file, releaseEntry(entry, maxBytes)),
  };
}

/**
 * Reports whether a path stays inside the archive. Paths are never opened, but one that leads outside is suspicious.
 */
function isPlainPath(path: string): boolean {
  return path !== "" && path.length <= 4096 && !/^[/\\]|^[A-Za-z]:|\\|\0/.test(path) &&
    !path.split("/").some((name) => name === ".." || name === "." || name === "");
}
