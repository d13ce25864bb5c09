/** Matches keys against texts. Patterns, and plain keys in large amounts, run in a Worker with a time limit. */
import { Mutex } from "../async/locks.ts";
import { type KeyJob, type KeyJobMessage, packKeyJob } from "./key_matcher_worker.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/delay.ts";
import { compilePattern, containsKey, type KeyFinding, type ScanKey, ScanText } from "./scan_keys.ts";
import { openWorker } from "../process/worker.ts";

/** A query for the texts that contain a key. */
export interface KeyQuery {
  key: ScanKey;
  /** Indexes of texts. */
  texts: number[];
}

/** Matches keys. */
export interface KeyMatcher {
  /** Answers each query, in order. Never rejects because of a key. */
  match(texts: readonly string[], queries: readonly KeyQuery[]): Promise<KeyFinding[]>;
}

/** Time limits in milliseconds. */
export interface KeyMatcherLimits {
  /** For one pattern over all its texts. */
  patternMs: number;
  /** For all patterns of one call. */
  callMs: number;
  /** How long a slow pattern isn't tried again. */
  slowPatternMs: number;
  /** How long an idle Worker stays. */
  idleMs: number;
}

const LIMITS: KeyMatcherLimits = { patternMs: 1_000, callMs: 3_000, slowPatternMs: 10 * 60_000, idleMs: 60_000 };

/** Time limit for the start of the Worker. */
const START_MS = 30_000;
/** Maximum characters of plain comparison on the main thread, in small steps: about ten milliseconds in total. */
const MAX_INLINE_CHARS = 200_000_000;
/** Only the end of longer texts is scanned. */
const MAX_TEXT = 200_000;
/** Maximum number of remembered slow patterns. */
const MAX_SLOW = 1_000;

async function matchPlainKeys(
  texts: readonly string[],
  queries: readonly KeyQuery[],
  plain: readonly number[],
  findings: KeyFinding[],
): Promise<void> {
  const folded = texts.map((text) => new ScanText(text));
  for (const index of plain) {
    const { key, texts: within } = queries[index]!;
    if (within.some((text) => containsKey(folded[text]!, key))) findings[index] = "hit";
    if (isTickUsedUp()) await yieldToEventLoop();
  }
}

/** A matcher with a Worker, which starts with the first pattern. */
export class WorkerKeyMatcher implements KeyMatcher {
  readonly #limits: KeyMatcherLimits;
  readonly #now: () => number;
  readonly #slowUntil = new Map<string, number>();
  #worker: Worker | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  readonly #lock = new Mutex();
  #isClosed = false;

  constructor(limits: Partial<KeyMatcherLimits> = {}, now: () => number = Date.now) {
    this.#limits = { ...LIMITS, ...limits };
    this.#now = now;
  }

  /** See `KeyMatcher.match`. A slow pattern is reported as `too_slow` in this call and for the next few minutes. */
  async match(texts: readonly string[], queries: readonly KeyQuery[]): Promise<KeyFinding[]> {
    const scanned = texts.map((text) => text.length > MAX_TEXT ? text.slice(-MAX_TEXT) : text);
    const findings: KeyFinding[] = queries.map(() => "miss");
    const patterns: number[] = [];
    const plain: number[] = [];
    let chars = 0;
    for (const [index, { key, texts: within }] of queries.entries()) {
      if (isTickUsedUp()) await yieldToEventLoop();
      if (key.pattern === undefined) {
        plain.push(index);
        for (const text of within) chars += scanned[text]!.length;
      } else if (compilePattern(key.pattern) === undefined) findings[index] = "invalid";
      else if (this.#isSlow(key)) findings[index] = "too_slow";
      else patterns.push(index);
    }
    const isMuch = chars > MAX_INLINE_CHARS;
    if (!isMuch) await matchPlainKeys(scanned, queries, plain, findings);
    const forWorker = isMuch ? [...plain, ...patterns] : patterns;
    if (forWorker.length > 0) {
      const found = await this.#lock.run(() => this.#ask(scanned, forWorker.map((index) => queries[index]!)));
      forWorker.forEach((index, at) => findings[index] = found[at]!);
    }
    return findings;
  }

  /** Terminates the Worker. Later queries find nothing. */
  close(): void {
    this.#isClosed = true;
    this.#terminate();
  }

  /** Runs queries in the Worker, and restarts it if a pattern doesn't finish. */
  async #ask(texts: string[], queries: KeyQuery[]): Promise<KeyFinding[]> {
    const findings: KeyFinding[] = [];
    const untilMs = this.#now() + this.#limits.callMs;
    while (findings.length < queries.length && !this.#isClosed) {
      const left = untilMs - this.#now();
      if (left <= 0) break;
      const job = packKeyJob(texts, queries.slice(findings.length));
      for (const found of await this.#askOnce(job, Math.min(left, this.#limits.patternMs))) findings.push(found);
      const stuck = queries[findings.length];
      if (stuck === undefined) break;
      this.#terminate();
      this.#rememberSlow(stuck.key);
      findings.push("too_slow");
    }
    this.#terminateWhenIdle();
    return [...findings, ...queries.slice(findings.length).map((): KeyFinding => "too_slow")];
  }

  /** Returns the results received before the Worker stalled. */
  #askOnce(job: KeyJob, limitMs: number): Promise<KeyFinding[]> {
    clearTimeout(this.#idle);
    const worker = this.#worker ??= openWorker(new URL("./key_matcher_worker.ts", import.meta.url));
    const findings: KeyFinding[] = [];
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const watch = (withinMs: number) => {
        clearTimeout(timer);
        // Results may be queued behind a busy event loop. A second timer receives them first.
        timer = setTimeout(() => timer = setTimeout(() => resolve(findings)), withinMs);
      };
      worker.onmessage = ({ data }: MessageEvent<KeyJobMessage>) => {
        if (data.kind === "found") findings.push(...data.findings); // A few hundred at most
        if (findings.length < job.keys.length) return watch(limitMs);
        clearTimeout(timer);
        resolve(findings);
      };
      worker.onerror = (event) => {
        event.preventDefault(); // Otherwise it would end the process.
        clearTimeout(timer);
        resolve(findings);
      };
      watch(START_MS);
      worker.postMessage(job);
    });
  }

  #isSlow(key: ScanKey): boolean {
    return (this.#slowUntil.get(toPatternId(key)) ?? 0) > this.#now();
  }

  #rememberSlow(key: ScanKey): void {
    if (key.pattern === undefined) return;
    if (this.#slowUntil.size >= MAX_SLOW) this.#slowUntil.delete(this.#slowUntil.keys().next().value!);
    this.#slowUntil.set(toPatternId(key), this.#now() + this.#limits.slowPatternMs);
  }

  #terminateWhenIdle(): void {
    clearTimeout(this.#idle);
    if (this.#worker === undefined) return;
    this.#idle = setTimeout(() => this.#terminate(), this.#limits.idleMs);
    Deno.unrefTimer(this.#idle as unknown as number);
  }

  #terminate(): void {
    clearTimeout(this.#idle);
    this.#worker?.terminate();
    this.#worker = undefined;
  }
}

function toPatternId({ pattern }: ScanKey): string {
  return `${pattern?.flags}/${pattern?.source}`;
}
