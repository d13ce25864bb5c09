/** Where an import reads: a folder, a zip, a backup of RisuAI, or one file, all alike a list of files. Names in it are only ever compared, never opened. */
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { AppError } from "../errors.ts";
import { filePieces } from "../storage/file_pieces.ts";
import { MAX_FILES, tooLarge } from "./import_limits.ts";
import { openRisuBackup } from "./formats/risuai/risu_backup.ts";
import { openZip } from "./import_zip.ts";

/** One file of an import. */
export interface SourceFile {
  /** With slashes, relative to the import's own root. */
  path: string;
  sizeBytes: number;
}

/** An opened import. */
export interface ImportSource {
  readonly files: readonly SourceFile[];
  /** Paths that were passed over, since they lead outside or are no files. */
  readonly passedOver: readonly string[];
  /** Where the import itself lies, when it is one zip. */
  readonly path?: string;
  /** Reads one of `files` whole. @throws {AppError} `too_large`; `unprocessable` when it is damaged */
  read(file: SourceFile, maxBytes: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Gives one of `files` piece by piece, each of some 100 KiB. @throws {AppError} as `read` */
  pieces(file: SourceFile, maxBytes: number): AsyncIterable<Uint8Array>;
  close(): void;
}

const MAX_DEPTH = 20;
const ZIP_MARK = [0x50, 0x4b, 0x03, 0x04];

/**
 * Opens a folder, a zip or a backup of RisuAI (told by their content), or a single file.
 *
 * @param name What a single file is called.
 * @throws {AppError} `not_found`, `unprocessable`, `too_large`
 */
export async function openSource(path: string, name = basename(path)): Promise<ImportSource> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.stat(path);
  } catch (cause) {
    throw new AppError("not_found", `Cannot import "${path}": it cannot be read`, { cause });
  }
  if (info.isDirectory) return await openFolder(path);
  if (await isZip(path)) return await openZip(path);
  return await openRisuBackup(path) ?? {
    files: [{ path: name, sizeBytes: info.size }],
    passedOver: [],
    read: (_, maxBytes) => readFile(path, name, maxBytes),
    pieces: (_, maxBytes) => piecesOf(path, name, maxBytes),
    close: () => {},
  };
}

/** Gives an id that the same things always give: 26 letters, digits, `_` or `-`. */
export function stableId(...parts: string[]): string {
  return `i${createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 25)}`;
}

/** Gives what tells one content from another. */
export function contentHash(content: unknown): string {
  const hash = createHash("sha256");
  for (const text of jsonPieces(content, 2)) hash.update(text);
  return hash.digest("base64url").slice(0, 22);
}

/** Gives what `JSON.stringify` would, with the items of arrays one by one: the text of a long chat is never whole in memory. */
function* jsonPieces(value: unknown, levels: number): Generator<string> {
  if (!Array.isArray(value) || levels === 0) return yield JSON.stringify(value) ?? "";
  yield "[";
  for (const [index, item] of value.entries()) {
    if (index > 0) yield ",";
    yield* jsonPieces(item ?? null, levels - 1);
  }
  yield "]";
}

async function openFolder(root: string): Promise<ImportSource> {
  const files: SourceFile[] = [];
  const passedOver: string[] = [];
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) return void passedOver.push(below);
    for await (const entry of Deno.readDir(join(root, below))) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      // A link may lead anywhere, and back to where it began.
      if (entry.isDirectory) await walk(path, depth + 1);
      else if (!entry.isFile) passedOver.push(path);
      else files.push({ path, sizeBytes: (await Deno.lstat(join(root, path))).size });
      if (files.length > MAX_FILES) {
        throw new AppError("too_large", `Cannot import "${root}": it has more than ${MAX_FILES} files`);
      }
    }
  };
  await walk("", 0);
  files.sort((a, b) => a.path < b.path ? -1 : 1);
  return {
    files,
    passedOver,
    read: ({ path }, maxBytes) => readFile(join(root, path), path, maxBytes),
    pieces: ({ path }, maxBytes) => piecesOf(join(root, path), path, maxBytes),
    close: () => {},
  };
}

async function readFile(path: string, name: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const { size } = await Deno.stat(path);
  if (size > maxBytes) throw tooLarge(name, maxBytes);
  return await Deno.readFile(path);
}

async function* piecesOf(path: string, name: string, maxBytes: number): AsyncGenerator<Uint8Array> {
  if ((await Deno.stat(path)).size > maxBytes) throw tooLarge(name, maxBytes);
  yield* filePieces(path);
}

async function isZip(path: string): Promise<boolean> {
  using file = await Deno.open(path);
  const head = new Uint8Array(ZIP_MARK.length);
  const count = await file.read(head);
  return count === head.length && ZIP_MARK.every((byte, index) => head[index] === byte);
}
