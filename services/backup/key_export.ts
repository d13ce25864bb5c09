/** Export and import of the storage key. */
import { join } from "node:path";
import { openWithPassphrase, type PassphraseSeal, sealWithPassphrase } from "../crypto/passphrase.ts";
import { findStorageKey, parseStorageKey, settleKeyCheck, STORAGE_KEY_FILE_NAME } from "../crypto/storage_key.ts";
import { createSealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import { fileExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { openDataDir } from "../storage/data_dir.ts";
import { openReader } from "../storage/database/database.ts";
import { DATABASE_NAME } from "./data_files.ts";

interface ExportedKey {
  kind: "parlor storage key";
  created_at: string;
  key: PassphraseSeal;
}

/** Returns the text of an exported key: JSON sealed with a passphrase, or 64 hex digits without one. */
export async function exportedKey(
  { key, passphrase, nowMs }: { key: Uint8Array; passphrase?: string; nowMs: number },
): Promise<string> {
  if (passphrase === undefined) return `${Array.from(key, (byte) => byte.toString(16).padStart(2, "0")).join("")}\n`;
  const exported: ExportedKey = {
    kind: "parlor storage key",
    created_at: new Date(nowMs).toISOString(),
    key: await sealWithPassphrase(passphrase, key),
  };
  return `${JSON.stringify(exported, null, 2)}\n`;
}

/**
 * Reads an exported key, or a key file in any encoding.
 *
 * @throws {AppError} `invalid_request` for a wrong passphrase or an unreadable file, `internal` if it isn't a key.
 */
export async function readExportedKey(path: string, passphrase: () => Promise<string>): Promise<Uint8Array> {
  const content = await Deno.readFile(path).catch((cause) => {
    throw new AppError("invalid_request", `Can't read the key from "${path}": ${messageOf(cause)}`, { cause });
  });
  const exported = parseExported(content);
  return exported === undefined
    ? parseStorageKey(content, path)
    : await openWithPassphrase(await passphrase(), exported.key);
}

/**
 * Adds a key to a data directory that has none.
 *
 * @returns False if the same key was there already.
 * @throws {AppError} `conflict` if another key is there, a server is running, or the data was sealed with another key.
 */
export async function importKey(path: string, key: Uint8Array): Promise<boolean> {
  const dataDir = await openDataDir(path);
  try {
    const present = await findStorageKey({ dataDir: dataDir.path });
    if (present?.every((byte, index) => byte === key[index])) return false;
    if (present !== undefined) {
      throw new AppError("conflict", `Can't import the key: "${dataDir.path}" already has a different one`);
    }
    await refuseForeign(dataDir.file(DATABASE_NAME), key);
    await writeFileAtomic(join(dataDir.path, STORAGE_KEY_FILE_NAME), key);
    return true;
  } finally {
    dataDir.close();
  }
}

async function refuseForeign(database: string, key: Uint8Array): Promise<void> {
  if (!await fileExists(database)) return;
  const reader = openReader(database);
  try {
    await settleKeyCheck(createSealer(key), { get: reader.get, write: () => Promise.resolve() });
  } catch (cause) {
    throw new AppError("conflict", `Can't import the key: the data was sealed with another key`, { cause });
  } finally {
    reader.close();
  }
}

function parseExported(content: Uint8Array): ExportedKey | undefined {
  try {
    const value = JSON.parse(new TextDecoder().decode(content));
    return value?.kind === "parlor storage key" ? value : undefined;
  } catch {
    return undefined;
  }
}
