/** Worker: brings the bytes of one file at a time from a judged connection to the disk and hashes them on the way. */
import { AppError, messageOf } from "../../errors.ts";
import { guardedGet, type GuardedResponse } from "../../http/guard/guarded_get.ts";
import { resolveWithSystem } from "../../http/guard/resolve_host.ts";
import { createTargetPolicy } from "../../http/guard/target_policy.ts";
import { fileError } from "../../storage/atomic_file.ts";
import { hashFile, newBlock, newHash, PartFile } from "./part_file.ts";
import type {
  TransferEnd,
  TransferOrder,
  TransferReport,
  TransferSettings,
  TransferTarget,
} from "./download_protocol.ts";

/** A slow line must not hold back what it has brought for longer. */
const FLUSH_WITHIN_MS = 200;
const PROGRESS_INTERVAL_MS = 250;
/** Headers that the other side may need. */
const TOLD_HEADERS = ["location", "x-error-code", "x-error-message", "retry-after", "ratelimit"];

type Ending = Pick<TransferEnd, "outcome" | "message">;

class TransferWorker {
  readonly #policy;
  readonly #settings: TransferSettings;
  readonly #post: (report: TransferReport) => void;
  #part: PartFile | undefined;
  #abort = new AbortController();
  #untold = 0;
  #telling: ReturnType<typeof setTimeout> | undefined;

  constructor(settings: TransferSettings, post: (report: TransferReport) => void) {
    this.#settings = settings;
    this.#policy = createTargetPolicy({ ...settings.policy, resolve: resolveWithSystem });
    this.#post = post;
  }

  async take(order: TransferOrder): Promise<void> {
    if (order.kind === "abort") return this.#abort.abort(new AppError("interrupted", "The download was ended"));
    try {
      this.#report(await this.#answer(order));
    } catch (error) {
      const { code, message } = error instanceof AppError ? error : fileError("Can't write the download", error);
      this.#report({ kind: "failed", code, message });
    }
  }

  /** What is told after this is the next order's. */
  #report(report: TransferReport): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
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
    this.#part = await PartFile.open(target, this.#abort.signal, (bytes) => this.#tell(bytes));
    return this.#part.bytes;
  }

  async #hash(target: TransferTarget): Promise<TransferReport> {
    using file = await Deno.open(target.path);
    const hash = newHash(target);
    const bytes = await hashFile(file, hash, newBlock(), this.#abort.signal, (bytes) => this.#tell(bytes));
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
      answer = await guardedGet(new URL(order.url), {
        policy: this.#policy,
        headers: { accept: "*/*", "accept-encoding": "identity", ...order.headers, ...range },
        signal: this.#abort.signal,
        limits: { idleMs: this.#settings.idleMs },
        caCerts,
      });
    } catch (error) {
      if (error instanceof AppError && error.code === "upstream_error") return report(ended("cut", error.message));
      throw error;
    }
    using open = answer;
    if (open.status !== 200 && open.status !== 206) {
      const told = TOLD_HEADERS.flatMap((name) => {
        const value = open.header(name);
        return value === undefined ? [] : [[name, value]];
      });
      return { kind: "answer", status: open.status, headers: Object.fromEntries(told) };
    }
    const end = await this.#settleBegin(part, open, order.etag) ?? await this.#receive(part, open);
    return report(end, strongEtag(open));
  }

  /** Sees to it that what comes next belongs behind what is there. */
  async #settleBegin(
    part: PartFile,
    answer: GuardedResponse,
    knownEtag: string | undefined,
  ): Promise<Ending | undefined> {
    const { sizeBytes } = part.target;
    const coding = answer.header("content-encoding");
    if (coding !== undefined && coding !== "identity") {
      return ended("unusable", `it comes packed as ${coding}, which was not asked for; a proxy on the way may do that`);
    }
    if (answer.status === 200) {
      if (part.bytes > 0) await part.restart(); // the range was ignored, or the file behind it is another
      if (answer.bodyBytes !== undefined && answer.bodyBytes !== sizeBytes) {
        return wrongSize(answer.bodyBytes, sizeBytes);
      }
      return undefined;
    }
    const [, from, total] = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(answer.header("content-range") ?? "") ??
      [];
    if (total !== undefined && total !== "*" && Number(total) !== sizeBytes) return wrongSize(Number(total), sizeBytes);
    if (Number(from) !== part.bytes) return ended("stale", "the answer begins at another place than asked");
    const etag = strongEtag(answer);
    if (knownEtag !== undefined && etag !== undefined && etag !== knownEtag) {
      return ended("stale", "the file has changed on the server");
    }
    return undefined;
  }

  async #receive(part: PartFile, answer: GuardedResponse): Promise<Ending> {
    const { sizeBytes } = part.target;
    const taker = part.take((bytes) => this.#tell(bytes));
    let failure: { reason: unknown } | undefined;
    const flushing = setInterval(() => {
      try {
        taker.flush();
      } catch (reason) {
        failure ??= { reason };
        answer[Symbol.dispose](); // ends the read that waits
      }
    }, FLUSH_WITHIN_MS);
    try {
      for (;;) {
        const end = await readInto(answer, taker.room, part.bytes + taker.waitingBytes, sizeBytes);
        if (failure !== undefined) throw failure.reason;
        if (typeof end === "number") taker.took(end);
        else {
          if (end.outcome !== "wrong-size") taker.flush();
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

  #tell(bytes: number): void {
    this.#untold = bytes;
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#post({ kind: "progress", bytes: this.#untold });
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
 * Reads what is there next.
 *
 * @param received Bytes of the file that are here.
 * @returns How many came, or how it ended.
 */
async function readInto(
  answer: GuardedResponse,
  room: Uint8Array,
  received: number,
  sizeBytes: number,
): Promise<number | Ending> {
  let count: number;
  try {
    count = await answer.read(room);
  } catch (error) {
    if (error instanceof AppError && error.code !== "interrupted") return ended("cut", error.message);
    throw error;
  }
  if (received + count > sizeBytes) return wrongSize(received + count, sizeBytes);
  if (count > 0) return count;
  return received === sizeBytes ? ended("whole", "") : ended("cut", `it ended after ${received} of ${sizeBytes} bytes`);
}

function strongEtag(answer: GuardedResponse): string | undefined {
  const etag = answer.header("etag");
  return etag?.startsWith('"') ? etag : undefined; // If-Range takes no weak ones (RFC 9110, section 13.1.5)
}

function ended(outcome: TransferEnd["outcome"], message: string): Ending {
  return { outcome, message };
}

function wrongSize(found: number, expected: number): Ending {
  return ended("wrong-size", `it has ${found} bytes or more, where the hub's list says ${expected}`);
}

let worker: TransferWorker | undefined;

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<TransferSettings | TransferOrder>) => {
    if ("policy" in data) worker = new TransferWorker(data, (report) => self.postMessage(report));
    else worker?.take(data).catch((error) => console.error(`A download's Worker failed: ${messageOf(error)}`));
  };
}
