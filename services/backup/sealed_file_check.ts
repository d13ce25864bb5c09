/** Opens every encrypted file of a data folder and reports those that can't be opened. Changes nothing. */
import { parseVersionPart } from "../attachments/attachments.ts";
import { getOriginalFile } from "../documents/document.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { pathExists } from "../storage/atomic_file.ts";
import { getAttachmentFile, readSealedFile, type SealedFile } from "../storage/sealed_file.ts";
import { createVersionAad, parseVersionNumber } from "../storage/versions.ts";
import { DOCUMENTS, listFilesBelow, listNames, TRASH_PIECES } from "./reseal_files.ts";
import type { SealCandidate } from "./reseal_rows.ts";

/** Where to look. */
export interface SealedFileCheck {
  dataDir: string;
  sealer: Sealer;
  /** The open database, which lists the attachments. */
  database: { all<T>(sql: string): T[] };
  /** Stops after about this many bytes; `Infinity` for all. */
  maxBytes: number;
}

/** The result. */
export interface SealedFileReport {
  /** Paths in the data folder, such as `"credentials.json"`. */
  unreadable: string[];
  /** Number of files that were opened. */
  opened: number;
  /** False if `maxBytes` was reached. */
  isComplete: boolean;
}

/** An encrypted file. */
export interface SealedEntry {
  /** Relative to the data folder. */
  path: string;
  /** Path of what it belongs to, if its own doesn't say. */
  item?: string;
  /** Rejects if the file can't be opened. */
  open(): Promise<void>;
  /** Reports whether the file still belongs to the data, because a running server removes files. */
  isCurrent?(): boolean;
}

/** Opens every encrypted file, the small ones first. @throws SQLite's and the file system's errors. */
export async function checkSealedFiles({ maxBytes, ...place }: SealedFileCheck): Promise<SealedFileReport> {
  const report: SealedFileReport = { unreadable: [], opened: 0, isComplete: true };
  let bytes = 0;
  for await (const { path, open, isCurrent } of listSealedFiles(place)) {
    const { size } = await Deno.stat(`${place.dataDir}/${path}`).catch(() => ({ size: 0 }));
    if (bytes + size > maxBytes) {
      report.isComplete = false;
      continue;
    }
    bytes += size;
    try {
      await open();
      report.opened++;
    } catch {
      if (await (isCurrent?.() ?? pathExists(`${place.dataDir}/${path}`))) report.unreadable.push(path);
    }
  }
  return report;
}

/** Lists every encrypted file, the small ones first. @throws SQLite's and the file system's errors */
export async function* listSealedFiles(
  { dataDir, sealer, database }: Omit<SealedFileCheck, "maxBytes">,
): AsyncGenerator<SealedEntry> {
  const whole = (path: string, { purpose, aad }: SealCandidate): SealedEntry => ({
    path,
    open: async () => void await sealer.forPurpose(purpose).open(aad, await Deno.readFile(`${dataDir}/${path}`)),
  });
  const drain = async (purpose: string, file: SealedFile) => {
    for await (const _ of readSealedFile(sealer.forPurpose(purpose), file));
  };

  for (const [path, candidate] of Object.entries(DOCUMENTS)) {
    if (await pathExists(`${dataDir}/${path}`)) yield whole(path, candidate);
  }
  for (const name of await listNames(`${dataDir}/trash`)) {
    const path = `trash/${name}`;
    const createAad = (field: string) => ({ table: "trash", id: name, field, version: 1 });
    const pieces = TRASH_PIECES.map((field) => () =>
      drain("trash", { path: `${dataDir}/${path}`, aad: createAad(field) })
    );
    const { open } = whole(path, { purpose: "trash", aad: createAad("file") });
    yield { path, open: () => tryEach([...pieces, open]) };
  }
  const listTrash = () =>
    database.all<{ name: string; version: number }>(
      `SELECT name, created_at AS version FROM attachment UNION
       SELECT name, CAST(owner_id AS INTEGER) FROM attachment_ref WHERE owner_kind = 'trash_file'`,
    );
  for (const { name, version } of listTrash()) {
    const file = getAttachmentFile(`${dataDir}/attachments`, name, version);
    yield {
      path: file.path.slice(dataDir.length + 1),
      item: `attachments/${name}`,
      open: () => drain("attachments", file),
      isCurrent: () => listTrash().some((row) => row.name === name && row.version === version),
    };
  }
  const listDocuments = () => database.all<{ id: string; bytes: number }>("SELECT id, bytes FROM document_file");
  for (const { id, bytes } of listDocuments()) {
    const file = getOriginalFile(`${dataDir}/documents`, id);
    if (bytes === 0 && !await pathExists(file.path)) continue; // A link that wasn't fetched
    yield {
      path: `documents/${id}`,
      open: () => drain("documents", file),
      isCurrent: () => listDocuments().some((row) => row.id === id),
    };
  }
  if (!await pathExists(`${dataDir}/versions`)) return;
  for (const below of await listFilesBelow(`${dataDir}/versions`)) {
    const [kind, , version = "", part = ""] = below.split("/");
    const n = parseVersionNumber(version);
    const path = `versions/${below}`;
    if (n === undefined || part === "") continue;
    if (kind === "attachments") {
      const { name, version } = parseVersionPart(part);
      const { aad } = getAttachmentFile("", name, version);
      yield { path, open: () => drain("attachments", { path: `${dataDir}/${path}`, aad }) };
    } else if (kind === "voices") {
      yield whole(path, { purpose: "voices", aad: createVersionAad({ kind, id: part.replace(/\.sealed$/, "") }, n) });
    }
  }
}

/** Tries functions until one succeeds. @throws The last one's error. */
async function tryEach(tries: (() => Promise<void>)[]): Promise<void> {
  let failure: unknown;
  for (const attempt of tries) {
    try {
      return await attempt();
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
