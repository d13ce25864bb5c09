/** Looks for keys in texts. Patterns, and plain keys where there is much to look through, go to a Worker under a time limit. */
import { Mutex } from "../async/keyed_mutex.ts";
import { jobOf, type KeyJob, type KeyNews } from "./key_matcher_worker.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import { compiled, holdsPlain, type KeyFinding, type ScanKey, ScanText } from "./scan_keys.ts";

/** One question: does any of these texts hold this key? */
export interface KeyQuery {
  key: ScanKey;
  /** Which of the texts, by place. */
  texts: number[];
}

/** Answers questions about keys. */
export interface KeyMatcher {
  /** Answers each query in its place. Never rejects on a key, however bad it is. */
  match(texts: readonly string[], queries: readonly KeyQuery[]): Promise<KeyFinding[]>;
}

/** Time limits, in milliseconds. */
export interface KeyMatcherLimits {
  /** One pattern over its texts. */
  patternMs: number;
  /** All patterns of one call together. */
  callMs: number;
  /** How long a pattern that took too long is not tried again. */
  forgetMs: number;
  /** How long an idle Worker is kept. */
  idleMs: number;
}

const LIMITS: KeyMatcherLimits = { patternMs: 1_000, callMs: 3_000, forgetMs: 10 * 60_000, idleMs: 60_000 };

/** The Worker has this long to begin. */
const START_MS = 30_000;
/** Characters of plain comparison that the serving thread does itself, bit by bit: some ten milliseconds in all. */
const OWN_CHARS = 200_000_000;
/** Of a longer text the end is scanned. */
const MAX_TEXT = 200_000;
/** Patterns remembered as too slow. */
const MAX_SLOW = 1_000;

async function lookHere(
  texts: readonly string[],
  queries: readonly KeyQuery[],
  plain: readonly number[],
  findings: KeyFinding[],
): Promise<void> {
  const folded = texts.map((text) => new ScanText(text));
  for (const place of plain) {
    const { key, texts: within } = queries[place]!;
    if (within.some((text) => holdsPlain(folded[text]!, key))) findings[place] = "hit";
    if (isTickUsedUp()) await yieldToEventLoop();
  }
}

/** A matcher with its Worker, which starts with the first pattern. */
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

  /** See `KeyMatcher.match`. A pattern that takes too long is `too_slow`, for this call and for some minutes. */
  async match(texts: readonly string[], queries: readonly KeyQuery[]): Promise<KeyFinding[]> {
    const scanned = texts.map((text) => text.length > MAX_TEXT ? text.slice(-MAX_TEXT) : text);
    const findings: KeyFinding[] = queries.map(() => "miss");
    const patterns: number[] = [];
    const plain: number[] = [];
    let chars = 0;
    for (const [place, { key, texts: within }] of queries.entries()) {
      if (isTickUsedUp()) await yieldToEventLoop();
      if (key.pattern === undefined) {
        plain.push(place);
        for (const text of within) chars += scanned[text]!.length;
      } else if (compiled(key.pattern) === undefined) findings[place] = "invalid";
      else if (this.#isSlow(key)) findings[place] = "too_slow";
      else patterns.push(place);
    }
    const isMuch = chars > OWN_CHARS;
    if (!isMuch) await lookHere(scanned, queries, plain, findings);
    const away = isMuch ? [...plain, ...patterns] : patterns;
    if (away.length > 0) {
      const found = await this.#lock.run(() => this.#ask(scanned, away.map((place) => queries[place]!)));
      away.forEach((place, at) => findings[place] = found[at]!);
    }
    return findings;
  }

  /** Ends the Worker; what is asked afterwards is not found. */
  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  /** Has the Worker answer, and starts another where a pattern does not come to an end. */
  async #ask(texts: string[], queries: KeyQuery[]): Promise<KeyFinding[]> {
    const findings: KeyFinding[] = [];
    const untilMs = this.#now() + this.#limits.callMs;
    while (findings.length < queries.length && !this.#isClosed) {
      const left = untilMs - this.#now();
      if (left <= 0) break;
      const job = jobOf(texts, queries.slice(findings.length));
      for (const found of await this.#askOnce(job, Math.min(left, this.#limits.patternMs))) findings.push(found);
      const stuck = queries[findings.length];
      if (stuck === undefined) break;
      this.#end();
      this.#rememberSlow(stuck.key);
      findings.push("too_slow");
    }
    this.#restLater();
    return [...findings, ...queries.slice(findings.length).map((): KeyFinding => "too_slow")];
  }

  /** Gives the answers that came before the Worker stood still for too long. */
  #askOnce(job: KeyJob, limitMs: number): Promise<KeyFinding[]> {
    clearTimeout(this.#idle);
    const worker = this.#worker ??= new Worker(new URL("./key_matcher_worker.ts", import.meta.url), {
      type: "module",
    });
    const findings: KeyFinding[] = [];
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const watch = (withinMs: number) => {
        clearTimeout(timer);
        // Answers may wait behind a busy serving thread: a turn of the event loop lets them in first.
        timer = setTimeout(() => timer = setTimeout(() => resolve(findings)), withinMs);
      };
      worker.onmessage = ({ data }: MessageEvent<KeyNews>) => {
        if (data.kind === "found") findings.push(...data.findings); // some hundred at most
        if (findings.length < job.keys.length) return watch(limitMs);
        clearTimeout(timer);
        resolve(findings);
      };
      worker.onerror = (event) => {
        event.preventDefault(); // else it would end the process
        clearTimeout(timer);
        resolve(findings);
      };
      watch(START_MS);
      worker.postMessage(job);
    });
  }

  #isSlow(key: ScanKey): boolean {
    return (this.#slowUntil.get(nameOf(key)) ?? 0) > this.#now();
  }

  #rememberSlow(key: ScanKey): void {
    if (key.pattern === undefined) return;
    if (this.#slowUntil.size >= MAX_SLOW) this.#slowUntil.delete(this.#slowUntil.keys().next().value!);
    this.#slowUntil.set(nameOf(key), this.#now() + this.#limits.forgetMs);
  }

  #restLater(): void {
    clearTimeout(this.#idle);
    if (this.#worker === undefined) return;
    this.#idle = setTimeout(() => this.#end(), this.#limits.idleMs);
    Deno.unrefTimer(this.#idle as unknown as number);
  }

  #end(): void {
    clearTimeout(this.#idle);
    this.#worker?.terminate();
    this.#worker = undefined;
  }
}

function nameOf({ pattern }: ScanKey): string {
  return `${pattern?.flags}/${pattern?.source}`;
}
