/** The serving thread's end of a download's Worker. */
import { AppError } from "../../errors.ts";
import type {
  TransferEnd,
  TransferOrder,
  TransferReport,
  TransferSettings,
  TransferTarget,
} from "./download_protocol.ts";

type Answered = Exclude<TransferReport, { kind: "progress" | "failed" }>;

/** How long a Worker may take to let go of its file. */
const STOP_WITHIN_MS = 5_000;

/** One Worker, for the files of one download after another. */
export class Transfer implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #signal: AbortSignal;
  #waiting: PromiseWithResolvers<Answered> | undefined;
  #onProgress: (bytes: number) => void = () => {};
  #lost: AppError | undefined;
  readonly #abort = () => this.#post({ kind: "abort" });

  /** Starts the Worker. @param signal Ends what is under way; it then rejects with the signal's reason. */
  constructor(settings: TransferSettings, signal: AbortSignal) {
    this.#signal = signal;
    this.#worker = new Worker(new URL("./download_worker.ts", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }: MessageEvent<TransferReport>) => this.#take(data);
    this.#worker.onerror = (event) => {
      event.preventDefault(); // else it would end the process
      this.#lose(event.message);
    };
    this.#worker.onmessageerror = () => this.#lose("its message could not be read");
    this.#worker.postMessage(settings);
    signal.addEventListener("abort", this.#abort);
  }

  /**
   * Opens a part file. @returns How many bytes it holds.
   * @param onProgress Told now and then how many bytes are there, until the next file is opened.
   * @throws {AppError} as all calls here: `storage_full`, `internal`, `address_not_allowed`, or the signal's reason
   */
  async open(target: TransferTarget, onProgress: (bytes: number) => void): Promise<number> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "open", target });
    return report.kind === "opened" ? report.bytes : this.#odd(report);
  }

  /** Gets what is missing. Where the server answers without bytes, its status and headers are the result. */
  async get(
    request: Omit<Extract<TransferOrder, { kind: "get" }>, "kind">,
  ): Promise<TransferEnd | Extract<TransferReport, { kind: "answer" }>> {
    const report = await this.#ask({ kind: "get", ...request });
    return report.kind === "ended" || report.kind === "answer" ? report : this.#odd(report);
  }

  /** Brings the part file to the disk for good and closes it. @returns The hash of its bytes. */
  async finish(): Promise<string> {
    const report = await this.#ask({ kind: "finish" });
    return report.kind === "hashed" ? report.hash : this.#odd(report);
  }

  /** Hashes a file. @param onProgress As for `open`. */
  async hash(target: TransferTarget, onProgress: (bytes: number) => void): Promise<string> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "hash", target });
    return report.kind === "hashed" ? report.hash : this.#odd(report);
  }

  /** Ends the Worker once it holds still, so that its files can be removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener("abort", this.#abort);
    if (this.#waiting !== undefined) {
      this.#post({ kind: "abort" });
      const limit = setTimeout(() => this.#lose("it did not end"), STOP_WITHIN_MS);
      await this.#waiting.promise.catch(() => {});
      clearTimeout(limit);
    }
    this.#worker.terminate();
  }

  async #ask(order: TransferOrder): Promise<Answered> {
    this.#signal.throwIfAborted();
    if (this.#lost !== undefined) throw this.#lost;
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

  #lose(found: string): void {
    this.#lost = new AppError("internal", `Can't go on with the download: its Worker was lost (${found})`);
    this.#waiting?.reject(this.#lost);
  }

  #odd(report: Answered): never {
    throw new AppError("internal", `The Worker of a download answered "${report.kind}", which was not asked`);
  }
}
