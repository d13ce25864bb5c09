/** Scans card folders: a Worker lists and opens files, the sandbox reads them. */
import { AppError } from "../../errors.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import { type Sandbox, SandboxFault, type SandboxJob, type SandboxKind } from "../../platform/sandbox/sandbox.ts";
import { openWorker } from "../../process/worker.ts";
import { type CardHead, MAX_LISTED_CHARACTERS, MAX_LISTED_TAGS } from "../card/card_head.ts";
import type { ScannedCard } from "./card_rows.ts";
import type { CardRead, CardScanOrder } from "./card_scan_child.ts";
import type {
  CardBytes,
  CardScanRequest,
  CardScanResponse,
  ScanWorkerMessage,
  ScanWorkerOrder,
} from "./card_scan_worker.ts";

/** How long an idle Worker stays. It costs memory, and starting a new one takes 50 ms. */
const IDLE_MS = 20_000;
const MIB = 1024 * 1024;

const KIND: SandboxKind = {
  url: new URL("./card_scan_child.ts", import.meta.url),
  maxChildren: 1,
  // Of a group of files.
  maxCpuMs: 20_000,
  maxResidentBytes: 768 * MIB,
  maxMessageBytes: 8 * MIB,
};

/** The Worker, and its scan. */
export class CardScan {
  readonly #sandbox: Sandbox;
  #worker: Worker | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  #lastRead = 0;
  readonly #reads = new Map<number, (answer: CardBytes) => void>();

  /** @param limits Lower limits than usual, for tests. */
  constructor(sandbox: Sandbox, readonly limits: Pick<SandboxJob, "maxCpuMs" | "maxResidentBytes"> = {}) {
    this.#sandbox = sandbox;
  }

  /** Starts the Worker, which takes longer than what comes before a scan. */
  prepare(): void {
    this.#start();
  }

  /** Scans the folders. One at a time. @throws {AppError} `internal`; errors of the sandbox */
  async scan(request: CardScanRequest): Promise<CardScanResponse> {
    clearTimeout(this.#idleTimer);
    const worker = this.#start();
    const fail = (found: string) => new AppError("internal", `Can't scan the card folders: ${found}`);
    try {
      return await new Promise<CardScanResponse>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<ScanWorkerMessage>) => {
          if (data.kind === "end") resolve(data.response);
          else if (data.kind === "failure") reject(fail(data.message));
          else if (data.kind === "bytes") this.#reads.get(data.id)?.(data.answer);
          else {
            this.#readGroup(data.files).then((cards) => this.#post({ kind: "cards", cards }), (error) => {
              this.#terminate(); // It waits for the cards.
              reject(error);
            });
          }
        };
        worker.onerror = (event) => {
          event.preventDefault(); // Otherwise it would end the process.
          this.#terminate();
          reject(fail(event.message));
        };
        this.#post({ kind: "scan", request });
      });
    } finally {
      if (!this.#isClosed) this.#idleTimer = setTimeout(() => this.#terminate(), IDLE_MS);
    }
  }

  /** Ends the Worker. */
  close(): void {
    this.#isClosed = true;
    this.#terminate();
  }

  #start(): Worker {
    return this.#worker ??= openWorker(new URL("./card_scan_worker.ts", import.meta.url));
  }

  #post(order: ScanWorkerOrder): void {
    this.#worker?.postMessage(order);
  }

  #terminate(): void {
    clearTimeout(this.#idleTimer);
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#reads.clear();
  }

  /** Reads a group of files. If that exceeds a limit, each is read alone, so that one file doesn't spoil the others. */
  async #readGroup(files: CardScanOrder["files"]): Promise<ScannedCard[]> {
    try {
      return await this.#readCards(files, 0);
    } catch (error) {
      if (!(error instanceof SandboxFault)) throw error;
      if (files.length === 1) return ["invalid"];
    }
    const cards: ScannedCard[] = [];
    for (const [n, file] of files.entries()) {
      try {
        cards.push(...await this.#readCards([file], n));
      } catch (error) {
        if (!(error instanceof SandboxFault)) throw error;
        cards.push("invalid");
      }
    }
    return cards;
  }

  /** @param first Number of the first file in its group. @throws {SandboxFault} */
  async #readCards(files: CardScanOrder["files"], first: number): Promise<ScannedCard[]> {
    const order: CardScanOrder = { files };
    const read = async (value: unknown) => {
      const reads = parseReads(value).map(([n, at, length]): CardRead => [first + n, at, length]);
      const { lengths, joined } = await this.#askBytes(reads);
      return { value: lengths, bytes: [joined] };
    };
    const { value } = await this.#sandbox.run(KIND, { value: order, functions: { read }, ...this.limits });
    const cards = Array.isArray(value) ? value : [];
    return files.map((_, n) => parseCard(cards[n]));
  }

  #askBytes(reads: CardRead[]): Promise<CardBytes> {
    const id = ++this.#lastRead;
    return new Promise<CardBytes>((resolve) => {
      this.#reads.set(id, resolve);
      this.#post({ kind: "read", id, reads });
    }).finally(() => this.#reads.delete(id));
  }
}

function parseReads(value: unknown): CardRead[] {
  const isRead = (read: unknown): read is CardRead =>
    Array.isArray(read) && read.length === 3 && read.every((number) => Number.isSafeInteger(number) && number >= 0);
  return Array.isArray(value) ? value.filter(isRead) : [];
}

/** Reads what the child has sent, which may be anything: a file may have taken control of it. */
function parseCard(value: unknown): ScannedCard {
  if (value === "unreadable") return value;
  if (!isJsonObject(value)) return "invalid";
  const { name, creator, tags, favorite, folder } = value as Partial<Record<keyof CardHead, unknown>>;
  const isText = (text: unknown): text is string => typeof text === "string" && text.length <= MAX_LISTED_CHARACTERS;
  if (!isText(name) || !isText(creator) || typeof favorite !== "boolean") return "invalid";
  if (!Array.isArray(tags) || tags.length > MAX_LISTED_TAGS || !tags.every(isText)) return "invalid";
  if (folder !== null && !isText(folder)) return "invalid";
  return { name, creator, tags, favorite, folder };
}
