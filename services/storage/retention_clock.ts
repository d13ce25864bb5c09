/**
 * Ages of stored things by the time that the server has witnessed, so that a start with a wrong clock deletes nothing.
 *
 * Items have wall-clock times. The clock remembers which stretches of wall-clock time it has seen, and how much time had
 * passed at the start of each. A new stretch starts when the wall clock goes back, or ahead by more than three days
 * (a server that was off, or a wrong clock). See docs/decisions/0050-retention-by-witnessed-time.md.
 */
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Log } from "../log.ts";
import type { Database, Reader } from "./database/database.ts";

/** Reports whether something is older than a retention time. Both in milliseconds; the first since 1970. */
export type IsExpired = (createdAtMs: number, retentionMs: number) => boolean;

/** Wall-clock times from `fromMs` to before `toMs`. */
export interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** A stretch of wall-clock time without a jump. */
interface Stretch extends TimeRange {
  /** Time witnessed before its start, in milliseconds. */
  witnessedMs: number;
}

/** A gap up to this long counts as time that has passed. */
const MAX_GAP_MS = 3 * 24 * 60 * 60 * 1000;
/** Clocks are corrected by a few seconds all the time. */
const MAX_CORRECTION_MS = 60_000;
/** Enough for years of starts that are more than three days apart. */
const MAX_STRETCHES = 200;
const SAVE_INTERVAL_MS = 60 * 60 * 1000;

/** Where it's stored. Restoring a backup restores that of its database. */
const STORED = { table: "setting", id: "retention_clock", field: "value", version: 1 };

/** Dependencies of `RetentionClock`. */
interface RetentionClockDeps {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  log: Log;
  now(): number;
}

/** The clock by which stored things expire. */
export class RetentionClock {
  readonly #deps: RetentionClockDeps;
  /** In the order in which they were witnessed; never empty. The first includes earlier times, the last is current. */
  readonly #stretches: Stretch[];
  #savedAtMs: number | undefined;

  /** Loads the stretches. The first start with this data folder sees only one, which includes all earlier times. */
  constructor(deps: RetentionClockDeps) {
    this.#deps = deps;
    const nowMs = deps.now();
    this.#stretches = loadStretches(deps.db, deps.sealer) ?? [{ fromMs: nowMs, toMs: nowMs, witnessedMs: 0 }];
    this.#observe();
  }

  /** Reports whether something is older than a retention time. */
  readonly isExpired: IsExpired = (createdAtMs, retentionMs) =>
    this.listExpired(retentionMs).some(({ fromMs, toMs }) => createdAtMs >= fromMs && createdAtMs < toMs);

  /** Lists the times at which things were created that are older than a retention time now. */
  listExpired(retentionMs: number): TimeRange[] {
    this.#observe();
    const all = this.#stretches;
    const current = all.at(-1)!;
    const cutoffMs = current.witnessedMs + (current.toMs - current.fromMs) - retentionMs;
    const expired: TimeRange[] = [];
    const kept: TimeRange[] = [];
    for (const [i, { fromMs, toMs, witnessedMs }] of all.entries()) {
      // What is older than everything known is as old as its time says.
      const startMs = i === 0 ? -Infinity : fromMs;
      const splitMs = fromMs + cutoffMs - witnessedMs;
      if (splitMs > startMs) expired.push({ fromMs: startMs, toMs: Math.min(splitMs, toMs + 1) });
      if (splitMs <= toMs) kept.push({ fromMs: Math.max(startMs, splitMs), toMs: toMs + 1 });
      // Imported items can have times at which the server was off.
      const nextMs = Math.min(...all.filter((other) => other.fromMs > toMs).map((other) => other.fromMs));
      if (splitMs > toMs + MAX_GAP_MS && nextMs < Infinity) expired.push({ fromMs: toMs + 1, toMs: nextMs });
    }
    // A time that was witnessed twice counts as the younger one.
    return kept.reduce(subtract, expired);
  }

  /** Saves what was witnessed, at most once an hour unless the clock has jumped or `isForced`. */
  async save(isForced = false): Promise<void> {
    const isJump = this.#observe();
    const { db, sealer, now } = this.#deps;
    const nowMs = now();
    const isDue = this.#savedAtMs === undefined || Math.abs(nowMs - this.#savedAtMs) >= SAVE_INTERVAL_MS;
    if (!isDue && !isJump && !isForced) return;
    await db.write([{
      sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
      params: [STORED.id, sealer.sealNow(STORED, JSON.stringify(this.#stretches))],
    }]);
    this.#savedAtMs = nowMs;
  }

  /** Witnesses the current time. @returns True if the clock has jumped. */
  #observe(): boolean {
    const { now, log } = this.#deps;
    const nowMs = now();
    const current = this.#stretches.at(-1)!;
    const gapMs = nowMs - current.toMs;
    if (gapMs < 0 && gapMs >= -MAX_CORRECTION_MS) return false;
    if (gapMs >= 0 && gapMs <= MAX_GAP_MS) {
      current.toMs = nowMs;
      return false;
    }
    // A clock that returns from the past, as on a computer without a clock battery, continues where it was.
    const knownMs = Math.max(...this.#stretches.map(({ toMs }) => toMs).filter((toMs) => toMs <= nowMs), -Infinity);
    const passedMs = gapMs < 0 ? 0 : Math.min(nowMs - knownMs, MAX_GAP_MS);
    const witnessedMs = current.witnessedMs + (current.toMs - current.fromMs) + passedMs;
    this.#stretches.push({ fromMs: nowMs, toMs: nowMs, witnessedMs });
    // The first one is never dropped, because it includes all earlier times.
    if (this.#stretches.length > MAX_STRETCHES) this.#stretches.splice(1, 1);
    log("warn", `${describeJump(gapMs)}. Trash, earlier versions and revisions are kept for longer`, {
      before: new Date(current.toMs).toISOString(),
      now: new Date(nowMs).toISOString(),
    });
    return true;
  }
}

function loadStretches(db: Pick<Reader, "get">, sealer: PurposeSealer): Stretch[] | undefined {
  const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", STORED.id);
  return row && JSON.parse(new TextDecoder().decode(sealer.openNow(STORED, row.sealed)));
}

/** How long a jump is reported: as long as anything is kept. */
const REPORTED_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Finds the last jump of the clock, if less than 30 days were witnessed since.
 *
 * @param sealer For the purpose "settings".
 * @returns The times before and after it, in milliseconds since 1970.
 */
export function loadJump(
  db: Pick<Reader, "get">,
  sealer: PurposeSealer,
): { beforeMs: number; afterMs: number } | undefined {
  const [before, current] = (loadStretches(db, sealer) ?? []).slice(-2);
  if (before === undefined || current === undefined || current.toMs - current.fromMs >= REPORTED_MS) return undefined;
  return { beforeMs: before.toMs, afterMs: current.fromMs };
}

function describeJump(gapMs: number): string {
  const days = Math.max(1, Math.round(Math.abs(gapMs) / (24 * 60 * 60 * 1000)));
  const length = days === 1 ? "1 day" : `${days} days`;
  return gapMs < 0 ? `The clock went back by up to ${length}` : `The server was off, or its clock wrong, for ${length}`;
}

function subtract(ranges: readonly TimeRange[], { fromMs, toMs }: TimeRange): TimeRange[] {
  return ranges.flatMap((range) => [
    { fromMs: range.fromMs, toMs: Math.min(range.toMs, fromMs) },
    { fromMs: Math.max(range.fromMs, toMs), toMs: range.toMs },
  ]).filter((range) => range.fromMs < range.toMs);
}
