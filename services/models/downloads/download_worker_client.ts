/** Runs a download's Worker from the serving thread. */
import { AppError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type {
  TransferEnd,
  TransferOrder,
  TransferReport,
  TransferSettings,
  TransferTarget,
} from "./download_protocol.ts";

type Answered = Exclude<TransferReport, { kind: "progress" | "failed" | "defect" }>;

/** How long a Worker may take to stop. */
const STOP_WITHIN_MS = 5_000;

/** One Worker, for the files of one download after another. */
export class Transfer implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #signal: AbortSignal;
  readonly #log: Log;
  #waiting: PromiseWithResolvers<Answered> | undefined;
  #onProgress: (bytes: number) => void = () => {};
  #lost: AppError | undefined;
  readonly #abort = () => this.#post({ kind: "abort" });

  /** Starts the Worker. @param signal Aborts the current call, which then throws the reason. */
  constructor(settings: TransferSettings, signal: AbortSignal, log: Log) {
    this.#signal = signal;
    this.#log = log;
    this.#worker = new Worker(new URL("./download_worker.ts", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }: MessageEvent<TransferReport>) => this.#take(data);
    this.#worker.onerror = (event) => {
      event.preventDefault(); // otherwise it would end the process
      this.#lose(event.message);
    };
    this.#worker.onmessageerror = () => this.#lose("its message couldn't be read");
    this.#worker.postMessage(settings);
    signal.addEventListener("abort", this.#abort);
  }

  /**
   * Opens a part file and returns its size.
   *
   * @param onProgress Called with the number of bytes, a few times a second, until the next file is opened.
   * @throws {AppError} `storage_full`, `internal` or `address_not_allowed`, as all methods here.
   * @throws The reason of the signal.
   */
  async open(target: TransferTarget, onProgress: (bytes: number) => void): Promise<number> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "open", target });
    return report.kind === "opened" ? report.bytes : this.#throwUnexpected(report);
  }

  /** Downloads what is missing. A response without bytes is returned with status and headers. */
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

  /** Hashes a file. @param onProgress As for `open`. */
  async hash(target: TransferTarget, onProgress: (bytes: number) => void): Promise<string> {
    this.#onProgress = onProgress;
    const report = await this.#ask({ kind: "hash", target });
    return report.kind === "hashed" ? report.hash : this.#throwUnexpected(report);
  }

  /** Ends the Worker after its current request, so that its files can be removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener("abort", this.#abort);
    if (this.#waiting !== undefined) {
      this.#post({ kind: "abort" });
      const limit = setTimeout(() => this.#lose("it didn't stop"), STOP_WITHIN_MS);
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
    if (report.kind === "defect") {
      this.#log("error", "Uncaught error in the Worker of a download", { error: report.error });
      return this.#lose(report.error.split("\n", 1)[0]!);
    }
    this.#waiting?.resolve(report);
  }

  #post(order: TransferOrder): void {
    this.#worker.postMessage(order);
  }

  #lose(found: string): void {
    this.#lost = new AppError("internal", `Can't continue the download: its Worker failed (${found})`);
    this.#waiting?.reject(this.#lost);
  }

  #throwUnexpected(report: Answered): never {
    throw new AppError("internal", `The Worker of a download sent an unexpected "${report.kind}"`);
  }
}
