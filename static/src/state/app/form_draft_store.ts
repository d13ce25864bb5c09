/**
 * What was typed in forms and not saved, in the IndexedDB of this browser: sealed by the outbox's key, so that signing
 * out makes it unreadable. It never leaves the browser.
 */
import { BrowserDatabase, getSealingKey, seal, type Sealed, unseal } from "./outbox_store.ts";

/** A database of its own: a tab with an earlier build still opens that of the outbox. */
const DATABASE = "parlor.drafts";
const DRAFTS = "drafts";
const BY_TIME = "time";

/** The options of a chat that isn't stored yet. They end when it is. */
export const NEW_CHAT_OPTIONS = "options:new";

const MAX_DRAFTS = 200;
const MAX_AGE_MS = 30 * 24 * 60 * 60 * 1000;

/** A draft as it's stored. */
export interface StoredDraft {
  /** By field, in the order of typing: what was typed, and what was there before. */
  fields: [name: string, text: string, base: string][];
  /** Secrets were typed as well. They aren't kept. */
  lacksSecrets: boolean;
}

interface Row {
  /** Person and form. */
  key: string;
  /** In milliseconds since 1970. */
  time: number;
  sealed: Sealed;
}

const database = new BrowserDatabase(DATABASE, (database) => {
  database.createObjectStore(DRAFTS, { keyPath: "key" }).createIndex(BY_TIME, BY_TIME);
});

/** What isn't written yet, undefined for what isn't deleted yet. If the browser stores nothing, it lives as long as the tab. */
const pending = new Map<string, StoredDraft | undefined>();
let isRefused = false;
let isWriting = false;

/** The key of a form's draft. @param person Who typed it; nobody else gets it. */
export function draftKey(person: string, form: string): string {
  return `${person} ${form}`;
}

/** Returns a draft, if there is one. Never throws. */
export async function readDraft(key: string): Promise<StoredDraft | undefined> {
  if (pending.has(key) || isRefused) return pending.get(key);
  try {
    const row = await database.transact<Row>([DRAFTS], "readonly", (tx) => tx.objectStore(DRAFTS).get(key));
    if (row === undefined || row.time < Date.now() - MAX_AGE_MS) return undefined;
    return JSON.parse(new TextDecoder().decode(await unseal(await getSealingKey(), key, row.sealed)));
  } catch {
    // Nothing is stored here, or its key is gone.
    return undefined;
  }
}

/** Stores a draft, undefined for none. Later calls replace earlier ones that aren't written yet. */
export function putDraft(key: string, draft: StoredDraft | undefined): void {
  pending.set(key, draft);
  if (!isWriting && !isRefused) void writePending();
}

/** Deletes the drafts of everybody. */
export async function clearDrafts(): Promise<void> {
  pending.clear();
  await database.transact([DRAFTS], "readwrite", (tx) => tx.objectStore(DRAFTS).clear()).catch(() => {});
}

/** Returns the number of drafts of everybody. Never throws. */
export async function countDrafts(): Promise<number> {
  const count = await database.transact([DRAFTS], "readonly", (tx) => {
    return tx.objectStore(DRAFTS).index(BY_TIME).count(IDBKeyRange.lowerBound(Date.now() - MAX_AGE_MS));
  }).catch(() => undefined);
  return count ?? pending.size;
}

async function writePending(): Promise<void> {
  isWriting = true;
  try {
    for (let next = pending.entries().next(); !next.done; next = pending.entries().next()) {
      const [key, draft] = next.value;
      await write(key, draft);
      if (pending.get(key) === draft) pending.delete(key);
    }
  } catch {
    isRefused = true;
  }
  isWriting = false;
}

/** Writes one, and deletes what is too old or too much. */
async function write(key: string, draft: StoredDraft | undefined): Promise<void> {
  const time = Date.now();
  const row = draft && {
    key,
    time,
    sealed: await seal(await getSealingKey(), key, new TextEncoder().encode(JSON.stringify(draft))),
  } satisfies Row;
  await database.transact([DRAFTS], "readwrite", (tx) => {
    const store = tx.objectStore(DRAFTS);
    if (row === undefined) return void store.delete(key);
    store.put(row);
    const byTime = store.index(BY_TIME).getAllKeys();
    const old = store.index(BY_TIME).getAllKeys(IDBKeyRange.upperBound(time - MAX_AGE_MS));
    byTime.onsuccess = () => byTime.result.slice(0, -MAX_DRAFTS).forEach((key) => store.delete(key));
    old.onsuccess = () => old.result.forEach((key) => store.delete(key));
    return undefined;
  });
}
