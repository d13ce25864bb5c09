/** Seals every sealed file of a data directory with a new key. Fails on unknown files. */
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { parseVersionPart } from "../attachments/attachments.ts";
import {
  getAttachmentFile,
  getImportSourceFile,
  IMPORT_SOURCES_PURPOSE,
  readSealedFile,
  type SealedFile,
  writeSealedFile,
} from "../storage/sealed_file.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { getOriginalFile } from "../documents/document.ts";
import { AppError } from "../errors.ts";
import { pathExists, TEMPORARY_ENDING, writeFileAtomic } from "../storage/atomic_file.ts";
import { DATABASE_ID_FILE_NAME, IMPORT_SOURCES_FOLDER } from "../storage/data_dir.ts";
import { createVersionAad, linkOrCopy, parseVersionNumber } from "../storage/versions.ts";
import { DATABASE_NAME, isBackedUp } from "./backed_up_names.ts";
import { reseal, type SealCandidate } from "./reseal_rows.ts";

/** Names in the data directory whose files aren't sealed. */
const IN_THE_CLEAR = [
  ...[
    "characters",
    "personas",
    "voices",
    "workflows",
    "config.toml",
    "session-key",
    DATABASE_ID_FILE_NAME,
    "lost+found",
  ],
];
const LENGTH_BYTES = 4;

/** Where to read and write files, and the keys. */
export interface ResealPlan {
  dataDir: string;
  /** Folder that gets the new files, laid out as the data directory. */
  folder: string;
  from: Sealer;
  to: Sealer;
}

/** Checks that every file can be resealed. @throws {AppError} `conflict` with the name of one that can't. */
export async function refuseUnknownFiles(dataDir: string): Promise<void> {
  const known = [
    ...IN_THE_CLEAR,
    ...Object.keys(DOCUMENTS),
    "attachments",
    "documents",
    "trash",
    "replies",
    "versions",
  ];
  for await (const { name } of Deno.readDir(dataDir)) {
    if (!isBackedUp(name) || name.startsWith(DATABASE_NAME) || known.includes(name)) continue;
    throw new AppError(
      "conflict",
      `Can't rotate the key: "${name}" is unknown, so it's unclear whether it's encrypted. Move it out of the data folder first`,
    );
  }
}

/** Files that are sealed as one value. */
export const DOCUMENTS: Record<string, SealCandidate> = {
  "credentials.json": {
    purpose: "credentials",
    aad: { table: "credentials.json", id: "credentials", field: "document", version: 1 },
  },
  "tokens.json": { purpose: "tokens", aad: { table: "tokens.json", id: "tokens", field: "document", version: 1 } },
};

/** Reseals all files. @returns Names of those that couldn't be decrypted, which stay as they are. */
export async function resealFiles(plan: ResealPlan, database: DatabaseSync): Promise<string[]> {
  return [
    ...await resealWhole(
      plan,
      Object.entries(DOCUMENTS).map(([path, candidate]) => ({ path, candidates: [candidate] })),
    ),
    ...await resealAttachments(plan, database),
    ...await resealOriginals(plan, database),
    ...await resealImportSources(plan),
    ...await resealTrashFolder(plan),
    ...await resealJournals(plan),
    ...await resealVersions(plan),
  ];
}

async function resealWhole(
  { dataDir, folder, from, to }: ResealPlan,
  files: { path: string; candidates: SealCandidate[] }[],
): Promise<string[]> {
  const unreadable: string[] = [];
  for (const { path, candidates } of files) {
    if (!await pathExists(`${dataDir}/${path}`)) continue;
    const old = await Deno.readFile(`${dataDir}/${path}`);
    const fresh = reseal(old, candidates, from, to);
    if (fresh === undefined) unreadable.push(path);
    await writeFileAtomic(`${folder}/${path}`, fresh ?? old);
  }
  return unreadable;
}

async function resealAttachments({ dataDir, folder, from, to }: ResealPlan, database: DatabaseSync): Promise<string[]> {
  const unreadable: string[] = [];
  await Deno.mkdir(`${folder}/attachments`, { mode: 0o700 });
  const rows = database.prepare(
    `SELECT name, created_at AS version FROM attachment UNION
     SELECT name, CAST(owner_id AS INTEGER) FROM attachment_ref WHERE owner_kind = 'trash_file'`,
  ).all() as { name: string; version: number }[];
  for (const { name, version } of rows) {
    const [old, fresh] = [dataDir, folder].map((root) => getAttachmentFile(`${root}/attachments`, name, version));
    if (await resealPieces("attachments", from, old!, to, fresh!)) continue;
    unreadable.push(`attachments ${name}`);
    if (await pathExists(old!.path)) await writeFileAtomic(fresh!.path, await Deno.readFile(old!.path));
  }
  return unreadable;
}

/** Reseals the original files of documents, including those in the trash. A link that wasn't fetched has none. */
async function resealOriginals({ dataDir, folder, from, to }: ResealPlan, database: DatabaseSync): Promise<string[]> {
  const unreadable: string[] = [];
  await Deno.mkdir(`${folder}/documents`, { mode: 0o700 });
  for (const { id } of database.prepare("SELECT id FROM document_file").all() as { id: string }[]) {
    const [old, fresh] = [dataDir, folder].map((root) => getOriginalFile(`${root}/documents`, id));
    if (!await pathExists(old!.path)) continue;
    if (await resealPieces("documents", from, old!, to, fresh!)) continue;
    unreadable.push(`documents ${id}`);
    await writeFileAtomic(fresh!.path, await Deno.readFile(old!.path));
  }
  return unreadable;
}

/** Reseals the stored files of imports. They're copies: one that can't be decrypted is left out. */
async function resealImportSources({ dataDir, folder, from, to }: ResealPlan): Promise<string[]> {
  const [source, target] = [dataDir, folder].map((root) => `${root}/${IMPORT_SOURCES_FOLDER}`) as [string, string];
  await Deno.mkdir(target, { mode: 0o700 });
  for (const name of await listNames(source)) {
    const [old, fresh] = [getImportSourceFile(source, name), getImportSourceFile(target, name)];
    await resealPieces(IMPORT_SOURCES_PURPOSE, from, old, to, fresh);
  }
  return [];
}

/** Reseals a file that is sealed in pieces. @returns False, with nothing written, if it can't be decrypted. */
async function resealPieces(
  purpose: string,
  from: Sealer,
  old: SealedFile,
  to: Sealer,
  fresh: SealedFile,
): Promise<boolean> {
  try {
    await writeSealedFile(to.forPurpose(purpose), fresh, readSealedFile(from.forPurpose(purpose), old));
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === "storage_full") throw error;
    return false;
  }
}

/** Files in the trash that are sealed in chunks, by field: removed personas, and the assets of removed cards. */
export const TRASH_PIECES = ["persona", "assets"];

/** Reseals the files in the trash. Removed cards are sealed as one value. */
async function resealTrashFolder(plan: ResealPlan): Promise<string[]> {
  const { dataDir, folder, from, to } = plan;
  await Deno.mkdir(`${folder}/trash`, { mode: 0o700 });
  const whole: string[] = [];
  for (const name of await listNames(`${dataDir}/trash`)) {
    let isDone = false;
    for (const field of TRASH_PIECES) {
      const aad = { table: "trash", id: name, field, version: 1 };
      const [old, fresh] = [dataDir, folder].map((root) => ({ path: `${root}/trash/${name}`, aad }));
      isDone ||= await resealPieces("trash", from, old!, to, fresh!);
    }
    if (!isDone) whole.push(name);
  }
  return await resealWhole(
    plan,
    whole.map((name) => ({
      path: `trash/${name}`,
      candidates: [{ purpose: "trash", aad: { table: "trash", id: name, field: "file", version: 1 } }],
    })),
  );
}

/** Reseals journals. A journal ends at the first incomplete record. */
async function resealJournals({ dataDir, folder, from, to }: ResealPlan): Promise<string[]> {
  await Deno.mkdir(`${folder}/replies`, { mode: 0o700 });
  for (const name of await listNames(`${dataDir}/replies`)) {
    const number = String(Number(name.split(".")[0]));
    const bytes = await Deno.readFile(`${dataDir}/replies/${name}`);
    const view = new DataView(bytes.buffer);
    const records: Uint8Array[] = [];
    for (let at = 0, index = 0; at + LENGTH_BYTES <= bytes.length; index++) {
      const end = at + LENGTH_BYTES + view.getUint32(at);
      const aad = { table: "replies", id: number, field: "record", version: index };
      const fresh = end > bytes.length
        ? undefined
        : reseal(bytes.subarray(at + LENGTH_BYTES, end), [{ purpose: "journal", aad }], from, to);
      if (fresh === undefined) break;
      records.push(bytes.subarray(at, at + LENGTH_BYTES), fresh); // Same length as before.
      at = end;
    }
    await writeFileAtomic(
      `${folder}/replies/${name}`,
      new Uint8Array(await new Blob(records as BlobPart[]).arrayBuffer()),
    );
  }
  return [];
}

/** Copies versions. Those of cards, personas and workflows aren't sealed. */
async function resealVersions({ dataDir, folder, from, to }: ResealPlan): Promise<string[]> {
  const unreadable: string[] = [];
  await Deno.mkdir(`${folder}/versions`, { mode: 0o700 });
  if (!await pathExists(`${dataDir}/versions`)) return [];
  for (const path of await listFilesBelow(`${dataDir}/versions`)) {
    const [old, fresh] = [dataDir, folder].map((root) => `${root}/versions/${path}`) as [string, string];
    await Deno.mkdir(dirname(fresh), { recursive: true, mode: 0o700 });
    const [kind, , version, part = ""] = path.split("/");
    const { isSealed, isDone } = await resealVersion(
      kind!,
      { old, fresh, n: parseVersionNumber(version ?? ""), part },
      from,
      to,
    );
    if (isSealed && !isDone) unreadable.push(`versions ${path}`);
    if (!isDone) await linkOrCopy(old, fresh);
  }
  return unreadable;
}

async function resealVersion(
  kind: string,
  { old, fresh, n, part }: { old: string; fresh: string; n: number | undefined; part: string },
  from: Sealer,
  to: Sealer,
): Promise<{ isSealed: boolean; isDone: boolean }> {
  if (n === undefined || part === "" || (kind !== "attachments" && kind !== "voices")) {
    return { isSealed: false, isDone: false };
  }
  if (kind === "attachments") {
    const { name, version } = parseVersionPart(part);
    const { aad } = getAttachmentFile("", name, version);
    const isDone = await resealPieces("attachments", from, { path: old, aad }, to, { path: fresh, aad });
    return { isSealed: true, isDone };
  }
  const aad = createVersionAad({ kind, id: part.replace(/\.sealed$/, "") }, n);
  const bytes = reseal(await Deno.readFile(old), [{ purpose: "voices", aad }], from, to);
  if (bytes !== undefined) await writeFileAtomic(fresh, bytes);
  return { isSealed: true, isDone: bytes !== undefined };
}

/** Lists files with their paths relative to a folder. */
export async function listFilesBelow(root: string, path = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory, isFile } of Deno.readDir(path === "" ? root : `${root}/${path}`)) {
    const below = path === "" ? name : `${path}/${name}`;
    if (isDirectory) found.push(...await listFilesBelow(root, below));
    else if (isFile && !name.endsWith(TEMPORARY_ENDING)) found.push(below);
  }
  return found;
}

/** Lists the files directly in a folder; none if there is no folder. */
export async function listNames(folder: string): Promise<string[]> {
  if (!await pathExists(folder)) return [];
  return (await Array.fromAsync(Deno.readDir(folder))).filter(({ isFile, name }) => isFile && !name.endsWith(".tmp"))
    .map(({ name }) => name);
}
