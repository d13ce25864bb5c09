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
  CardGroup,
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
  /** Ends the jobs of the running scan. */
  #running = new AbortController();
  #lastRead = 0;
  readonly #reads = new Map<number, (answer: CardBytes) => void>();

  /** @param limits Lower limits than usual, for tests. */
  constructor(sandbox: Sandbox, readonly limits: Pick<SandboxJob, "maxCpuMs" | "maxResidentBytes"> = {}) {
    this.#sandbox = sandbox;
  }

  /** Starts what a scan needs, which takes longer than what comes before it. @param hasChanges Files will be read. */
  async prepare(hasChanges: boolean): Promise<void> {
    // The child takes longest, and starting a Worker blocks this thread.
    if (hasChanges) await this.#sandbox.prepare(KIND);
    if (!this.#isClosed) this.#start();
  }

  /** Scans the folders. One at a time. @throws {AppError} `internal`; errors of the sandbox */
  async scan(request: CardScanRequest): Promise<CardScanResponse> {
    clearTimeout(this.#idleTimer);
    const worker = this.#start();
    this.#running = new AbortController();
    const fail = (found: string) => new AppError("internal", `Can't scan the card folders: ${found}`);
    try {
      return await new Promise<CardScanResponse>((resolve, reject) => {
        const { signal } = this.#running;
        signal.addEventListener("abort", () => reject(signal.reason));
        worker.onmessage = ({ data }: MessageEvent<ScanWorkerMessage>) => {
          if (data.kind === "end") resolve(data.response);
          else if (data.kind === "failure") reject(fail(data.message));
          else if (data.kind === "bytes") this.#reads.get(data.id)?.(data.answer);
          else {
            const { group } = data;
            this.#readGroup(group).then(
              (cards) => this.#post({ kind: "cards", group: group.number, cards }),
              (error) => this.#terminate(error), // The Worker waits for the cards.
            );
          }
        };
        worker.onerror = (event) => {
          event.preventDefault(); // Otherwise it would end the process.
          this.#terminate(fail(event.message));
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
    this.#terminate(new AppError("not_available", "The server is shutting down"));
  }

  #start(): Worker {
    return this.#worker ??= openWorker(new URL("./card_scan_worker.ts", import.meta.url));
  }

  #post(order: ScanWorkerOrder): void {
    this.#worker?.postMessage(order);
  }

  /** Ends the Worker. @param reason With which a running scan and its jobs end, which would wait for bytes. */
  #terminate(reason?: unknown): void {
    clearTimeout(this.#idleTimer);
    this.#running.abort(reason);
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#reads.clear();
  }

  /** Reads a group of files. If that exceeds a limit, each is read alone, so that one file doesn't spoil the others. */
  async #readGroup(group: CardGroup): Promise<ScannedCard[]> {
    try {
      return await this.#readCards(group);
    } catch (error) {
      if (!(error instanceof SandboxFault)) throw error;
      if (group.files.length === 1) return ["invalid"];
    }
    const cards: ScannedCard[] = [];
    let headAt = 0;
    for (const [n, file] of group.files.entries()) {
      const heads = group.heads.subarray(headAt, headAt += file.headBytes);
      try {
        cards.push(...await this.#readCards({ ...group, files: [file], heads }, n));
      } catch (error) {
        if (!(error instanceof SandboxFault)) throw error;
        cards.push("invalid");
      }
    }
    return cards;
  }

  /** @param first Number of the first file in its group. @throws {SandboxFault} */
  async #readCards({ number: group, files, heads }: CardGroup, first = 0): Promise<ScannedCard[]> {
    const order: CardScanOrder = { files };
    const read = async (value: unknown) => {
      const reads = parseReads(value).map(([n, at, length]): CardRead => [first + n, at, length]);
      const { lengths, joined } = await this.#askBytes(group, reads);
      return { value: lengths, bytes: [joined] };
    };
    const job: SandboxJob = { value: order, bytes: [heads], functions: { read }, signal: this.#running.signal };
    const { value } = await this.#sandbox.run(KIND, { ...job, ...this.limits });
    const cards = Array.isArray(value) ? value : [];
    return files.map((_, n) => parseCard(cards[n]));
  }

  #askBytes(group: number, reads: CardRead[]): Promise<CardBytes> {
    const id = ++this.#lastRead;
    return new Promise<CardBytes>((resolve) => {
      this.#reads.set(id, resolve);
      this.#post({ kind: "read", id, group, reads });
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
