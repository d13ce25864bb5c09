/** One file of the journal while it is written: sealed records of `[length, 4 bytes][sealed value]`, each in one write. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { fileError, readFileIfExists, syncFolder } from "../../storage/atomic_file.ts";
import type { JournalBatch, JournalEntry, JournalKey } from "./journal.ts";

/** Before each sealed value. */
const LENGTH_BYTES = 4;
const NAME = /^(\d{10})\.journal$/;

/** Writes one file. */
export class JournalFile {
  readonly #file: Deno.FsFile;
  readonly #folder: string;
  readonly #number: number;
  readonly #sealer: PurposeSealer;
  #records = 0;
  #sizeBytes = 0;
  #isDirty = false;
  #isNameSynced = false;
  #syncing: Promise<void> | undefined;

  private constructor(file: Deno.FsFile, folder: string, sealer: PurposeSealer, number: number) {
    this.#file = file;
    this.#folder = folder;
    this.#sealer = sealer;
    this.#number = number;
  }

  /** Makes a file that was not there before. @throws {AppError} `storage_full` or `internal` */
  static create(folder: string, sealer: PurposeSealer, number: number): JournalFile {
    const path = journalPath(folder, number);
    try {
      const file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
      return new JournalFile(file, folder, sealer, number);
    } catch (cause) {
      throw fileError(`Can't make "${path}"`, cause);
    }
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** True while something written may not survive a power cut. */
  get isDirty(): boolean {
    return this.#isDirty;
  }

  /**
   * Appends a record; it is with the operating system when this returns.
   *
   * @throws {AppError} `storage_full` or `internal`; half a record may lie at the end then, and nothing may follow it.
   */
  append(text: string): void {
    const record = this.#sealer.sealNow(recordPlace(this.#number, this.#records++), text, LENGTH_BYTES);
    new DataView(record.buffer).setUint32(0, record.length - LENGTH_BYTES);
    try {
      // In one write nearly always.
      let written = this.#file.writeSync(record);
      while (written < record.length) written += this.#file.writeSync(record.subarray(written));
    } catch (cause) {
      throw fileError(`Can't write "${journalPath(this.#folder, this.#number)}"`, cause);
    }
    this.#sizeBytes += record.length;
    this.#isDirty = true;
  }

  /** Makes what was written survive a power cut. Off the serving thread: on a home server's disk it can take 100 ms. */
  async sync(): Promise<void> {
    await this.#syncing;
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#syncing = this.#syncNow();
    await this.#syncing;
    this.#syncing = undefined;
  }

  /** Closes the file and leaves it where it is. */
  close(): void {
    this.#file.close();
  }

  /** Closes the file and removes it. */
  async remove(): Promise<void> {
    await this.#syncing;
    this.#file.close();
    await removeJournal(this.#folder, this.#number);
  }

  async #syncNow(): Promise<void> {
    try {
      await this.#file.syncData();
      if (this.#isNameSynced) return;
      await syncFolder(this.#folder);
      this.#isNameSynced = true;
    } catch {
      // A disk that cannot sync is no reason to lose a reply: it is still written and will be settled in the database.
    }
  }
}

/** Gives the path of a file. */
function journalPath(folder: string, number: number): string {
  return `${folder}/${String(number).padStart(10, "0")}.journal`;
}

/** Gives the number in a file's name, `undefined` for a name that is none of a journal. */
function journalNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Removes a file; one that is gone already is no error. */
async function removeJournal(folder: string, number: number): Promise<void> {
  await Deno.remove(journalPath(folder, number)).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/** What a record is bound to: its file and its place in it. */
function recordPlace(number: number, index: number) {
  return { table: "replies", id: String(number), field: "record", version: index };
}

// Reads back what a killed process left in the journal.

const decoder = new TextDecoder();

/** Gives the numbers of the files in a folder, oldest first. */
export async function journalNumbers(folder: string): Promise<number[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
  return names.map(journalNumber).filter((number) => number !== undefined).sort((a, b) => a - b);
}

/**
 * Gives everything that the journal holds of some replies, by the generation of their run, of which each has its own.
 *
 * A record that was cut off or damaged ends its file. Of each reply only what follows without a gap counts, so that no text
 * comes back with a hole in it.
 */
export async function readJournal(
  folder: string,
  sealer: PurposeSealer,
  wanted: JournalKey[],
): Promise<Map<string, JournalBatch>> {
  const found = new Map<string, JournalBatch>(
    wanted.map(({ generation }) => [generation, { after: 0, seq: 0, text: "", reasoning: "" }]),
  );
  const messageIds = new Map(wanted.map(({ messageId, generation }) => [generation, messageId]));
  if (wanted.length === 0) return found;
  for (const number of await journalNumbers(folder)) {
    for await (const [mid, generation, after, seq, text, reasoning] of entriesOf(folder, sealer, number)) {
      const whole = found.get(generation);
      if (whole === undefined || messageIds.get(generation) !== mid || whole.seq !== after) continue;
      whole.seq = seq;
      whole.text += text;
      whole.reasoning += reasoning;
    }
  }
  return found;
}

/** Removes every file: all replies that were running are settled. */
export async function removeJournals(folder: string): Promise<void> {
  for (const number of await journalNumbers(folder)) await removeJournal(folder, number);
}

async function* entriesOf(folder: string, sealer: PurposeSealer, number: number): AsyncGenerator<JournalEntry> {
  const bytes = await readFileIfExists(journalPath(folder, number));
  if (bytes === undefined) return;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, index = 0; at + LENGTH_BYTES <= bytes.length; index++) {
    const begin = at + LENGTH_BYTES;
    const end = begin + view.getUint32(at);
    const entries = end > bytes.length
      ? undefined
      : openRecord(sealer, recordPlace(number, index), bytes.subarray(begin, end));
    if (entries === undefined) return;
    yield* entries;
    at = end;
  }
}

function openRecord(
  sealer: PurposeSealer,
  place: ReturnType<typeof recordPlace>,
  sealed: Uint8Array,
): JournalEntry[] | undefined {
  try {
    return JSON.parse(decoder.decode(sealer.openNow(place, sealed)));
  } catch {
    return undefined; // Torn by a power cut, or put there by somebody else.
  }
}
