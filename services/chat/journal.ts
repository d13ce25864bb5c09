/**
 * The journal of one running reply: an append-only file that holds each batch before any client sees it, so that a killed
 * process loses no text that was shown. One sealed record a batch, written at once and synced at least every second.
 */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { readFileIfExists } from "../storage/atomic_file.ts";

/** What one batch added to a reply. */
export interface JournalBatch {
  /** Number of the last event in the batch. */
  seq: number;
  text: string;
  reasoning: string;
}

/** Longest time that written text stays unsynced; a power cut costs at most this. */
const SYNC_EVERY_MS = 1000;
const decoder = new TextDecoder();

/** Writes the journal of one reply. */
export class Journal {
  #file: Deno.FsFile;
  #path: string;
  #sealer: PurposeSealer;
  #key: JournalKey;
  #records = 0;
  #syncedAtMs = performance.now();
  #syncing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(file: Deno.FsFile, path: string, sealer: PurposeSealer, key: JournalKey) {
    this.#file = file;
    this.#path = path;
    this.#sealer = sealer;
    this.#key = key;
  }

  /** Begins the journal of a reply, over one that may be left of an earlier reply to the same message. */
  static open(folder: string, sealer: PurposeSealer, key: JournalKey): Journal {
    const path = journalPath(folder, key.messageId);
    const file = Deno.openSync(path, { write: true, create: true, truncate: true, mode: 0o600 });
    return new Journal(file, path, sealer, key);
  }

  /** Appends a batch; it is with the operating system when this returns. */
  append(batch: JournalBatch): void {
    const plain = JSON.stringify([batch.seq, batch.text, batch.reasoning]);
    const sealed = this.#sealer.sealNow(place(this.#key, this.#records++), plain);
    const record = new Uint8Array(4 + sealed.length);
    new DataView(record.buffer).setUint32(0, sealed.length);
    record.set(sealed, 4);
    for (let written = 0; written < record.length;) written += this.#file.writeSync(record.subarray(written));
    if (this.#syncing === undefined && performance.now() - this.#syncedAtMs >= SYNC_EVERY_MS) this.#sync();
  }

  /** Closes the journal and removes its file: the message is settled. */
  async remove(): Promise<void> {
    await this.close();
    await Deno.remove(this.#path).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }

  /** Closes the file and leaves it for recovery at the next start. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#syncing;
    this.#file.close();
  }

  /** Off the serving thread: an fsync on a home server's disk can take 100 ms. */
  #sync(): void {
    this.#syncing = this.#file.syncData()
      // A disk that cannot sync is no reason to lose the reply: it is still written and will be settled in the database.
      .catch(() => {})
      .then(() => {
        this.#syncedAtMs = performance.now();
        this.#syncing = undefined;
      });
  }
}

/** What the records of a journal are bound to. */
export interface JournalKey {
  messageId: string;
  /** Which run of the reply this is. */
  generation: string;
}

/** Gives everything that a journal holds of a reply; a record that was cut off by a crash ends it. */
export async function readJournal(folder: string, sealer: PurposeSealer, key: JournalKey): Promise<JournalBatch> {
  const whole: JournalBatch = { seq: 0, text: "", reasoning: "" };
  const bytes = await readFileIfExists(journalPath(folder, key.messageId));
  if (bytes === undefined) return whole;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, index = 0; at + 4 <= bytes.length; index++) {
    const length = view.getUint32(at);
    if (at + 4 + length > bytes.length) break;
    const [seq, text, reasoning] = openRecord(sealer, place(key, index), bytes.subarray(at + 4, at + 4 + length)) ?? [];
    if (seq === undefined) break;
    whole.seq = seq;
    whole.text += text;
    whole.reasoning += reasoning;
    at += 4 + length;
  }
  return whole;
}

/** Gives the ids of the messages that have a journal. */
export async function journalledMessages(folder: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
  return names.filter((name) => name.endsWith(".journal")).map((name) => name.slice(0, -".journal".length));
}

/** Removes the journal of a message, if there is one. */
export async function removeJournal(folder: string, messageId: string): Promise<void> {
  await Deno.remove(journalPath(folder, messageId)).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

function openRecord(
  sealer: PurposeSealer,
  at: ReturnType<typeof place>,
  sealed: Uint8Array,
): [number, string, string] | undefined {
  try {
    return JSON.parse(decoder.decode(sealer.openNow(at, sealed)));
  } catch {
    return undefined; // An earlier run's record behind ours, or one torn by a power cut.
  }
}

function journalPath(folder: string, messageId: string): string {
  return `${folder}/${messageId}.journal`;
}

function place(key: JournalKey, index: number) {
  return { table: "reply", id: `${key.messageId}/${key.generation}`, field: "journal", version: index };
}
