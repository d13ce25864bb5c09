/** Runs one download job: downloads the files with a Worker, verifies them and renames them. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../errors.ts";
import type { OwnListeners } from "../../http/own_listeners.ts";
import type { JobContext } from "../../jobs/job_store.ts";
import type { Log } from "../../log.ts";
import { readFileIfExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import type { Hub, HubFile } from "../hub.ts";
import { type DownloadSubject, type ModelsFolder, statIfExists, toDownloadKey } from "../local/models_folder.ts";
import {
  downloadFile,
  type DownloadLimits,
  isExpectedHash,
  toTransferTarget,
  type TransferEnd,
  type TransferOrder,
  type TransferPolicy,
  type TransferReport,
  type TransferSettings,
  type TransferTarget,
} from "./file_download.ts";
import { openWorker } from "../../process/worker.ts";

/** Dependencies and limits of download jobs. */
export interface DownloadOptions {
  hub: Hub;
  folder: ModelsFolder;
  log: Log;
  policy: TransferPolicy;
  ownListeners?: OwnListeners;
  limits: DownloadLimits;
}

/** Disk space that a download leaves free. */
const RESERVE_BYTES = 256 * 1024 * 1024;

/**
 * Runs one job. If it fails or the server stops, the part files stay; the `discard` function of the kind deletes them.
 */
export async function runDownload(options: DownloadOptions, context: JobContext): Promise<void> {
  const params = context.params as DownloadParams;
  const { folder } = options;
  const progress = new DownloadProgress(params, context);
  const work = await folder.makeWorkFolder(toDownloadKey(params));
  const getPart = (index: number) => join(work, `${index}.part`);
  await removeOutdatedParts(work, params.files);
  const policy: TransferPolicy = { ...options.policy, ownListeners: options.ownListeners?.toJSON() };
  await using transfer = new Transfer({ policy, idleMs: options.limits.idleMs }, context.signal);
  const missing: { file: HubFile; index: number }[] = [];
  for (const [index, file] of params.files.entries()) {
    if (await isInPlace(options, transfer, params, file, (bytes) => progress.setFound(index, bytes))) {
      progress.setFound(index, file.sizeBytes);
    } else missing.push({ file, index });
  }
  await assertFreeSpace(folder, missing.map(({ file, index }) => ({ file, partPath: getPart(index) })));
  for (const { file, index } of missing) {
    await downloadFile({
      hub: options.hub,
      transfer,
      limits: options.limits,
      file,
      partPath: getPart(index),
      repo: params.repo,
      revision: params.revision,
      signal: context.signal,
      onFound: (bytes) => progress.setFound(index, bytes),
      onReceived: (bytes) => progress.setReceived(index, bytes),
    });
    await assertFormat(file, getPart(index));
  }
  progress.end();
  await context.startVerifying();
  for (const { file, index } of missing) await folder.moveIntoPlace(getPart(index), getPath(params, file));
  await folder.removeWorkFolder(toDownloadKey(params));
}

function getPath({ repo }: DownloadParams, { path }: HubFile): string {
  return `${repo}/${path}`;
}

/** Deletes partial files of another commit, unless all hashes are the same. A file next to them lists them. */
async function removeOutdatedParts(work: string, files: HubFile[]): Promise<void> {
  const notePath = join(work, "note.json");
  const note = JSON.stringify(
    files.map(({ path, sizeBytes, sha256, gitSha1 }) => [path, sizeBytes, sha256 ?? gitSha1]),
  );
  const before = await readFileIfExists(notePath);
  if (before !== undefined && new TextDecoder().decode(before) === note) return;
  for await (const { name } of Deno.readDir(work)) await Deno.remove(join(work, name), { recursive: true });
  await writeFileAtomic(notePath, note);
}

async function isInPlace(
  { folder }: DownloadOptions,
  transfer: Transfer,
  params: DownloadParams,
  file: HubFile,
  onProgress: (bytes: number) => void,
): Promise<boolean> {
  const path = folder.resolve(getPath(params, file));
  const info = await statIfExists(path);
  if (info === undefined) return false;
  if (!info.isFile) throw new AppError("conflict", `Can't write "${path}": another file or folder has this name`);
  return info.size === file.sizeBytes &&
    isExpectedHash(file, await transfer.hash(toTransferTarget(file, path), onProgress));
}

async function assertFreeSpace(folder: ModelsFolder, missing: { file: HubFile; partPath: string }[]): Promise<void> {
  let needed = 0;
  for (const { file, partPath } of missing) {
    needed += file.sizeBytes - Math.min(file.sizeBytes, (await statIfExists(partPath))?.size ?? 0);
  }
  if (needed === 0) return;
  const { bavail, bsize } = await statfs(folder.path);
  const free = Number(bavail) * Number(bsize);
  if (free >= needed + RESERVE_BYTES) return;
  const [needs, has] = [needed, free].map((bytes) => `${(bytes / 1e9).toFixed(1)} GB`);
  throw new AppError(
    "storage_full",
    `Can't download to "${folder.path}": ${needs} are needed, but only ${has} are free`,
  );
}

/** Rejects an error page that was saved under the name of a model. */
async function assertFormat({ path, sizeBytes }: HubFile, partPath: string): Promise<void> {
  if (!path.toLowerCase().endsWith(".gguf")) return;
  using part = await Deno.open(partPath);
  const magic = new Uint8Array(4);
  await part.read(magic);
  if (sizeBytes >= 4 && new TextDecoder().decode(magic) === "GGUF") return;
  await Deno.remove(partPath);
  throw new AppError("upstream_error", `Can't use "${path}": the hub didn't send a GGUF file`);
}

/** The files to download, determined when the job is created. */
export interface DownloadParams extends DownloadSubject {
  /** Commit of all files. */
  revision: string;
  /** In the order in which they're renamed. The last one completes the model. */
  files: HubFile[];
}

/** Details of a download in the API. */
export interface DownloadDetail extends DownloadSubject {
  revision: string;
  files: { path: string; sizeBytes: number; receivedBytes: number; sha256?: string }[];
  /** Average of the last 5 s; 0 if no data arrives. */
  bytesPerSecond: number;
}

const RATE_WINDOW_MS = 5_000;

/** Returns the details of a download that hasn't started. */
export function createInitialDetail(params: DownloadParams): DownloadDetail {
  const { repo, format, file, revision, files } = params;
  return {
    repo,
    format,
    file,
    revision,
    files: files.map(({ path, sizeBytes, sha256 }) => ({ path, sizeBytes, receivedBytes: 0, sha256 })),
    bytesPerSecond: 0,
  };
}

/** Returns the size of all files. */
export function sumBytes(files: readonly { sizeBytes: number }[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Reports progress and speed of a job. */
export class DownloadProgress {
  readonly #context: Pick<JobContext, "detail" | "progress">;
  readonly #detail: DownloadDetail;
  readonly #total: number;
  #received = 0;
  readonly #samples: { atMs: number; bytes: number }[] = [];

  constructor(params: DownloadParams, context: Pick<JobContext, "detail" | "progress">) {
    this.#context = context;
    this.#detail = createInitialDetail(params);
    this.#total = sumBytes(params.files);
  }

  /** Sets how many bytes of a file an earlier attempt downloaded. They don't count toward the speed. */
  setFound(index: number, bytes: number): void {
    this.#set(index, bytes, false);
  }

  /** Sets how many bytes of a file were received. */
  setReceived(index: number, bytes: number): void {
    this.#set(index, bytes, true);
  }

  /** Reports that the download has ended. */
  end(): void {
    this.#detail.bytesPerSecond = 0;
    this.#report();
  }

  #set(index: number, bytes: number, isDownloaded: boolean): void {
    const file = this.#detail.files[index]!;
    this.#received += bytes - file.receivedBytes;
    file.receivedBytes = bytes;
    const nowMs = performance.now();
    const samples = this.#samples;
    // Bytes that were found or discarded start a new measurement.
    if (!isDownloaded || bytes === 0 || this.#received < (samples.at(-1)?.bytes ?? 0)) samples.length = 0;
    samples.push({ atMs: nowMs, bytes: this.#received });
    while (samples.length > 2 && samples[0]!.atMs < nowMs - RATE_WINDOW_MS) samples.shift();
    const [first] = samples;
    const seconds = (nowMs - first!.atMs) / 1000;
    this.#detail.bytesPerSecond = seconds < 0.2 ? 0 : Math.round((this.#received - first!.bytes) / seconds);
    this.#report();
  }

  #report(): void {
    this.#context.detail(this.#detail);
    this.#context.progress({ done: this.#received, total: this.#total, unit: "bytes" });
  }
}

type Answered = Exclude<TransferReport, { kind: "progress" | "failed" }>;

/** How long to wait for a Worker to stop. */
const STOP_WITHIN_MS = 5_000;

/** A Worker that downloads one file after the other. */
export class Transfer implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #signal: AbortSignal;
  #waiting: PromiseWithResolvers<Answered> | undefined;
  #onProgress: (bytes: number) => void = () => {};
  #failure: AppError | undefined;
  readonly #abort = () => this.#post({ kind: "abort" });

  /** Starts the Worker. @param signal Aborts the current call, which then throws the reason. */
  constructor(settings: TransferSettings, signal: AbortSignal) {
    this.#signal = signal;
    this.#worker = openWorker(new URL("./download_worker.ts", import.meta.url));
    this.#worker.onmessage = ({ data }: MessageEvent<TransferReport>) => this.#take(data);
    this.#worker.onerror = (event) => {
      event.preventDefault(); // Otherwise it would end the process.
      this.#fail(event.message);
    };
    this.#worker.onmessageerror = () => this.#fail("its message couldn't be read");
    this.#worker.postMessage(settings);
    signal.addEventListener("abort", this.#abort);
  }

  /**
   * Opens a part file and returns its size.
   *
   * @param onProgress Called with the number of bytes, a few times a second, until the next file is opened.
   * @throws {AppError} `storage_full`, `internal` or `address_not_allowed`, like all methods here.
   * @throws The reason of the signal.
   */
  async open(target: TransferTarget, onProgress: (bytes: number) => void): Promise<number> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "open", target });
    return report.kind === "opened" ? report.bytes : this.#throwUnexpected(report);
  }

  /** Downloads the missing bytes. A response without bytes is returned with status and headers. */
  async get(
    request: Omit<Extract<TransferOrder, { kind: "get" }>, "kind">,
  ): Promise<TransferEnd | Extract<TransferReport, { kind: "answer" }>> {
    const report = await this.#ask({ kind: "get", ...request });
    return report.kind === "ended" || report.kind === "answer" ? report : this.#throwUnexpected(report);
  }

  /** Syncs the part file, closes it and returns its hash. */
  async finish(): Promise<string> {
    const report = await this.#ask({ kind: "finish" });
    return report.kind === "hashed" ? report.hash : this.#throwUnexpected(report);
  }

  /** Hashes a file. @param onProgress Like for `open`. */
  async hash(target: TransferTarget, onProgress: (bytes: number) => void): Promise<string> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "hash", target });
    return report.kind === "hashed" ? report.hash : this.#throwUnexpected(report);
  }

  /** Ends the Worker after its current request, so that its files can be deleted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener("abort", this.#abort);
    if (this.#waiting !== undefined) {
      this.#post({ kind: "abort" });
      const limit = setTimeout(() => this.#fail("it didn't stop"), STOP_WITHIN_MS);
      await this.#waiting.promise.catch(() => {});
      clearTimeout(limit);
    }
    this.#worker.terminate();
  }

  async #ask(order: TransferOrder): Promise<Answered> {
    this.#signal.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
    this.#waiting = Promise.withResolvers<Answered>();
    this.#post(order);
    try {
      return await this.#waiting.promise;
    } catch (error) {
      throw this.#signal.aborted ? this.#signal.reason : error;
    } finally {
      this.#waiting = undefined;
    }
  }

  #take(report: TransferReport): void {
    if (report.kind === "progress") return this.#onProgress(report.bytes);
    if (report.kind === "failed") return this.#waiting?.reject(new AppError(report.code, report.message));
    this.#waiting?.resolve(report);
  }

  #post(order: TransferOrder): void {
    this.#worker.postMessage(order);
  }

  #fail(found: string): void {
    this.#failure = new AppError("internal", `Can't continue the download: its Worker failed (${found})`);
    this.#waiting?.reject(this.#failure);
  }

  #throwUnexpected(report: Answered): never {
    throw new AppError("internal", `The Worker of a download sent an unexpected "${report.kind}"`);
  }
}
