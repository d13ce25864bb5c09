/**
 * Notices stored data that can't be read: a slow pass over everything in the background, and a check of what services
 * report. See docs/decisions/0058-integrity.md.
 */
import { Mutex } from "../async/locks.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import { openWorker } from "../process/worker.ts";
import type { Database } from "../storage/database/database.ts";
import { type Damage, type IntegrityState, mergeDamages } from "./damage.ts";
import type { HealPlan, HealRequest } from "./heal_plan.ts";
import { loadState, sealState } from "./integrity_state.ts";
import type { IntegrityAnswer, IntegrityOrder } from "./integrity_worker.ts";
import type { DamageReports } from "./reported_damage.ts";

/** Dependencies. */
export interface IntegrityDeps {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  storageKey: Uint8Array;
  dataDir: string;
  damageReports: DamageReports;
  events: EventHub;
  log: Log;
  now(): number;
  /** Checks and corrects what can be made again from other data. Called at the end of each pass. */
  correctDerived?(): Promise<void>;
  /** Called once for what wasn't known to be damaged before. */
  onFound?(damages: readonly Damage[]): void;
}

/** How long after the end of a pass the next one begins. A whole pass is over within a week. */
const INTERVAL_MS = 3 * 24 * 60 * 60 * 1000;
/** Share of the time in which a pass works. */
const DUTY = 0.01;
/** How often the place of a pass is saved, so that it continues after a restart. */
const SAVE_MS = 10 * 60 * 1000;
/** Reports within this time are checked together. */
const REPORT_MS = 200;

/** Checks the stored data of a running server. */
export class Integrity {
  readonly #deps: IntegrityDeps;
  readonly #saving = new Mutex();
  readonly #workers = new Set<{ worker: Worker; stop(): void }>();
  #state: IntegrityState;
  #pass: Promise<void> | undefined;
  #checking: Promise<void> = Promise.resolve();
  #reportTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(deps: IntegrityDeps) {
    this.#deps = deps;
    this.#state = loadState(deps.db, deps.sealer);
    deps.damageReports.listen(() => {
      if (!this.#isClosed) this.#reportTimer ??= setTimeout(() => this.#takeReports(), REPORT_MS);
    });
  }

  /** Returns what is known to be damaged, and how far the checks are. */
  getState(): IntegrityState {
    return this.#state;
  }

  /** Starts a pass, or continues an interrupted one, if it's time. */
  look(): void {
    const { endedMs, beganMs } = this.#state;
    const isDue = beganMs !== null || endedMs === null || Math.abs(this.#deps.now() - endedMs) >= INTERVAL_MS;
    if (isDue && this.#pass === undefined && !this.#isClosed) this.#startPass(DUTY);
  }

  /** Checks everything now, as fast as possible. @throws {AppError} `internal` */
  async checkNow(): Promise<IntegrityState> {
    await this.#pass;
    this.#state = { ...this.#state, beganMs: null, cursor: null };
    await this.#startPass(1, true);
    return this.#state;
  }

  /** Checks single items now. @returns Those that are damaged. */
  async checkItems(paths: readonly string[]): Promise<Damage[]> {
    const damages = await this.#check(paths);
    await this.#update((state) => ({
      ...state,
      damages: state.damages.filter(({ path }) => !paths.includes(path)),
    }), damages);
    return damages;
  }

  /**
   * Remembers what a backup has no good copy of.
   *
   * @param kept Names of all backups; others are forgotten.
   */
  async noteBackup(name: string, lacking: readonly string[], kept: readonly string[]): Promise<void> {
    await this.#update((state) => ({
      ...state,
      lacking: Object.fromEntries(
        Object.entries({ ...state.lacking, [name]: [...lacking] }).filter(([each, paths]) =>
          paths.length > 0 && (each === name || kept.includes(each))
        ),
      ),
    }));
    for (const path of lacking) this.#deps.damageReports.report(path);
  }

  /**
   * Looks for good copies in backups. Files are replaced; what the database needs is returned.
   *
   * @param backups Paths, the newest first.
   */
  async planHealing(heal: Omit<HealRequest, "dataDir" | "sealer" | "storageKey">): Promise<HealPlan[]> {
    const answer = await this.#ask({ heal });
    return answer.kind === "plans" ? answer.plans : [];
  }

  /** Stops a pass, which continues after the next start, and waits for the rest. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#reportTimer);
    for (const { stop } of this.#workers) stop();
    await this.#pass?.catch(() => {});
    await this.#checking;
    await this.#saving.waitUntilSettled();
  }

  #startPass(duty: number, throws = false): Promise<void> {
    const running = this.#runPass(duty).finally(() => this.#pass = undefined);
    const { log } = this.#deps;
    this.#pass = running.catch((error) => {
      if (!this.#isClosed) log("error", "Can't check the stored data", { error: getErrorMessage(error) });
    });
    return throws ? running : this.#pass;
  }

  async #runPass(duty: number): Promise<void> {
    const { now, log } = this.#deps;
    const from = this.#state.beganMs === null ? null : this.#state.cursor;
    await this.#update((state) => ({ ...state, beganMs: state.beganMs ?? now() }));
    let savedMs = performance.now();
    const end = await this.#ask({ from, duty }, ({ damages: found, cursor }) => {
      const isDue = performance.now() - savedMs >= SAVE_MS;
      if (isDue) savedMs = performance.now();
      this.#state = { ...this.#state, cursor };
      if (isDue || found.length > 0) void this.#update((state) => state, found);
    });
    await this.#update((state) => state, end.kind === "end" ? end.damages : []);
    await this.#deps.correctDerived?.().catch((error) => {
      if (!this.#isClosed) log("error", "Can't check the list of cards", { error: getErrorMessage(error) });
    });
    // What was found earlier may have been replaced or restored.
    const known = this.#state.damages.map(({ path }) => path);
    const still = known.length === 0 ? [] : (await this.#check(known)).map(({ path }) => path);
    await this.#update((state) => ({
      ...state,
      damages: state.damages.filter(({ path }) => still.includes(path) || !known.includes(path)),
      beganMs: null,
      cursor: null,
      endedMs: now(),
    }));
    log("info", "Checked all stored data", { unreadable: this.#state.damages.length });
  }

  async #check(paths: readonly string[]): Promise<Damage[]> {
    const answer = await this.#ask({ paths });
    return answer.kind === "end" ? answer.damages : [];
  }

  #takeReports(): void {
    this.#reportTimer = undefined;
    const known = new Set(this.#state.damages.map(({ path }) => path));
    const paths = this.#deps.damageReports.take().filter((path) => !known.has(path));
    if (paths.length === 0 || this.#isClosed) return;
    this.#checking = this.#checking.then(() => this.checkItems(paths)).then(() => {}, (error) => {
      if (!this.#isClosed) {
        this.#deps.log("error", "Can't check what couldn't be read", { error: getErrorMessage(error) });
      }
    });
  }

  /** Changes and saves the state. @param found Damage that may not be known yet */
  #update(change: (state: IntegrityState) => IntegrityState, found: readonly Damage[] = []): Promise<void> {
    const { db, sealer, log, now, events, onFound } = this.#deps;
    const before = new Map(this.#state.damages.map((damage) => [damage.path, damage]));
    const changed = change(this.#state);
    const nowMs = now();
    const merged = mergeDamages([...changed.damages, ...found]).map((damage) => ({
      ...damage,
      sinceMs: before.get(damage.path)?.sinceMs ?? nowMs,
    }));
    this.#state = { ...changed, damages: merged };
    const fresh = merged.filter(({ path }) => !before.has(path));
    for (const { path, parts } of fresh) {
      log("error", "Stored data can't be read", { path, parts: parts.join(", ") });
    }
    if (fresh.length > 0) onFound?.(fresh);
    if (fresh.length > 0 || merged.length !== before.size) events.publish({ kind: "unreadable", id: "unreadable" });
    return this.#saving.run(async () => {
      await db.write([sealState(sealer, this.#state)]);
    }).catch((error) => log("error", "Can't save what can't be read", { error: getErrorMessage(error) }));
  }

  /** Runs a Worker. @throws {AppError} `internal`; `not_available` while the server stops */
  async #ask(
    what: IntegrityOrder["what"],
    onStep: (step: IntegrityAnswer & { kind: "step" }) => void = () => {},
  ): Promise<Exclude<IntegrityAnswer, { kind: "step" | "failure" }>> {
    const stopping = new AppError("not_available", "The server is shutting down");
    if (this.#isClosed) throw stopping;
    const { dataDir, storageKey } = this.#deps;
    const worker = openWorker(new URL("./integrity_worker.ts", import.meta.url));
    const { promise, resolve, reject } = Promise.withResolvers<
      Exclude<IntegrityAnswer, { kind: "step" | "failure" }>
    >();
    const entry = { worker, stop: () => reject(stopping) };
    this.#workers.add(entry);
    worker.onmessage = ({ data }: MessageEvent<IntegrityAnswer>) => {
      if (data.kind === "step") onStep(data);
      else if (data.kind === "failure") {
        reject(new AppError("internal", `Can't check the stored data: ${data.message}`));
      } else resolve(data);
    };
    worker.onerror = (event) => {
      event.preventDefault(); // An unhandled error event would end the process.
      reject(new AppError("internal", `Can't check the stored data: ${event.message}`));
    };
    try {
      worker.postMessage({ dataDir, storageKey, what } satisfies IntegrityOrder);
      return await promise;
    } finally {
      this.#workers.delete(entry);
      worker.terminate();
    }
  }
}
