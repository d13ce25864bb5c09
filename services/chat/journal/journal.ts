/**
 * The journal of the running replies: append-only files that hold each batch before any client sees it, so that a killed
 * process loses no text that was shown. What all replies gathered in one turn of the event loop is one sealed record and
 * one write. recovery.ts reads it back.
 */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { fileError, syncFolder } from "../../storage/atomic_file.ts";

/** What one batch added to a reply. */
export interface JournalBatch {
  /** Number of the last event before the batch, so that a gap in what was kept shows. */
  after: number;
  /** Number of the last event in the batch. */
  seq: number;
  text: string;
  reasoning: string;
}

/** Which run of which reply a batch belongs to. */
export interface JournalKey {
  messageId: string;
  generation: string;
}

/** A batch as it lies in a record; a record is an array of them. */
export type JournalEntry = [mid: string, generation: string, after: number, seq: number, text: string, think: string];

/** The journal as one reply uses it. */
export interface ReplyJournal {
  /** Lets the file be there before the first batch has to wait for it. Does nothing once the reply is settled. */
  prepare(): void;
  /**
   * Appends a batch; it is with the operating system when the promise resolves, which is before anything else happens in
   * the process.
   *
   * @throws {AppError} `storage_full` or `internal` when it cannot be written; nothing of it may be shown then.
   */
  append(batch: JournalBatch): Promise<void>;
  /** Lets go of the reply's batches: its message is settled. A file that no other reply needs is removed. */
  settle(): Promise<void>;
}

/** Longest time that written text stays unsynced; a power cut costs at most this. */
const SYNC_EVERY_MS = 1000;
/** Where a new file is begun: what replies long settled left beside a long one is bounded by this. */
const FILE_BYTES = 4 * 1024 * 1024;

interface Group {
  entries: JournalEntry[];
  replies: ReplyJournal[];
  written: Promise<void>;
  resolve(): void;
  reject(reason: unknown): void;
}

/** Writes the journal of all replies of a process. */
export class Journal {
  #folder: string;
  #sealer: PurposeSealer;
  #fileBytes: number;
  #lastNumber: number;
  /** Those that a reply needs, oldest first, each with the replies that need it. */
  #files = new Map<JournalFile, Set<ReplyJournal>>();
  #current: JournalFile | undefined;
  #group: Group | undefined;
  #syncTimer: ReturnType<typeof setTimeout> | undefined;

  private constructor(folder: string, sealer: PurposeSealer, fileBytes: number, lastNumber: number) {
    this.#folder = folder;
    this.#sealer = sealer;
    this.#fileBytes = fileBytes;
    this.#lastNumber = lastNumber;
  }

  /**
   * Opens the journal of a folder; files left there by earlier processes stay as they are.
   *
   * @param options.fileBytes Where a new file is begun.
   */
  static async open(
    folder: string,
    sealer: PurposeSealer,
    { fileBytes = FILE_BYTES }: { fileBytes?: number } = {},
  ): Promise<Journal> {
    return new Journal(folder, sealer, fileBytes, (await journalNumbers(folder)).at(-1) ?? 0);
  }

  /** Begins the journal of a reply; costs nothing before it is used. */
  begin({ messageId, generation }: JournalKey): ReplyJournal {
    let isSettled = false;
    const reply: ReplyJournal = {
      prepare: () => {
        if (isSettled) return;
        try {
          this.#hold(this.#openFile(), reply);
        } catch {
          // The first batch tries again, and says what is wrong.
        }
      },
      append: ({ after, seq, text, reasoning }) =>
        this.#append(reply, [messageId, generation, after, seq, text, reasoning]),
      settle: () => {
        isSettled = true;
        return this.#release(reply);
      },
    };
    return reply;
  }

  /** Closes the files. Those that some reply still needs stay for the recovery at the next start. */
  async close(): Promise<void> {
    clearTimeout(this.#syncTimer);
    const files = [...this.#files.keys()];
    this.#files.clear();
    this.#current = undefined;
    await Promise.all(files.map(async (file) => {
      await file.sync();
      file.close();
    }));
  }

  #append(reply: ReplyJournal, entry: JournalEntry): Promise<void> {
    let group = this.#group;
    if (group === undefined) {
      const { promise: written, resolve, reject } = Promise.withResolvers<void>();
      this.#group = group = { entries: [], replies: [], written, resolve, reject };
      // Behind what the same turn of the event loop still brings for other replies, and before any input or output.
      queueMicrotask(this.#write);
    }
    group.entries.push(entry);
    group.replies.push(reply);
    return group.written;
  }

  readonly #write = (): void => {
    const group = this.#group!;
    this.#group = undefined;
    try {
      const file = this.#openFile();
      for (const reply of group.replies) this.#hold(file, reply);
      file.append(JSON.stringify(group.entries));
      this.#scheduleSync();
      group.resolve();
    } catch (error) {
      this.#current = undefined; // What followed a torn record could not be read.
      group.reject(error);
    }
  };

  #openFile(): JournalFile {
    if (this.#current === undefined || this.#current.sizeBytes >= this.#fileBytes) {
      this.#current = undefined;
      this.#current = JournalFile.create(this.#folder, this.#sealer, ++this.#lastNumber);
      this.#files.set(this.#current, new Set());
    }
    return this.#current;
  }

  #hold(file: JournalFile, reply: ReplyJournal): void {
    this.#files.get(file)!.add(reply);
  }

  async #release(reply: ReplyJournal): Promise<void> {
    const free: JournalFile[] = [];
    for (const [file, replies] of this.#files) {
      if (replies.delete(reply) && replies.size === 0) free.push(file);
    }
    for (const file of free) {
      this.#files.delete(file);
      if (this.#current === file) this.#current = undefined;
    }
    await Promise.all(free.map((file) => file.remove()));
  }

  #scheduleSync(): void {
    this.#syncTimer ??= setTimeout(this.#sync, SYNC_EVERY_MS);
  }

  readonly #sync = async (): Promise<void> => {
    await Promise.all([...this.#files.keys()].map((file) => file.sync()));
    this.#syncTimer = undefined;
    if ([...this.#files.keys()].some((file) => file.isDirty)) this.#scheduleSync();
  };
}

/** Before each sealed value is its length. */
export const LENGTH_BYTES = 4;
const NAME = /^(\d{10})\.journal$/;

/** One file while it is written: sealed records of `[length, 4 bytes][sealed value]`, each in one write. */
class JournalFile {
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
export function journalPath(folder: string, number: number): string {
  return `${folder}/${String(number).padStart(10, "0")}.journal`;
}

/** Gives the number in a file's name, `undefined` for a name that is none of a journal. */
function journalNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Removes a file; one that is gone already is no error. */
export async function removeJournal(folder: string, number: number): Promise<void> {
  await Deno.remove(journalPath(folder, number)).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/** What a record is bound to: its file and its place in it. */
export function recordPlace(number: number, index: number) {
  return { table: "replies", id: String(number), field: "record", version: index };
}

/** Gives the numbers of the files in a folder, oldest first. */
export async function journalNumbers(folder: string): Promise<number[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
  return names.map(journalNumber).filter((number) => number !== undefined).sort((a, b) => a - b);
}
