/** What shows of a download: what it is of, how far it is, and how fast it goes. */
import type { JobContext } from "../../jobs/job.ts";
import type { HubFile } from "../hub/hub.ts";
import type { DownloadSubject } from "../local/models_folder.ts";

/** What a job is to bring, settled when it was asked for. */
export interface DownloadParams extends DownloadSubject {
  /** The commit; all files are of this one. */
  revision: string;
  /** In the order in which they are to appear: the last one makes the rest a model. */
  files: HubFile[];
}

/** What shows of a download beside its state. */
export interface DownloadDetail extends DownloadSubject {
  revision: string;
  files: { path: string; sizeBytes: number; receivedBytes: number; sha256?: string }[];
  /** Over the last seconds; 0 while nothing comes. */
  bytesPerSecond: number;
}

/** The rate is that of so much time. */
const RATE_WINDOW_MS = 5_000;

/** Gives what shows of a download that has not begun. */
export function initialDetail(params: DownloadParams): DownloadDetail {
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

/** Gives how many bytes a download brings. */
export function totalBytes(files: readonly { sizeBytes: number }[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Says how far a job is, and how fast it goes. */
export class DownloadProgress {
  readonly #context: Pick<JobContext, "detail" | "progress">;
  readonly #detail: DownloadDetail;
  readonly #total: number;
  #received = 0;
  readonly #samples: { atMs: number; bytes: number }[] = [];

  constructor(params: DownloadParams, context: Pick<JobContext, "detail" | "progress">) {
    this.#context = context;
    this.#detail = initialDetail(params);
    this.#total = totalBytes(params.files);
  }

  /** So many bytes of a file were here before; reading them again is no measure of the line. */
  found(index: number, bytes: number): void {
    this.#set(index, bytes, false);
  }

  /** So many bytes of a file are here now that the line has brought more. */
  received(index: number, bytes: number): void {
    this.#set(index, bytes, true);
  }

  /** All bytes are here. */
  end(): void {
    this.#detail.bytesPerSecond = 0;
    this.#tell();
  }

  #set(index: number, bytes: number, isFromLine: boolean): void {
    const file = this.#detail.files[index]!;
    this.#received += bytes - file.receivedBytes;
    file.receivedBytes = bytes;
    const atMs = performance.now();
    const samples = this.#samples;
    // What went again begins the measure anew, as what was here before does.
    if (!isFromLine || bytes === 0 || this.#received < (samples.at(-1)?.bytes ?? 0)) samples.length = 0;
    samples.push({ atMs, bytes: this.#received });
    while (samples.length > 2 && samples[0]!.atMs < atMs - RATE_WINDOW_MS) samples.shift();
    const [first] = samples;
    const seconds = (atMs - first!.atMs) / 1000;
    this.#detail.bytesPerSecond = seconds < 0.2 ? 0 : Math.round((this.#received - first!.bytes) / seconds);
    this.#tell();
  }

  #tell(): void {
    this.#context.detail(this.#detail);
    this.#context.progress({ done: this.#received, total: this.#total, unit: "bytes" });
  }
}
