/** Matches keys against texts. Patterns, and plain keys in large amounts, run in the sandbox with a time limit. */
import { Mutex } from "../async/locks.ts";
import { type KeyJob, packKeyJob } from "./key_matcher_child.ts";
import { isTickUsedUp, yieldToEventLoop } from "../async/delay.ts";
import { compilePattern, containsKey, type KeyFinding, type ScanKey, ScanText } from "./scan_keys.ts";
import { type Sandbox, SandboxFault, type SandboxKind } from "../platform/sandbox/sandbox.ts";

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
  /** Processor time of one pattern over all its texts. */
  patternMs: number;
  /** Processor time of all patterns of one call. */
  callMs: number;
  /** How long a slow pattern isn't tried again. */
  slowPatternMs: number;
}

const LIMITS: KeyMatcherLimits = { patternMs: 1_000, callMs: 3_000, slowPatternMs: 10 * 60_000 };

const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("./key_matcher_child.ts", import.meta.url),
  maxChildren: 1,
  maxCpuMs: 30_000,
  maxResidentBytes: 384 * MIB,
  maxMessageBytes: MIB,
};

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

/** A matcher that uses the sandbox from the first pattern on. */
export class SandboxKeyMatcher implements KeyMatcher {
  readonly #sandbox: Sandbox;
  readonly #limits: KeyMatcherLimits;
  readonly #now: () => number;
  readonly #slowUntil = new Map<string, number>();
  readonly #lock = new Mutex();

  constructor(sandbox: Sandbox, limits: Partial<KeyMatcherLimits> = {}, now: () => number = Date.now) {
    this.#sandbox = sandbox;
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
    const sandboxed = isMuch ? [...plain, ...patterns] : patterns;
    if (sandboxed.length > 0) {
      const found = await this.#lock.run(() => this.#ask(scanned, sandboxed.map((index) => queries[index]!)));
      sandboxed.forEach((index, at) => findings[index] = found[at]!);
    }
    return findings;
  }

  /** Runs queries in the sandbox; again without a pattern that doesn't finish. */
  async #ask(texts: string[], queries: KeyQuery[]): Promise<KeyFinding[]> {
    const findings: KeyFinding[] = [];
    let isOneByOne = queries.length === 1;
    for (let leftMs = this.#limits.callMs; findings.length < queries.length && leftMs > 0;) {
      const fault = await this.#askOnce(
        packKeyJob(texts, queries.slice(findings.length), isOneByOne),
        findings,
        leftMs,
      );
      if (fault === undefined) break;
      leftMs -= Math.max(fault.cpuMs, this.#limits.patternMs);
      if (!isOneByOne) {
        // The pattern that stalls is among those after the last result.
        isOneByOne = true;
        continue;
      }
      const stuck = queries[findings.length];
      if (stuck === undefined) break;
      this.#rememberSlow(stuck.key);
      findings.push("too_slow");
    }
    return [...findings, ...queries.slice(findings.length).map((): KeyFinding => "too_slow")];
  }

  /** Adds results for the rest of the queries, until the fault that it returns. */
  async #askOnce(
    job: KeyJob,
    findings: KeyFinding[],
    leftMs: number,
  ): Promise<SandboxFault | undefined> {
    try {
      await this.#sandbox.run(KIND, {
        value: job,
        maxCpuMs: leftMs,
        maxStepCpuMs: this.#limits.patternMs,
        functions: {
          found: (found, _bytes, { startStep }) => {
            for (const finding of parseFindings(found)) findings.push(finding);
            startStep();
          },
        },
      });
      return undefined;
    } catch (error) {
      if (error instanceof SandboxFault) return error;
      throw error;
    }
  }

  #isSlow(key: ScanKey): boolean {
    return (this.#slowUntil.get(toPatternId(key)) ?? 0) > this.#now();
  }

  #rememberSlow(key: ScanKey): void {
    if (key.pattern === undefined) return;
    if (this.#slowUntil.size >= MAX_SLOW) this.#slowUntil.delete(this.#slowUntil.keys().next().value!);
    this.#slowUntil.set(toPatternId(key), this.#now() + this.#limits.slowPatternMs);
  }
}

/** Reads what the child has sent, which may be anything. */
function parseFindings(value: unknown): KeyFinding[] {
  if (!Array.isArray(value)) return [];
  return value.map((each): KeyFinding => each === "hit" || each === "invalid" ? each : "miss");
}

function toPatternId({ pattern }: ScanKey): string {
  return `${pattern?.flags}/${pattern?.source}`;
}
