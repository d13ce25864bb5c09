/** Worker that downloads one file at a time through the guard, writes it to disk and hashes it on the way. */
import { AppError } from "../../errors.ts";
import { type GuardedResponse, sendGuardedGet } from "../../http/guard/guarded_get.ts";
import { createTargetPolicy, resolveWithSystem } from "../../http/guard/target_policy.ts";
import { OwnListeners } from "../../http/own_listeners.ts";
import { reportDefects } from "../../process/worker.ts";
import { toFileError } from "../../storage/atomic_file.ts";
import { createBlock, createFileHash, hashFile, PartFile } from "./part_file.ts";
import type { TransferEnd, TransferOrder, TransferReport, TransferSettings, TransferTarget } from "./file_download.ts";

/** Maximum time before received bytes are written. */
const FLUSH_WITHIN_MS = 200;
const PROGRESS_INTERVAL_MS = 250;
/** Headers that are sent to the serving thread for a response without bytes. */
const FORWARDED_HEADERS = ["location", "x-error-code", "x-error-message", "retry-after", "ratelimit"];

type Ending = Pick<TransferEnd, "outcome" | "message">;

class TransferWorker {
  readonly #policy;
  readonly #settings: TransferSettings;
  readonly #post: (report: TransferReport) => void;
  #part: PartFile | undefined;
  #abort = new AbortController();
  #unreportedBytes = 0;
  #progressTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(settings: TransferSettings, post: (report: TransferReport) => void) {
    this.#settings = settings;
    const ownListeners = new OwnListeners(settings.policy.ownListeners);
    this.#policy = createTargetPolicy({ ...settings.policy, ownListeners, resolve: resolveWithSystem });
    this.#post = post;
  }

  async take(order: TransferOrder): Promise<void> {
    if (order.kind === "abort") return this.#abort.abort(new AppError("interrupted", "The download was canceled"));
    try {
      this.#report(await this.#answer(order));
    } catch (error) {
      const { code, message } = error instanceof AppError ? error : toFileError("Can't write the download", error);
      this.#report({ kind: "failed", code, message });
    }
  }

  /** Responds to a request. Later progress belongs to the next one. */
  #report(report: TransferReport): void {
    clearTimeout(this.#progressTimer);
    this.#progressTimer = undefined;
    this.#post(report);
  }

  async #answer(order: Exclude<TransferOrder, { kind: "abort" }>): Promise<TransferReport> {
    switch (order.kind) {
      case "open":
        return { kind: "opened", bytes: await this.#open(order.target) };
      case "get":
        return await this.#get(order);
      case "finish":
        return await this.#finish();
      case "hash":
        return await this.#hash(order.target);
    }
  }

  async #open(target: TransferTarget): Promise<number> {
    this.#closePart();
    this.#part = await PartFile.open(target, this.#abort.signal, (bytes) => this.#reportProgress(bytes));
    return this.#part.bytes;
  }

  async #hash(target: TransferTarget): Promise<TransferReport> {
    using file = await Deno.open(target.path);
    const hash = createFileHash(target);
    const bytes = await hashFile(file, hash, createBlock(), this.#abort.signal, (bytes) => this.#reportProgress(bytes));
    return { kind: "hashed", hash: hash.digest("hex"), bytes };
  }

  async #get(order: Extract<TransferOrder, { kind: "get" }>): Promise<TransferReport> {
    const part = this.#openPart();
    const { bytes: bytesBefore, generation } = part;
    if (order.restart) await part.restart();
    const report = (end: Ending, etag?: string): TransferEnd => ({
      kind: "ended",
      ...end,
      bytes: part.bytes,
      isRestarted: bytesBefore > 0 && part.generation > generation,
      ...(etag !== undefined && { etag }),
    });
    const range: Record<string, string> = part.bytes > 0 ? { range: `bytes=${part.bytes}-` } : {};
    if (part.bytes > 0 && order.etag !== undefined) range["if-range"] = order.etag;
    const { caCerts } = this.#settings.policy;
    let answer: GuardedResponse;
    try {
      answer = await sendGuardedGet(new URL(order.url), {
        policy: this.#policy,
        headers: { accept: "*/*", "accept-encoding": "identity", ...order.headers, ...range },
        signal: this.#abort.signal,
        limits: { idleMs: this.#settings.idleMs },
        caCerts,
      });
    } catch (error) {
      if (error instanceof AppError && error.code === "upstream_error") {
        return report(createEnding("cut", error.message));
      }
      throw error;
    }
    using open = answer;
    if (open.status !== 200 && open.status !== 206) {
      const forwarded = FORWARDED_HEADERS.flatMap((name) => {
        const value = open.getHeader(name);
        return value === undefined ? [] : [[name, value]];
      });
      return { kind: "answer", status: open.status, headers: Object.fromEntries(forwarded) };
    }
    const end = await this.#checkStart(part, open, order.etag) ?? await this.#receive(part, open);
    return report(end, getStrongEtag(open));
  }

  /** Checks that the body of the response continues the partial file. */
  async #checkStart(
    part: PartFile,
    answer: GuardedResponse,
    knownEtag: string | undefined,
  ): Promise<Ending | undefined> {
    const { sizeBytes } = part.target;
    const coding = answer.getHeader("content-encoding");
    if (coding !== undefined && coding !== "identity") {
      return createEnding(
        "unusable",
        `it's compressed with ${coding}, which wasn't requested. A proxy may be doing that`,
      );
    }
    if (answer.status === 200) {
      if (part.bytes > 0) await part.restart(); // The range was ignored, or the file has changed.
      if (answer.bodyBytes !== undefined && answer.bodyBytes !== sizeBytes) {
        return createSizeEnding(answer.bodyBytes, sizeBytes);
      }
      return undefined;
    }
    const [, from, total] =
      /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(answer.getHeader("content-range") ?? "") ??
        [];
    if (total !== undefined && total !== "*" && Number(total) !== sizeBytes) {
      return createSizeEnding(Number(total), sizeBytes);
    }
    if (Number(from) !== part.bytes) return createEnding("stale", "the response starts at another byte than requested");
    const etag = getStrongEtag(answer);
    if (knownEtag !== undefined && etag !== undefined && etag !== knownEtag) {
      return createEnding("stale", "the file has changed on the server");
    }
    return undefined;
  }

  async #receive(part: PartFile, answer: GuardedResponse): Promise<Ending> {
    const { sizeBytes } = part.target;
    const writer = part.openWriter((bytes) => this.#reportProgress(bytes));
    let failure: { reason: unknown } | undefined;
    const flushing = setInterval(() => {
      try {
        writer.flush();
      } catch (reason) {
        failure ??= { reason };
        answer[Symbol.dispose](); // Ends the pending read.
      }
    }, FLUSH_WITHIN_MS);
    try {
      for (;;) {
        const end = await readInto(answer, writer.freeSpace, part.bytes + writer.unwrittenBytes, sizeBytes);
        if (failure !== undefined) throw failure.reason;
        if (typeof end === "number") writer.commit(end);
        else {
          if (end.outcome !== "wrong-size") writer.flush();
          return end;
        }
      }
    } finally {
      clearInterval(flushing);
      await part.settle();
    }
  }

  async #finish(): Promise<TransferReport> {
    const part = this.#openPart();
    const hash = await part.finish();
    this.#closePart();
    return { kind: "hashed", hash, bytes: part.bytes };
  }

  #reportProgress(bytes: number): void {
    this.#unreportedBytes = bytes;
    this.#progressTimer ??= setTimeout(() => {
      this.#progressTimer = undefined;
      this.#post({ kind: "progress", bytes: this.#unreportedBytes });
    }, PROGRESS_INTERVAL_MS);
  }

  #openPart(): PartFile {
    if (this.#part === undefined) throw new AppError("internal", "No part file is open");
    return this.#part;
  }

  #closePart(): void {
    this.#part?.close();
    this.#part = undefined;
  }
}

/**
 * Reads the next bytes of a response.
 *
 * @param received Number of bytes of the file received so far.
 * @returns Number of bytes read, or how the download ended.
 */
async function readInto(
  answer: GuardedResponse,
  buffer: Uint8Array,
  received: number,
  sizeBytes: number,
): Promise<number | Ending> {
  let count: number;
  try {
    count = await answer.read(buffer);
  } catch (error) {
    if (error instanceof AppError && error.code !== "interrupted") return createEnding("cut", error.message);
    throw error;
  }
  if (received + count > sizeBytes) return createSizeEnding(received + count, sizeBytes);
  if (count > 0) return count;
  return received === sizeBytes
    ? createEnding("whole", "")
    : createEnding("cut", `it ended after ${received} of ${sizeBytes} bytes`);
}

function getStrongEtag(answer: GuardedResponse): string | undefined {
  const etag = answer.getHeader("etag");
  return etag?.startsWith('"') ? etag : undefined; // If-Range only accepts strong ETags (RFC 9110, section 13.1.5).
}

function createEnding(outcome: TransferEnd["outcome"], message: string): Ending {
  return { outcome, message };
}

function createSizeEnding(found: number, expected: number): Ending {
  return createEnding("wrong-size", `it has at least ${found} bytes, but the hub lists ${expected}`);
}

let worker: TransferWorker | undefined;

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  const post = (report: TransferReport) => self.postMessage(report);
  reportDefects();
  self.onmessage = async ({ data }: MessageEvent<TransferSettings | TransferOrder>) => {
    if ("policy" in data) worker = new TransferWorker(data, post);
    else await worker?.take(data);
  };
}
