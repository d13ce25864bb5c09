/**
 * Runs work on foreign bytes in child processes without permissions, with limits of processor time, resident memory and
 * output. What exceeds a limit is killed, and is gone before the caller hears of it
 * (docs/decisions/0047-sandbox.md).
 */
import { join } from "node:path";
import { delay } from "../../async/delay.ts";
import { AppError } from "../../errors.ts";
import { type ChildMessage, type ParentMessage, SANDBOX_COMMAND } from "./child.ts";
import { encodeFrame, FrameError, FrameReader, type SandboxMessage } from "./frames.ts";
import type {
  SandboxUsage,
  startSupervised as StartSupervised,
  SupervisedChild,
  SupervisedOptions,
} from "./supervisor.ts";

/** A kind of work, and its limits. */
export interface SandboxKind {
  /** The file that a child runs. A literal relative to this module's URL, so that build.ts finds it. */
  url: URL;
  /** Set if the child reads files of packages while it loads, such as those of WebAssembly. */
  readsPackages?: boolean;
  /** Maximum number of children at once. More jobs wait. */
  maxChildren: number;
  /** Processor time of one job. */
  maxCpuMs: number;
  /** Resident memory of the child, including about 80 MiB of the runtime. */
  maxResidentBytes: number;
  /** Size of one message of the child. */
  maxMessageBytes: number;
  /** Size of its JSON, which is parsed at once; 8 MiB by default. */
  maxTextBytes?: number;
  /** Size of all messages of one job; by default unlimited, for jobs that Parlor reads as fast as it stores. */
  maxOutputBytes?: number;
}

/** Why a job ended without a result. */
export type SandboxFaultReason = "time" | "memory" | "output" | "crash" | "failed";

/** Thrown for a job that exceeded a limit, crashed its child, or failed there. */
export class SandboxFault extends Error {
  /** @param message A clause: `it took longer than 30 s`. */
  constructor(
    readonly reason: SandboxFaultReason,
    message: string,
    /** Measured processor time of the job. */
    readonly cpuMs = 0,
  ) {
    super(message);
  }
}

/** What a function that Parlor offers to a job may do. */
export interface SandboxJobControl {
  /** Begins the next step of the job, with its own processor time. */
  startStep(): void;
}

/** A function that Parlor offers to a job. */
export type SandboxFunction = (
  value: unknown,
  bytes: Uint8Array<ArrayBuffer>[],
  job: SandboxJobControl,
) => SandboxAnswer | Promise<SandboxAnswer>;

type SandboxAnswer = { value?: unknown; bytes?: readonly Uint8Array[] } | void;

/** One job. */
export interface SandboxJob {
  value?: unknown;
  /** Isn't copied, so it mustn't change before the job ends. */
  bytes?: readonly Uint8Array[];
  functions?: Record<string, SandboxFunction>;
  /** Ends the job; `run` rejects with its reason. */
  signal?: AbortSignal;
  /** Processor time of one step, for jobs that call `startStep`; by default that of the job. */
  maxStepCpuMs?: number;
  /** Lower limits than those of the kind. */
  maxCpuMs?: number;
  maxResidentBytes?: number;
}

/** Times; tests use shorter ones. */
export interface SandboxTimes {
  /** How long a child without work stays. */
  idleMs: number;
  /** Time between two measurements of a working child. */
  watchMs: number;
}

const TIMES: SandboxTimes = { idleMs: 60_000, watchMs: 100 };

/** A parser that sleeps uses no processor time. It's ended after this time without a message, or ten times its budget. */
const MIN_SILENCE_MS = 60_000;
const SILENCE_PER_BUDGET = 10;
/** The system ends a child after this many budgets, if Parlor doesn't. */
const BUDGETS_PER_CHILD = 4;
const START_CPU_SECONDS = 20;
/** A child is measured after a job if this much time has passed. */
const REVIEW_MS = 1_000;
/** How long to wait for the last words of a process that has ended. */
const LAST_WORDS_MS = 5_000;
/** Share of the memory limit from which a child isn't used again. */
const WORN_SHARE = 0.5;
/** Calls of one job that Parlor handles at once. Further ones, or beyond the size of a message, wait in the pipe. */
const MAX_CALLS = 8;
/** Parsing a megabyte of JSON takes a few milliseconds of the serving thread. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;

const MIB = 1024 * 1024;

/** Variables that a child needs to start: Deno's cache, and the formats of dates. */
const INHERITED = ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME", "TZ", "LANG", "LC_ALL", "SystemRoot", "LOCALAPPDATA"];

/** A job in its child. */
interface RunningJob extends SandboxJob {
  /** Its number among those of its child. */
  number: number;
  resolve(message: SandboxMessage): void;
  reject(error: unknown): void;
  maxCpuMs: number;
  maxResidentBytes: number;
  outputBytes: number;
  /** Processor time of the child when the job began; set by the first measurement after that. */
  cpuStartMs?: number;
  /** The same for the current step. */
  stepStartMs?: number;
  lastMessageAtMs: number;
  /** Calls that are being handled, and the size of their byte arrays. */
  calls: number;
  callBytes: number;
}

/** The children of all kinds. They start with their first job. */
export class Sandbox {
  readonly #pools = new Map<string, Pool>();
  readonly #times: SandboxTimes;
  #isClosed = false;

  constructor(times: Partial<SandboxTimes> = {}) {
    this.#times = { ...TIMES, ...times };
  }

  /**
   * Runs a job.
   *
   * @throws {SandboxFault} if it exceeds a limit, crashes or fails; {AppError} `not_available` while Parlor ends or if no
   *   child can be started; the reason of `signal`; errors of `functions`. No process of the job is left then.
   */
  async run(kind: SandboxKind, job: SandboxJob = {}): Promise<SandboxMessage> {
    const pool = await this.#openPool(kind);
    job.signal?.throwIfAborted();
    return await pool.run(job);
  }

  /** Starts a child, if there is none, for a job that will come soon. If it can't be started, the job fails. */
  async prepare(kind: SandboxKind): Promise<void> {
    try {
      (await this.#openPool(kind)).prepare();
    } catch {
      // The job tries again.
    }
  }

  async #openPool(kind: SandboxKind): Promise<Pool> {
    // Loaded with the first job: most starts need none.
    const { startSupervised } = await import("./supervisor.ts");
    if (this.#isClosed) throw createClosedError();
    const pool = this.#pools.get(kind.url.href) ?? new Pool(kind, this.#times, startSupervised);
    this.#pools.set(kind.url.href, pool);
    return pool;
  }

  /** Ends all jobs and children. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()));
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The children of one kind. */
class Pool {
  readonly #children = new Set<Child>();
  readonly #waiting: { job: RunningJob; start(child: Child): void }[] = [];

  constructor(
    readonly kind: SandboxKind,
    readonly times: SandboxTimes,
    readonly startSupervised: typeof StartSupervised,
  ) {}

  run(job: SandboxJob): Promise<SandboxMessage> {
    return new Promise((resolve, reject) => {
      const running: RunningJob = {
        ...job,
        resolve,
        reject,
        number: 0,
        maxCpuMs: Math.min(job.maxCpuMs ?? Infinity, this.kind.maxCpuMs),
        maxResidentBytes: Math.min(job.maxResidentBytes ?? Infinity, this.kind.maxResidentBytes),
        outputBytes: 0,
        lastMessageAtMs: 0,
        calls: 0,
        callBytes: 0,
      };
      const leave = () => {
        const at = this.#waiting.findIndex((each) => each.job === running);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(job.signal!.reason);
      };
      job.signal?.addEventListener("abort", leave, { once: true });
      const start = (child: Child) => {
        job.signal?.removeEventListener("abort", leave);
        child.start(running);
      };
      this.#waiting.push({ job: running, start });
      this.#startWaiting();
    });
  }

  prepare(): void {
    if (this.#children.size === 0) this.#open();
  }

  async close(): Promise<void> {
    for (const { job } of this.#waiting.splice(0)) job.reject(createClosedError());
    await Promise.all([...this.#children].map((child) => child.end(createClosedError())));
  }

  #startWaiting(): void {
    while (this.#waiting.length > 0) {
      let child: Child | undefined;
      try {
        child = [...this.#children].find(({ isFree }) => isFree) ??
          (this.#children.size < this.kind.maxChildren ? this.#open() : undefined);
      } catch (error) {
        this.#waiting.shift()!.job.reject(error);
        continue;
      }
      if (child === undefined) return;
      this.#waiting.shift()!.start(child);
    }
  }

  #open(): Child {
    const started = this.startSupervised(getCommand(this.kind));
    const child: Child = new Child(started, this.kind, this.times, {
      onFree: () => this.#startWaiting(),
      onGone: () => {
        this.#children.delete(child);
        this.#startWaiting();
      },
    });
    this.#children.add(child);
    return child;
  }
}

/** One child and its job. */
class Child {
  readonly #reader: FrameReader;
  #job: RunningJob | undefined;
  #isReady = false;
  #isEnding = false;
  #isWorn = false;
  #jobs = 0;
  #measuredAtMs = 0;
  #watch: ReturnType<typeof setInterval> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;

  readonly #process: SupervisedChild;

  constructor(
    started: SupervisedChild,
    readonly kind: SandboxKind,
    readonly times: SandboxTimes,
    readonly events: { onFree(): void; onGone(): void },
  ) {
    this.#reader = new FrameReader(kind.maxMessageBytes, kind.maxTextBytes ?? MAX_TEXT_BYTES);
    this.#process = started;
    this.#process.output.on("data", (piece: Uint8Array) => this.#read(piece));
    this.#process.output.on("end", () => void this.#endCrashed());
    void this.#process.ended.then(() => this.#endCrashed());
    this.#stayIdle();
  }

  get isFree(): boolean {
    return this.#job === undefined && !this.#isEnding;
  }

  /** Starts a job. The child must be free. */
  start(job: RunningJob): void {
    clearTimeout(this.#idle);
    this.#job = job;
    job.number = ++this.#jobs;
    job.lastMessageAtMs = performance.now();
    job.signal?.addEventListener("abort", this.#onAbort);
    this.#post({ kind: "job", job: job.number, value: job.value }, job.bytes);
    this.#watch = setInterval(() => void this.#check(job), this.times.watchMs);
  }

  readonly #onAbort = () => void this.end(this.#job?.signal?.reason);

  /** Kills the child; its job rejects with the error once the process is gone. */
  async end(error: unknown): Promise<void> {
    if (this.#isEnding) return await this.#process.ended;
    this.#isEnding = true;
    clearTimeout(this.#idle);
    const job = this.#takeJob();
    await this.#process.kill();
    this.events.onGone();
    job?.reject(error);
  }

  async #endCrashed(): Promise<void> {
    if (this.#isEnding) return;
    // The end of a process can be noticed before what it wrote. A process of its own could keep the pipe open.
    await Promise.race([this.#process.lastWordsRead, delay(LAST_WORDS_MS)]);
    if (this.#isEnding) return;
    const lines = this.#process.lastWords.trim().split("\n");
    const said = (lines.find((line) => /error: /i.test(line)) ?? lines.at(-1)!).slice(0, 200);
    // V8 ends a process whose heap reaches its limit.
    const isOutOfMemory = /out of memory|OOM/.test(this.#process.lastWords);
    await this.end(
      isOutOfMemory && this.#isReady
        ? this.#createMemoryFault(this.#job)
        : new SandboxFault("crash", `the process that read it ended${said ? `: ${said}` : ""}`),
    );
  }

  #createMemoryFault(job: RunningJob | undefined): SandboxFault {
    const limit = Math.round((job?.maxResidentBytes ?? this.kind.maxResidentBytes) / MIB);
    return new SandboxFault("memory", `it needs more than ${limit} MiB of memory`);
  }

  /** Ends the child if its job has exceeded a limit. */
  async #check(job: RunningJob): Promise<void> {
    const silentMs = performance.now() - job.lastMessageAtMs;
    const isSilent = job.calls === 0 && silentMs > Math.max(MIN_SILENCE_MS, job.maxCpuMs * SILENCE_PER_BUDGET);
    const usage = await this.#measure();
    if (this.#job !== job) return;
    const used = { cpuMs: 0, stepMs: 0 };
    if (usage !== undefined && this.#isReady) {
      if (usage.residentBytes > job.maxResidentBytes) return await this.end(this.#createMemoryFault(job));
      used.cpuMs = usage.cpuMs - (job.cpuStartMs ??= usage.cpuMs);
      used.stepMs = usage.cpuMs - (job.stepStartMs ??= usage.cpuMs);
    }
    const stepLimitMs = Math.min(job.maxStepCpuMs ?? Infinity, job.maxCpuMs);
    const limitMs = used.stepMs > stepLimitMs ? stepLimitMs : job.maxCpuMs;
    if (isSilent || used.cpuMs > job.maxCpuMs || used.stepMs > stepLimitMs) {
      await this.end(new SandboxFault("time", `it took longer than ${Math.ceil(limitMs / 1000)} s`, used.cpuMs));
    }
  }

  async #measure(): Promise<SandboxUsage | undefined> {
    this.#measuredAtMs = performance.now();
    const usage = await this.#process.measure();
    if (usage === undefined) return undefined;
    // Counts everything since the start, so that the child is replaced before the system ends it.
    const isTired = usage.cpuMs > this.kind.maxCpuMs * (BUDGETS_PER_CHILD - 1);
    if (isTired || usage.residentBytes > this.kind.maxResidentBytes * WORN_SHARE) this.#isWorn = true;
    return usage;
  }

  #read(piece: Uint8Array): void {
    if (this.#isEnding) return;
    const job = this.#job;
    if (job !== undefined) {
      job.outputBytes += piece.length;
      job.lastMessageAtMs = performance.now();
      if (job.outputBytes > (this.kind.maxOutputBytes ?? Infinity)) return void this.end(createOutputFault());
    }
    try {
      for (const { value, bytes } of this.#reader.read(piece)) this.#take(value as ChildMessage, bytes);
    } catch (error) {
      void this.end(error instanceof FrameError ? createOutputFault() : error);
    }
  }

  #take(message: ChildMessage, bytes: Uint8Array<ArrayBuffer>[]): void {
    if (message?.kind === "ready" && !this.#isReady) {
      this.#isReady = true;
      return;
    }
    if (!this.#isReady) throw new FrameError("an unexpected message");
    const job = this.#job;
    // A parser may go on after its job has failed. What it sends mustn't reach the next one.
    if (job === undefined || job.number !== (message as { job?: unknown } | null)?.job) return;
    switch (message?.kind) {
      case "call":
        return void this.#call(job, message, bytes);
      case "done":
        this.#release();
        return job.resolve({ value: message.value, bytes });
      case "failed":
        this.#release();
        return job.reject(new SandboxFault("failed", String(message.message)));
      default:
        throw new FrameError("an unknown message");
    }
  }

  async #call(
    job: RunningJob,
    { name, id, value }: ChildMessage & { kind: "call" },
    bytes: Uint8Array<ArrayBuffer>[],
  ): Promise<void> {
    const called = Object.hasOwn(job.functions ?? {}, name) ? job.functions![name]! : undefined;
    if (called === undefined) return void this.end(createOutputFault());
    const sizeBytes = bytes.reduce((sum, { length }) => sum + length, 0);
    job.calls++;
    job.callBytes += sizeBytes;
    if (job.calls >= MAX_CALLS || job.callBytes >= this.kind.maxMessageBytes / 2) this.#process.output.pause();
    try {
      const answer = await called(value, bytes, { startStep: () => job.stepStartMs = undefined });
      if (this.#job === job && typeof id === "number") {
        await this.#post({ kind: "reply", id, value: answer?.value }, answer?.bytes);
      }
    } catch (error) {
      // Parlor's own failure ends the job: the child has nothing to decide.
      if (this.#job === job) await this.end(error);
    } finally {
      job.lastMessageAtMs = performance.now();
      job.calls--;
      job.callBytes -= sizeBytes;
      if (job.calls < MAX_CALLS && job.callBytes < this.kind.maxMessageBytes / 2) this.#process.output.resume();
    }
  }

  #release(): void {
    this.#takeJob();
    const isReviewed = performance.now() - this.#measuredAtMs < REVIEW_MS;
    if (this.#isWorn) return void this.end(undefined);
    this.#stayIdle();
    if (isReviewed) return queueMicrotask(this.events.onFree);
    void this.#measure();
    queueMicrotask(this.events.onFree);
  }

  #takeJob(): RunningJob | undefined {
    clearInterval(this.#watch);
    const job = this.#job;
    job?.signal?.removeEventListener("abort", this.#onAbort);
    this.#job = undefined;
    return job;
  }

  #stayIdle(): void {
    this.#idle = setTimeout(() => void this.end(undefined), this.times.idleMs);
    Deno.unrefTimer(this.#idle as unknown as number);
  }

  /** Resolves once the pipe has room again. */
  #post(message: ParentMessage, bytes: readonly Uint8Array[] = []): Promise<void> {
    let hasRoom = true;
    for (const piece of encodeFrame(message, bytes)) hasRoom = this.#process.input.write(piece);
    if (hasRoom) return Promise.resolve();
    return Promise.race([
      new Promise<void>((resolve) => this.#process.input.once("drain", () => resolve())),
      this.#process.ended,
    ]);
  }
}

function createClosedError(): AppError {
  return new AppError("not_available", "The server is shutting down");
}

function createOutputFault(): SandboxFault {
  return new SandboxFault("output", "its result is too large or isn't valid");
}

/** The linear engine ends patterns like `(a+)+$`. V8 reads this flag only when a process starts; build.ts compiles it in. */
export const LINEAR_REGEXP_FLAG = "--enable-experimental-regexp-engine-on-excessive-backtracks";

function getCommand(kind: SandboxKind): SupervisedOptions {
  const maxCpuSeconds = Math.ceil(kind.maxCpuMs * BUDGETS_PER_CHILD / 1000) + START_CPU_SECONDS;
  const name = kind.url.pathname.slice(kind.url.pathname.lastIndexOf("/") + 1).replace(/\.\w+$/, "");
  const env = Object.fromEntries(INHERITED.flatMap((key) => {
    const value = Deno.env.get(key);
    return value === undefined ? [] : [[key, value]];
  }));
  env.NO_COLOR = "1";
  const program = Deno.execPath();
  // A heap at its limit ends before the measured memory does.
  const flags = [LINEAR_REGEXP_FLAG, `--max-old-space-size=${Math.ceil(kind.maxResidentBytes / MIB)}`];
  if (Deno.build.standalone) {
    return { maxCpuSeconds, program, args: [SANDBOX_COMMAND, name], env: { ...env, DENO_V8_FLAGS: flags.join(",") } };
  }
  const allowed = kind.readsPackages ? [`--allow-read=${join(import.meta.dirname!, "../../../node_modules")}`] : [];
  const run = ["run", "--quiet", "--no-prompt", "--cached-only", `--v8-flags=${flags.join(",")}`, ...allowed];
  return { maxCpuSeconds, program, args: [...run, kind.url.href, SANDBOX_COMMAND, name], env };
}
