/** Reads the cards of a scan in the sandbox, many files at a time, and asks for all their next bytes at once. */
import { setImmediate } from "node:timers";
import { AppError } from "../../errors.ts";
import { type SandboxHost, serveSandbox } from "../../platform/sandbox/child.ts";
import { toCardHead } from "../card/card_head.ts";
import { readCard } from "../card/card_reader.ts";
import type { ScannedCard } from "./card_rows.ts";

/** Files of a scan. Their first bytes are beside it, joined. */
export interface CardScanOrder {
  files: {
    size: number;
    isPng: boolean;
    /** How many of its first bytes there are. */
    headBytes: number;
  }[];
}

/** A piece of a file: its number in the order, position and length. */
export type CardRead = [file: number, at: number, length: number];

/** Reads of one call: each call takes a round trip. */
const CALL_READS = 64;
/** Calls that wait at once, so that neither side waits for the other. */
const MAX_CALLS = 2;

interface WaitingRead {
  read: CardRead;
  resolve(bytes: Uint8Array): void;
  reject(error: unknown): void;
}

/** Collects the reads of all files into few calls. */
class BatchedReads {
  readonly #waiting: WaitingRead[] = [];
  #calls = 0;
  #isScheduled = false;

  constructor(readonly host: SandboxHost) {}

  read(...read: CardRead): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ read, resolve, reject });
      this.#schedule();
    });
  }

  /** Asks once all files that have bytes wait for more. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      // The last first: files that were begun are read to their end, so that few are open.
      while (this.#calls < MAX_CALLS && this.#waiting.length > 0) void this.#ask(this.#waiting.splice(-CALL_READS));
    });
  }

  async #ask(asked: WaitingRead[]): Promise<void> {
    this.#calls++;
    const { value, bytes: [joined] } = await this.host.call("read", asked.map(({ read }) => read));
    this.#calls--;
    const lengths = value as (number | null)[];
    let at = 0;
    for (const [n, length] of lengths.entries()) {
      const { resolve, reject } = asked[n]!;
      if (length === null) reject(new Error("The file can't be read"));
      else resolve(joined!.subarray(at, at += length));
    }
    // Parlor may read only some of them, so that a message isn't too large.
    this.#waiting.push(...asked.slice(lengths.length));
    this.#schedule();
  }
}

await serveSandbox("card_scan_child", {
  async run(value, [heads], host) {
    const { files } = value as CardScanOrder;
    const reads = new BatchedReads(host);
    let headsAt = 0;
    const result = await Promise.all(files.map(async ({ size, isPng, headBytes }, n): Promise<ScannedCard> => {
      const head = heads!.subarray(headsAt, headsAt += headBytes);
      const read = async (at: number, length: number) =>
        at + length <= headBytes ? head.subarray(at, at + length) : await reads.read(n, at, length);
      try {
        return toCardHead(await readCard(read, size, isPng));
      } catch (error) {
        return error instanceof AppError || error instanceof RangeError ? "invalid" : "unreadable";
      }
    }));
    return { value: result };
  },
});
