/** Imports: a file, its kind, its upload, and the job that reads it. Continues when the screen is left. */
import type { ImportedCard } from "../../api/characters.ts";
import type { Importable, ImportReport, ImportSource, Job } from "../../api/types.ts";
import { computed, effect, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import {
  getImportable,
  type ImportRequest,
  importUpload,
  listImportSources,
  readSourceAgain,
  removeImportSource,
  uploadImport,
} from "../../api/import_export.ts";
import { texts } from "../../texts/texts.ts";
import { CardImports, type FailedImport } from "./card_imports.ts";
import type { Store } from "../store.ts";

/** An upload. */
export interface Upload {
  name: string;
  sentBytes: number;
  totalBytes: number;
  /** 0 until known. */
  bytesPerSecond: number;
}

/** Kind of the jobs. */
const IMPORT = "import";
/** How long the server keeps an upload after a dry run, minus a margin. In milliseconds. */
const UPLOAD_LIFETIME_MS = 59 * 60 * 1000;
/** Window of a rate, in milliseconds. */
const RATE_MS = 3_000;

/** Path of the screen. */
export const IMPORT_PATH = "/settings/data/import";

/** The imports of one page. */
export class Imports {
  /** Undefined until known. */
  readonly importable = signal<Importable | undefined>(undefined);
  readonly file = signal<File | undefined>(undefined);
  /** The kind of the file; empty while unknown. */
  readonly kind = signal("");
  readonly sending = signal<Upload | undefined>(undefined);
  /** Why the last step failed; file and kind stay. */
  readonly error = signal<ApiError | undefined>(undefined);
  /** Why the chosen file is not acceptable. */
  readonly complaint = signal<"folder" | "too_large" | undefined>(undefined);
  /** Whether the server stores the file after the import, to read it again. */
  readonly keepsSource = signal(false);
  /** The stored files of imports. */
  readonly sources = signal<ImportSource[]>([]);
  /** Cards that were just imported. */
  readonly arrived = signal<ImportedCard[]>([]);
  readonly cards: CardImports<ImportedCard>;
  readonly #jobId = signal<string | undefined>(undefined);
  /** The running or last job, started here or before this page was opened. */
  readonly job = computed(() => this.#store.activity.jobs.value.find(({ id }) => id === this.#jobId.value));
  /** The last import that has ended and is not shown above. */
  readonly before = computed(() =>
    this.#store.activity.endedJobs.value.find((job) =>
      job.kind === IMPORT && job.id !== this.#jobId.value && getImportOutcome(job)?.dry_run === false
    )
  );
  readonly #store: Store;
  #reading: Promise<void> | undefined;
  #abort = new AbortController();
  #cardFiles: readonly File[] = [];
  /** Files of the last selection that are not imported. */
  #refused: readonly FailedImport[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.cards = new CardImports(
      (file) => store.api.importCharacter(file),
      (imported) => this.arrived.value = imported,
    );
  }

  /** Loads what the server can import, and resumes what an earlier page started. */
  async open(): Promise<void> {
    this.#resume();
    void this.#loadSources();
    await this.#readImportable();
  }

  /** Loads what the server can import, unless it is known. */
  async #readImportable(): Promise<void> {
    if (!this.importable.peek()) await (this.#reading ??= this.#read().finally(() => this.#reading = undefined));
  }

  async #read(): Promise<void> {
    try {
      this.importable.value = await getImportable(this.#store.api.client);
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /**
   * Handles chosen or dropped files. Several cards may be imported together; other files are refused with a reason.
   *
   * @param folders Names of folders among them: browsers only send files.
   */
  async choose(files: readonly File[], folders: readonly string[] = []): Promise<void> {
    if (files.length + folders.length === 0) return;
    this.startOver();
    if (files.length === 0) return void (this.complaint.value = "folder");
    // Also for a file that comes before the page has asked: without it, the file would have no kind and no limit.
    await this.#readImportable();
    const kinds = await Promise.all(files.map((each) => detectImportKind(each).catch(() => undefined)));
    const isAlone = files.length === 1;
    const cards = isAlone ? files : files.filter((_, index) => kinds[index] === CARD);
    const left = files.filter((each) => !cards.includes(each)).map(({ name }) => ({
      name,
      reason: texts.import.several,
    }));
    this.#refused = [...left, ...folders.map((name) => ({ name, reason: texts.import.folder }))];
    void this.cards.add([], this.#refused);
    const [file] = cards;
    if (file === undefined) return;
    const max = this.importable.peek()?.max_bytes ?? Infinity;
    if (file.size > max) return void (this.complaint.value = "too_large");
    this.file.value = file;
    this.#cardFiles = cards;
    const kind = isAlone ? kinds[0] ?? "" : CARD;
    this.kind.value = kind === CARD || this.importable.peek()?.kinds.some((known) => known === kind) ? kind : "";
  }

  /** Loads the report of an ended import. @throws {ApiError} */
  async readReport({ id }: Job): Promise<ImportReport> {
    return (await this.#store.api.readJob(id)).detail as ImportReport;
  }

  /** Starts a dry run, or imports cards, which need none. */
  async begin(): Promise<void> {
    const [file, kind] = [this.file.peek(), this.kind.peek()];
    if (file === undefined || kind === "" || this.sending.peek()) return;
    if (kind === CARD) {
      this.arrived.value = [];
      const files = this.#cardFiles;
      this.file.value = undefined;
      return await this.cards.add(files, this.#refused);
    }
    await this.#send(file, { kind, isDryRun: true, name: file.name });
  }

  /** Loads the stored files. An older list stays if that fails. */
  async #loadSources(): Promise<void> {
    this.sources.value = await listImportSources(this.#store.api.client).catch(() => this.sources.peek());
  }

  /** Starts a dry run of a stored file. */
  async readAgain({ id, kind }: Pick<ImportSource, "id" | "kind">): Promise<void> {
    try {
      const job = await readSourceAgain(this.#store.api.client, { kind, isDryRun: true }, id);
      this.startOver();
      this.#follow(job);
    } catch (thrown) {
      this.#store.report(asApiError(thrown));
      await this.#loadSources();
    }
  }

  /** Deletes a stored file. @throws {ApiError} */
  async removeSource(id: string): Promise<void> {
    await removeImportSource(this.#store.api.client, id);
    this.sources.value = this.sources.peek().filter((source) => source.id !== id);
  }

  /** Imports the file of the dry run. Uploads it again if the server no longer has it. */
  async bringIn(): Promise<void> {
    const dryRun = getImportOutcome(this.job.peek());
    const { client } = this.#store.api;
    if (dryRun?.source_id !== undefined) {
      this.error.value = undefined;
      try {
        return this.#follow(await readSourceAgain(client, { kind: dryRun.kind, isDryRun: false }, dryRun.source_id));
      } catch (thrown) {
        return void (this.error.value = asApiError(thrown));
      }
    }
    if (dryRun?.upload_id === undefined) return;
    const file = this.file.peek();
    const wish = {
      kind: dryRun.kind,
      isDryRun: false,
      name: file?.name,
      keepsSource: this.keepsSource.peek(),
    } satisfies ImportRequest;
    this.error.value = undefined;
    try {
      this.#follow(await importUpload(client, wish, dryRun.upload_id));
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404 && file) return await this.#send(file, wish);
      this.error.value = error;
    }
  }

  /** Cancels the upload or job; file and kind stay. */
  cancel(): void {
    this.#abort.abort(new DOMException("The upload was cancelled", "AbortError"));
    const job = this.job.peek();
    if (job) this.#store.activity.cancel(job.id).catch((thrown) => this.#store.report(thrown));
  }

  /** Starts over without a file. */
  startOver(): void {
    this.file.value = undefined;
    this.kind.value = "";
    this.complaint.value = undefined;
    this.error.value = undefined;
    this.keepsSource.value = false;
    this.arrived.value = [];
    this.cards.forgetFailures();
    this.#refused = [];
    this.#jobId.value = undefined;
  }

  /** Returns to the selection and keeps the file. */
  changeKind(kind: string): void {
    this.kind.value = kind;
    this.error.value = undefined;
    this.#jobId.value = undefined;
  }

  async #send(file: File, wish: ImportRequest): Promise<void> {
    this.error.value = undefined;
    this.#jobId.value = undefined;
    this.#abort = new AbortController();
    const rate = new Rate();
    this.sending.value = { name: file.name, sentBytes: 0, totalBytes: file.size, bytesPerSecond: 0 };
    // Only an upload is lost with the page.
    const stay = (event: Event) => event.preventDefault();
    globalThis.addEventListener("beforeunload", stay);
    try {
      const job = await uploadImport(file, wish, (sentBytes) => {
        const bytesPerSecond = rate.at(performance.now(), sentBytes);
        this.sending.value = { name: file.name, sentBytes, totalBytes: file.size, bytesPerSecond };
      }, this.#abort.signal);
      this.#follow(job);
    } catch (thrown) {
      if (!this.#abort.signal.aborted) this.error.value = asApiError(thrown);
    } finally {
      globalThis.removeEventListener("beforeunload", stay);
      this.sending.value = undefined;
    }
  }

  #follow(job: Job): void {
    const { activity } = this.#store;
    if (!activity.jobs.peek().some(({ id }) => id === job.id)) activity.jobs.value = [job, ...activity.jobs.peek()];
    this.#jobId.value = job.id;
    activity.onChanged();
    const end = effect(() => {
      const now = this.job.value;
      // A list that was asked for before the job began lacks it.
      if (now === undefined || (now.id === job.id && isRunning(now))) return;
      queueMicrotask(() => {
        end();
        if (now.id === job.id) this.#showResult(now);
      });
    });
  }

  /** Shows a toast on other screens when it ends. */
  #showResult(job: Job): void {
    void this.#loadSources();
    const { router, toasts } = this.#store;
    if (router.path.peek() === IMPORT_PATH || job.state === "cancelled") return;
    const t = texts.import;
    const isDone = job.state === "done";
    toasts.show(!isDone ? t.jobFailed : getImportOutcome(job)?.dry_run ? t.previewReady : t.jobDone, {
      isError: !isDone,
      action: { label: t.showReport, run: () => router.go(IMPORT_PATH) },
    });
  }

  /** Resumes the newest import while it runs, or waits for confirmation after its dry run. */
  #resume(): void {
    if (this.#jobId.peek() !== undefined || this.file.peek() || this.sending.peek()) return;
    const newest = this.#store.activity.jobs.peek().find(({ kind }) => kind === IMPORT);
    if (newest === undefined) return;
    const outcome = getImportOutcome(newest);
    const isWaiting = outcome?.dry_run && (outcome.upload_id ?? outcome.source_id) !== undefined &&
      Date.parse(newest.updated_at) + UPLOAD_LIFETIME_MS > Date.now();
    if (isRunning(newest) || isWaiting) this.#jobId.value = newest.id;
  }
}

/** The list's part of an ended import; the rest of its report comes with the job. */
type ImportOutcome = Pick<ImportReport, "kind" | "dry_run" | "upload_id" | "source_id">;

/** Returns it; undefined for a job that is not an ended import. */
export function getImportOutcome(job: Job | undefined): ImportOutcome | undefined {
  return job?.kind === IMPORT && job.state === "done" ? job.detail as ImportOutcome : undefined;
}

/** Returns whether a job has not ended. */
export function isRunning({ state }: Job): boolean {
  return state === "queued" || state === "running" || state === "verifying";
}

const movings = new WeakMap<Store, Imports>();

/** Returns the imports of the page, which outlive their screen. */
export function getImports(store: Store): Imports {
  let moving = movings.get(store);
  if (moving === undefined) movings.set(store, moving = new Imports(store));
  return moving;
}

/** Bytes per second over the last few seconds: uploads are bursty. */
class Rate {
  readonly #seen: { atMs: number; bytes: number }[] = [];

  /** Records the uploaded bytes and returns bytes per second. */
  at(atMs: number, bytes: number): number {
    this.#seen.push({ atMs, bytes });
    while (this.#seen.length > 2 && this.#seen[0]!.atMs < atMs - RATE_MS) this.#seen.shift();
    const first = this.#seen[0]!;
    return atMs === first.atMs ? 0 : (bytes - first.bytes) * 1000 / (atMs - first.atMs);
  }
}

/** A character card: not an import of a program, but users drop those here, too. */
export const CARD = "card";

// PKWARE APPNOTE, sections 4.3.12 to 4.3.16
const END_MARK = 0x06054b50;
const END_BYTES = 22;
/** The zip64 end record with its locator. */
const END64_BYTES = 76;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const MAX_COMMENT_BYTES = 65_535;
/** How much of the directory is read: thousands of names are enough. In bytes. */
const MAX_DIRECTORY_BYTES = 512 * 1024;

/** File names that identify a zip's content, most reliable first. */
const BY_NAMES: [kind: string, sign: RegExp][] = [
  ["parlor", /^parlor-export\.json$/],
  [CARD, /^card\.json$/],
  ["backyard", /(^|\/)characters\/[^/]+\/character\.json$/],
  ["claude", /(^|\/)(users|projects|memories)\.json$/],
  ["chatgpt", /(^|\/)conversations[-\d]*\.json$/],
  ["sillytavern", /(^|\/)(settings\.json$|(characters|chats|worlds|group chats|OpenAI Settings|User Avatars)\/)/],
  ["jan", /(^|\/)thread\.json$/],
  ["lmstudio", /\.conversation\.json$/],
  ["cherrystudio", /^data\.json$/],
  ["textgen", /(^|\/)logs\/(chat|instruct|chat-instruct)\/.*\.json$/],
  ["tavern", /\.jsonl$/i],
];

/** Patterns at the start of a JSON file, most reliable first. */
const BY_TEXT: [kind: string, sign: RegExp][] = [
  [CARD, /"spec"\s*:\s*"chara_card_v\d"|"first_mes"\s*:/],
  ["risuai", /"type"\s*:\s*"risu/],
  ["agnai", /"kind"\s*:\s*"(?:character|chat|memory)"|"treeLeafId"|"sampleChat"/],
  ["lmstudio", /"currentlySelected"\s*:|"perChatPredictionConfig"\s*:/],
  ["koboldcpp", /"gamestarted"\s*:/],
  [
    "cherrystudio",
    /"persist:cherry-studio"|"message_blocks"\s*:|^\{\s*("\w+"\s*:\s*\d+\s*,\s*){0,2}"localStorage"\s*:/,
  ],
  ["llamacpp", /^\[?\s*\{\s*"conv"\s*:\s*\{/],
  ["textgen", /^\{\s*"internal"\s*:\s*\[/],
  ["characterai", /"histories"\s*:\s*[[{]|"is_human"\s*:/],
  ["claude", /"chat_messages"\s*:/],
  ["librechat", /"messagesTree"\s*:|"isCreatedByUser"\s*:|"parentMessageId"\s*:/],
  ["lobechat", /"exportType"\s*:|^\{\s*"data"\s*:\s*\{\s*"userSettings"\s*:|^\{\s*"version"\s*:\s*"2\.0"/],
  ["chatbox", /"__exported_items"\s*:|"session:[\w-]+"\s*:|"chat-sessions(-list)?"\s*:/],
  ["chatgpt", /"mapping"\s*:\s*\{/],
  ["openwebui", /"history"\s*:\s*\{|"chat"\s*:\s*\{|"currentId"\s*:/],
];

/**
 * Detects the kind of an import from the start of the file, and for a zip from its file names. Only a suggestion.
 *
 * @returns The kind, or undefined if unknown. Reads little of the file, however large.
 */
export async function detectImportKind(file: File): Promise<string | undefined> {
  const begin = new Uint8Array(await file.slice(0, 64 * 1024).arrayBuffer());
  if (begin[0] === 0x89 && begin[1] === 0x50) return CARD;
  if (begin[0] === 0xff && begin[1] === 0xd8 || new TextDecoder().decode(begin.subarray(8, 12)) === "WEBP") return CARD;
  if (begin[0] === 0x50 && begin[1] === 0x4b) {
    const names = await listZipNames(file);
    return BY_NAMES.find(([, sign]) => names.some((name) => sign.test(name)))?.[0];
  }
  if (/\.jsonl$/i.test(file.name)) return "tavern";
  if (/\.bin$/i.test(file.name)) return "risuai"; // its backups
  const text = new TextDecoder().decode(begin).trimStart();
  if (!/^[[{]/.test(text)) return undefined;
  // Several objects, one per line.
  if (/^\{[^\n]*\}\r?\n\{/.test(text)) return "tavern";
  return BY_TEXT.find(([, sign]) => sign.test(text))?.[0];
}

/** Reports whether a file is data of another program, not a card. */
export async function isProgramExport(file: File): Promise<boolean> {
  const kind = await detectImportKind(file).catch(() => undefined);
  return kind !== undefined && kind !== CARD;
}

/** Returns the first names of a zip's directory; none without a directory. */
async function listZipNames(file: File): Promise<string[]> {
  const tail = await readView(file, file.size - END_BYTES - MAX_COMMENT_BYTES, file.size);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  if (end < 0) return [];
  const length = tail.getUint32(end + 12, true);
  const startOffset = tail.getUint32(end + 16, true);
  // Beyond 4 GiB its position is stored elsewhere, but it precedes the zip64 end record.
  const at = startOffset === 0xffffffff ? file.size - (tail.byteLength - end) - END64_BYTES - length : startOffset;
  const view = await readView(file, at, at + Math.min(length, MAX_DIRECTORY_BYTES));
  const names: string[] = [];
  for (let here = 0; here + ENTRY_BYTES <= view.byteLength && view.getUint32(here, true) === ENTRY_MARK;) {
    const [name, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(here + offset, true));
    if (here + ENTRY_BYTES + name! > view.byteLength) break;
    names.push(new TextDecoder().decode(new Uint8Array(view.buffer, here + ENTRY_BYTES, name)));
    here += ENTRY_BYTES + name! + extra! + comment!;
  }
  return names;
}

async function readView(file: File, from: number, to: number): Promise<DataView<ArrayBuffer>> {
  return new DataView(await file.slice(Math.max(0, from), to).arrayBuffer());
}
