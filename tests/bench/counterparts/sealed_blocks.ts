/** Shared by the storage counterparts: AES-256-GCM over blocks of 16 KiB in SQLite, as durable as Parlor's. */
import { DatabaseSync } from "node:sqlite";

/** Size of a block before it is sealed. */
export const BLOCK_BYTES = 16 * 1024;
const IV_BYTES = 12;

/** Opens a database with Parlor's durability: write-ahead log, every commit synced. */
export function openBlocks(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE conversation(id INTEGER PRIMARY KEY, summary BLOB);
    CREATE TABLE block(conversation_id INTEGER, position INTEGER, sealed BLOB, PRIMARY KEY(conversation_id, position));`);
  return db;
}

/** Creates a key for this process. */
export function newKey(): Promise<CryptoKey> {
  return crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]) as Promise<
    CryptoKey
  >;
}

/** Seals bytes; the IV comes first. */
export async function seal(key: CryptoKey, plain: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const cipher = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, plain);
  const sealed = new Uint8Array(IV_BYTES + cipher.byteLength);
  sealed.set(iv);
  sealed.set(new Uint8Array(cipher), IV_BYTES);
  return sealed;
}

/** Decrypts the result of `seal`. */
export async function open(key: CryptoKey, sealed: Uint8Array): Promise<Uint8Array> {
  const bytes = sealed as Uint8Array<ArrayBuffer>;
  const iv = bytes.subarray(0, IV_BYTES);
  return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, bytes.subarray(IV_BYTES)));
}

/** Cuts bytes into blocks. */
export function blocksOf(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const blocks: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) blocks.push(bytes.subarray(at, at + BLOCK_BYTES));
  return blocks;
}
