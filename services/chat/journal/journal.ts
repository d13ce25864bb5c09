/**
 * The journal of the running replies: append-only files that contain each batch before any client sees it, so that a
 * killed process never loses text that was shown. The batches of all replies in one iteration of the event loop are one
 * sealed record and one write. recovery.ts reads the files.
 */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { ContentPart } from "../../llm/chat_event.ts";
import type { SentFacts } from "../../llm/provider.ts";
import type { StatefulChatRequest } from "../chat_service.ts";
import { syncFolder, toFileError } from "../../storage/atomic_file.ts";

/** What one batch added to a reply. */
export interface JournalBatch {
  /** Number of the last event before the batch, so that gaps can be detected. */
  after: number;
  /** Number of the last event in the batch. */
  seq: number;
  text: string;
  reasoning: string;
  /** Pictures and sounds, whose files are stored. */
  media?: readonly ContentPart[];
  /** Replaces what earlier batches say, field by field. */
  plan?: ReplyPlan;
}

/** What a reply needs to go on after a restart. */
export interface ReplyPlan {
  /** Absent if it's too long to be written for each reply. */
  request?: StatefulChatRequest;
  /** Where the model server keeps the reply; `null` once it's asked anew. */
  stream?: KeptStream | null;
  /** Facts about the sent request. */
  sent?: SentFacts;
  /** How often the reply has gone on after a restart. */
  restarts?: number;
  /** Whether it was already continued after its text, or asked anew, without a kept stream. */
  isRepeated?: boolean;
}

/** A stream that a model server keeps. */
export interface KeptStream {
  /** Can't be guessed: whoever knows it can read the reply. */
  id: string;
  connectionId: string;
  model: string;
  /** Number of the last event that was read, if the server numbers them, and what follows can be read alone. */
  after?: number;
}

/** Identifies a run of a reply. */
export interface JournalKey {
  messageId: string;
  generation: string;
}

/** A batch in a record, which is an array of them. */
export type JournalEntry = [
  mid: string,
  generation: string,
  after: number,
  seq: number,
  text: string,
  think: string,
  media?: readonly ContentPart[] | null,
  plan?: ReplyPlan,
];

/** The journal of one reply. */
export interface ReplyJournal {
  /**
   * Creates the file in advance, so that the first batch doesn't wait for it. Does nothing once the reply is settled.
   */
  prepare(): void;
  /**
   * Appends a batch. When the promise resolves, the operating system has the data; nothing else runs in the process
   * before.
   *
   * @throws {AppError} `storage_full` or `internal` if it can't be written. The batch must not be shown then.
   */
  append(batch: JournalBatch): Promise<void>;
  /** Releases the reply's batches, because its message is saved. Deletes a file if no other reply needs it. */
  settle(): Promise<void>;
}

/** Maximum time until written text is synced to disk, and so the most that a power failure can lose. */
const SYNC_EVERY_MS = 1000;
/**
 * Size at which a new file is started, so that the journal of a long reply doesn't retain the text of many ended ones.
 */
const FILE_BYTES = 4 * 1024 * 1024;

interface Group {
  entries: JournalEntry[];
  replies: ReplyJournal[];
  written: Promise<void>;
  resolve(): void;
  reject(reason: unknown): void;
}

/** Writes the journal of all running replies. */
export class Journal {
  #folder: string;
  #sealer: PurposeSealer;
  #fileBytes: number;
  #lastNumber: number;
  /** Files that are needed, oldest first, each with the replies that need it. */
  #files = new Map<JournalFile, Set<ReplyJournal>>();
  #current: JournalFile | undefined;
  #group: Group | undefined;
  #syncTimer: ReturnType<typeof setTimeout> | undefined;
  /** Numbers of the files of earlier processes. */
  #earlier: readonly number[];

  private constructor(folder: string, sealer: PurposeSealer, fileBytes: number, earlier: readonly number[]) {
    this.#folder = folder;
    this.#sealer = sealer;
    this.#fileBytes = fileBytes;
    this.#earlier = earlier;
    this.#lastNumber = earlier.at(-1) ?? 0;
  }

  /**
   * Opens the journal in a folder. Doesn't touch files of earlier processes.
   *
   * @param options.fileBytes Size at which a new file is started.
   */
  static async open(
    folder: string,
    sealer: PurposeSealer,
    { fileBytes = FILE_BYTES }: { fileBytes?: number } = {},
  ): Promise<Journal> {
    return new Journal(folder, sealer, fileBytes, await listJournalNumbers(folder));
  }

  /** Syncs what was written, and deletes the files of earlier processes: every reply that goes on is in the new ones. */
  async replaceEarlier(): Promise<void> {
    await Promise.all([...this.#files.keys()].map((file) => file.sync()));
    for (const number of this.#earlier) await removeJournal(this.#folder, number);
    this.#earlier = [];
  }

  /** Starts the journal of a reply. No file is written before the first use. */
  begin({ messageId, generation }: JournalKey): ReplyJournal {
    let isSettled = false;
    const reply: ReplyJournal = {
      prepare: () => {
        if (isSettled) return;
        try {
          this.#hold(this.#openFile(), reply);
        } catch {
          // The first batch tries again and reports the error.
        }
      },
      append: ({ after, seq, text, reasoning, media, plan }) => {
        const entry: JournalEntry = [messageId, generation, after, seq, text, reasoning];
        if (media !== undefined) entry[6] = media;
        if (plan !== undefined) [entry[6], entry[7]] = [media ?? null, plan];
        return this.#append(reply, entry);
      },
      settle: () => {
        isSettled = true;
        return this.#release(reply);
      },
    };
    return reply;
  }

  /** Closes the files. Those that a reply still needs stay for the recovery at the next start. */
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
      // After everything that the same event loop iteration adds for other replies, and before any I/O.
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
      this.#current = undefined; // Records after an incomplete one couldn't be read.
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

/** Size of the length before each sealed value. */
export const LENGTH_BYTES = 4;
const NAME = /^(\d{10})\.journal$/;

/** A journal file open for writing. Its records are `[length, 4 bytes][sealed value]`, each in one write. */
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

  /** Creates a new file. @throws {AppError} `storage_full` or `internal` */
  static create(folder: string, sealer: PurposeSealer, number: number): JournalFile {
    const path = getJournalPath(folder, number);
    try {
      const file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
      return new JournalFile(file, folder, sealer, number);
    } catch (cause) {
      throw toFileError(`Can't create "${path}"`, cause);
    }
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** True while written data might not survive a power failure. */
  get isDirty(): boolean {
    return this.#isDirty;
  }

  /**
   * Appends a record. When this returns, the operating system has the data.
   *
   * @throws {AppError} `storage_full` or `internal`. The file may end with a partial record then, and nothing may
   *   follow it.
   */
  append(text: string): void {
    const record = this.#sealer.sealNow(createRecordAad(this.#number, this.#records++), text, LENGTH_BYTES);
    new DataView(record.buffer).setUint32(0, record.length - LENGTH_BYTES);
    try {
      // Almost always a single write.
      let written = this.#file.writeSync(record);
      while (written < record.length) written += this.#file.writeSync(record.subarray(written));
    } catch (cause) {
      throw toFileError(`Can't write "${getJournalPath(this.#folder, this.#number)}"`, cause);
    }
    this.#sizeBytes += record.length;
    this.#isDirty = true;
  }

  /** Syncs written data to disk, off the serving thread: this can take 100 ms on a home server. */
  async sync(): Promise<void> {
    await this.#syncing;
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#syncing = this.#syncNow();
    await this.#syncing;
    this.#syncing = undefined;
  }

  /** Closes the file without deleting it. */
  close(): void {
    this.#file.close();
  }

  /** Closes and deletes the file. */
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
      // A failed sync must not end the reply: its text is written and will be saved in the database.
    }
  }
}

/** Returns the path of a journal file. */
export function getJournalPath(folder: string, number: number): string {
  return `${folder}/${String(number).padStart(10, "0")}.journal`;
}

/** Returns the number in a file name; `undefined` if it isn't the name of a journal file. */
function parseJournalNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Deletes a file. Does nothing if it doesn't exist. */
export async function removeJournal(folder: string, number: number): Promise<void> {
  await Deno.remove(getJournalPath(folder, number)).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/** Returns the AAD of a record: its file and its position there. */
export function createRecordAad(number: number, index: number) {
  return { table: "replies", id: String(number), field: "record", version: index };
}

/** Lists the numbers of the files in a folder, oldest first. */
export async function listJournalNumbers(folder: string): Promise<number[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
  return names.map(parseJournalNumber).filter((number) => number !== undefined).sort((a, b) => a - b);
}
