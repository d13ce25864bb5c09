/** Reads the cards of a scan in the sandbox, many files at a time, and asks for all their next bytes at once. */
import { setImmediate } from "node:timers";
import { AppError } from "../../errors.ts";
import { type SandboxHost, serveSandbox } from "../../platform/sandbox/child.ts";
import { toCardHead } from "../card/card_head.ts";
import { readCard } from "../card/card_reader.ts";
import type { ScannedCard } from "./card_rows.ts";

/** Files of a scan. */
export interface CardScanOrder {
  files: { size: number; isPng: boolean }[];
}

/** A piece of a file: its number in the order, position and length. */
export type CardRead = [file: number, at: number, length: number];

/** Collects the reads of all files until each waits, because every request takes a round trip. */
class BatchedReads {
  #waiting: { read: CardRead; resolve(bytes: Uint8Array): void; reject(error: unknown): void }[] = [];
  #isAsking = false;

  constructor(readonly host: SandboxHost) {}

  read(...read: CardRead): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ read, resolve, reject });
      if (this.#isAsking) return;
      this.#isAsking = true;
      setImmediate(() => void this.#ask());
    });
  }

  async #ask(): Promise<void> {
    const asked = this.#waiting;
    this.#waiting = [];
    this.#isAsking = false;
    while (asked.length > 0) {
      const { value, bytes: [joined] } = await this.host.call("read", asked.map(({ read }) => read));
      let at = 0;
      // Parlor may read only some of them, so that a message isn't too large.
      for (const length of value as (number | null)[]) {
        const { resolve, reject } = asked.shift()!;
        if (length === null) reject(new Error("The file can't be read"));
        else resolve(joined!.subarray(at, at += length));
      }
    }
  }
}

await serveSandbox("card_scan_child", {
  async run(value, _bytes, host) {
    const { files } = value as CardScanOrder;
    const reads = new BatchedReads(host);
    const result = await Promise.all(files.map(async ({ size, isPng }, n): Promise<ScannedCard> => {
      try {
        return toCardHead(await readCard((at, length) => reads.read(n, at, length), size, isPng));
      } catch (error) {
        return error instanceof AppError || error instanceof RangeError ? "invalid" : "unreadable";
      }
    }));
    return { value: result };
  },
});
