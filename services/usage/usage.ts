/**
 * Counts what models answered: replies, tokens, times and costs, per hour and per chat. One sealed document per hour and
 * per chat has the sums of each model, so that reading a year is quick.
 */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { Mutex } from "../async/locks.ts";
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { getErrorTrace } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { asArray, asObject, type JsonObject } from "../json/type_guards.ts";
import type { CallSample } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { IsExpired } from "../storage/retention_clock.ts";
import {
  addSample,
  addSums,
  isSameModel,
  MAX_MODELS,
  parsePrice,
  parseSums,
  type Price,
  type UsageSums,
} from "./usage_sums.ts";

/** Sums of one day. */
export interface UsageDay {
  /** In the time zone of the question: `"2026-11-27"`. */
  date: string;
  models: UsageSums[];
}

/** The usage of some days. */
export interface UsageReport {
  /** All days, oldest first, also those without any usage. */
  days: UsageDay[];
  /** Sums of all days, those with the most replies first. */
  models: UsageSums[];
}

/** Usage as exports contain it. */
export interface ExportedUsage {
  /** Sums by the start of the hour: `"2026-11-27T06"`, UTC. */
  hours: Record<string, UsageSums[]>;
  prices: Price[];
}

/** Dependencies of `UsageCounter`. */
export interface UsageDeps {
  db: Database;
  /** For the purpose "usage". */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  isExpired: IsExpired;
  now(): number;
  /** How long counts are collected before they're written; by default a second. */
  collectMs?: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const HOUR_MS = 60 * 60 * 1000;
/** How long counts are kept. */
const KEPT_MS = 366 * DAY_MS;
/** So that a count is never written before its reply, and several are written at once. */
const COLLECT_MS = 1000;
/** Pause after a failed write. */
const RETRY_MS = 30_000;
/** Maximum number of counts that wait for a write. */
const MAX_WAITING = 1000;
/** Maximum number of models with a price. */
const MAX_PRICES = 500;

/** Kinds of documents: counts of an hour, and those of a chat. */
const HOUR_KIND = "usage";
const CHAT_KIND = "chat_usage";
const PRICES: Aad = { table: "setting", id: "usage_prices", field: "value", version: 1 };

interface Row {
  id: string;
  version: number;
  sealed: Uint8Array;
}

/** Counts calls to models, and reads the sums. */
export class UsageCounter {
  readonly #deps: UsageDeps;
  #waiting: (CallSample & { atMs: number })[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #writing = new Mutex();

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  /** Counts a call. It's written a little later, so that no reply waits for it or fails with it. */
  readonly record = (sample: CallSample): void => {
    this.#waiting.push({ ...sample, atMs: this.#deps.now() });
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    this.#schedule(this.#deps.collectMs ?? COLLECT_MS);
  };

  /** Writes what was counted. Failures are logged, and it's written later. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing.run(async () => {
      const samples = this.#waiting;
      this.#waiting = [];
      if (samples.length === 0) return;
      try {
        await this.#deps.db.write(this.#toStatements(samples));
      } catch (error) {
        this.#deps.log("warn", "Can't save the usage of models", { error: getErrorTrace(error) });
        this.#waiting = [...samples, ...this.#waiting].slice(-MAX_WAITING);
        this.#schedule(RETRY_MS);
      }
    });
  }

  /** Writes what was counted. */
  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
  }

  /**
   * Sums the usage of the last days.
   *
   * @param options.days Number of days, including today.
   * @param options.timeZone IANA name: where days start. An hour counts for the day in which it starts.
   */
  async report({ days, timeZone }: { days: number; timeZone: string }): Promise<UsageReport> {
    await this.flush();
    const nowMs = this.#deps.now();
    const format = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
    const dates = listDates(format.format(nowMs), days);
    const byDate = new Map(dates.map((date) => [date, [] as UsageSums[]]));
    const models: UsageSums[] = [];
    // Days of a time zone start up to a day before or after those of UTC.
    for await (const { startMs, sums } of this.#readHours(nowMs - (days + 1) * DAY_MS)) {
      const day = byDate.get(format.format(startMs));
      if (day === undefined) continue;
      for (const one of sums) {
        addSums(day, one);
        addSums(models, one);
      }
    }
    return {
      days: dates.map((date) => ({ date, models: byDate.get(date)! })),
      models: models.sort((a, b) => b.replies - a.replies),
    };
  }

  /** Returns the sums of a chat. @throws {AppError} `internal` if they can't be decrypted */
  async readChat(conversationId: string): Promise<UsageSums[]> {
    await this.flush();
    return this.#read(CHAT_KIND, conversationId)?.sums ?? [];
  }

  /** Returns the prices that the owner set. @throws {AppError} `internal` if they can't be decrypted */
  listPrices(): Price[] {
    const row = this.#deps.db.get<Row>("SELECT sealed FROM setting WHERE key = ?", PRICES.id);
    return row === undefined ? [] : JSON.parse(decoder.decode(this.#deps.sealer.openNow(PRICES, row.sealed)));
  }

  /** Sets the price of a model, or removes it. Returns all prices. */
  setPrice(
    model: Pick<Price, "connection_id" | "model">,
    price: Omit<Price, keyof typeof model> | null,
  ): Promise<Price[]> {
    return this.#writing.run(async () => {
      const others = this.listPrices().filter((other) => !isSameModel(other, model));
      const prices = price === null ? others : [...others.slice(1 - MAX_PRICES), { ...model, ...price }];
      await this.#savePrices(prices);
      this.#deps.events.publish({ kind: "usage", id: "prices" });
      return prices;
    });
  }

  /** Deletes all counts, those of chats too. Prices stay. */
  async clear(): Promise<void> {
    await this.#writing.run(async () => {
      this.#waiting = [];
      const sql = "DELETE FROM document WHERE kind IN (?, ?)";
      await this.#deps.db.write([{ sql, params: [HOUR_KIND, CHAT_KIND] }]);
    });
    this.#deps.events.publish({ kind: "usage", id: "counts" });
  }

  /** Deletes the counts of hours that are older than a year. */
  async sweep(): Promise<void> {
    const { db, isExpired } = this.#deps;
    const expired = db.all<{ id: string; created_at: number }>(
      "SELECT id, created_at FROM document WHERE kind = ? AND created_at < ?",
      HOUR_KIND,
      this.#deps.now() - KEPT_MS,
    ).filter(({ created_at }) => isExpired(created_at, KEPT_MS));
    if (expired.length === 0) return;
    await db.write([{
      sql: "DELETE FROM document WHERE kind = ? AND id IN (SELECT value FROM json_each(?))",
      params: [HOUR_KIND, JSON.stringify(expired.map(({ id }) => id))],
    }]);
  }

  /** Returns everything for an export. Counts that can't be read are left out. */
  async export(): Promise<ExportedUsage> {
    await this.flush();
    const hours: ExportedUsage["hours"] = {};
    for await (const { id, sums } of this.#readHours(0)) hours[id] = sums;
    return { hours, prices: this.listPrices() };
  }

  /**
   * Adds the counts of an export. Hours and prices that exist stay as they are.
   *
   * @param isDryRun Only counts.
   * @returns The number of hours and prices that were added.
   */
  import({ hours, prices }: ExportedUsage, isDryRun: boolean): Promise<number> {
    return this.#writing.run(async () => {
      const { db, isExpired } = this.#deps;
      const known = new Set(db.all<Row>("SELECT id FROM document WHERE kind = ?", HOUR_KIND).map(({ id }) => id));
      const added = Object.entries(hours).filter(([id]) => !known.has(id) && !isExpired(toStartMs(id), KEPT_MS));
      const ownPrices = this.listPrices();
      const newPrices = prices.filter((price) => !ownPrices.some((own) => isSameModel(own, price)));
      if (added.length > 0 && !isDryRun) {
        await db.write(
          added.map(([id, sums]) => this.#createWrite(HOUR_KIND, { id, version: 1, sums }, toStartMs(id))),
        );
      }
      if (newPrices.length > 0 && !isDryRun) {
        await this.#savePrices([...ownPrices, ...newPrices].slice(0, MAX_PRICES));
      }
      return added.length + newPrices.length;
    });
  }

  #schedule(delayMs: number): void {
    this.#timer ??= setTimeout(() => void this.flush(), delayMs);
  }

  #toStatements(samples: readonly (CallSample & { atMs: number })[]): Statement[] {
    const statements: Statement[] = [];
    const add = (kind: string, id: string, own: typeof samples, createdAtMs: number) => {
      try {
        const { version = 0, sums = [] } = this.#read(kind, id) ?? {};
        for (const sample of own) addSample(sums, sample);
        statements.push(this.#createWrite(kind, { id, version: version + 1, sums }, createdAtMs));
      } catch (error) {
        // The check of stored data reports it and may restore it.
        this.#deps.log("warn", "Can't add to the usage of models", { kind, error: getErrorTrace(error) });
      }
    };
    for (const [id, own] of Map.groupBy(samples, ({ atMs }) => toHourId(atMs))) add(HOUR_KIND, id, own, toStartMs(id));
    for (const [id, own] of Map.groupBy(samples, ({ origin }) => origin?.conversationId)) {
      if (id !== undefined) add(CHAT_KIND, id, own, own[0]!.atMs);
    }
    return statements;
  }

  /** A chat that was deleted in the meantime gets no counts. */
  #createWrite(kind: string, { id, version, sums }: { id: string; version: number; sums: UsageSums[] }, atMs: number) {
    const sealed = this.#deps.sealer.sealNow(createAad(kind, id, version), JSON.stringify(sums));
    return {
      sql: `INSERT INTO document (kind, id, version, created_at, updated_at, sealed)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE ?1 <> '${CHAT_KIND}' OR EXISTS (SELECT 1 FROM conversation WHERE id = ?2)
        ON CONFLICT (kind, id) DO UPDATE SET version = ?3, updated_at = ?5, sealed = ?6`,
      params: [kind, id, version, atMs, this.#deps.now(), sealed],
    } satisfies Statement;
  }

  async #savePrices(prices: readonly Price[]): Promise<void> {
    await this.#deps.db.write([{
      sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
      params: [PRICES.id, this.#deps.sealer.sealNow(PRICES, JSON.stringify(prices))],
    }]);
  }

  /** @throws {AppError} `internal` if it can't be decrypted */
  #read(kind: string, id: string): { version: number; sums: UsageSums[] } | undefined {
    const row = this.#deps.db.get<Row>("SELECT id, version, sealed FROM document WHERE kind = ? AND id = ?", kind, id);
    return row && { version: row.version, sums: this.#open(kind, row) };
  }

  #open(kind: string, { id, version, sealed }: Row): UsageSums[] {
    return JSON.parse(decoder.decode(this.#deps.sealer.openNow(createAad(kind, id, version), sealed)));
  }

  /** Yields the hours since a time, oldest first, and adds the costs by the owner's prices. */
  async *#readHours(sinceMs: number): AsyncGenerator<{ id: string; startMs: number; sums: UsageSums[] }> {
    const rows = this.#deps.db.all<Row & { created_at: number }>(
      "SELECT id, version, created_at, sealed FROM document WHERE kind = ? AND created_at >= ? ORDER BY created_at",
      HOUR_KIND,
      sinceMs,
    );
    for (const row of rows) {
      await yieldIfTickUsedUp();
      try {
        yield { id: row.id, startMs: row.created_at, sums: this.#open(HOUR_KIND, row) };
      } catch {
        // Reported by the check of stored data.
      }
    }
  }
}

const decoder = new TextDecoder();

function createAad(kind: string, id: string, version: number): Aad {
  return { table: "document", id: `${kind}/${id}`, field: "sealed", version };
}

/** Reads the usage of an export, ignoring what isn't usage. */
export function parseUsage(json: JsonObject): ExportedUsage {
  const hours = Object.entries(asObject(json.hours)).flatMap(([id, sums]) => {
    const isHour = /^\d{4}-\d\d-\d\dT\d\d$/.test(id) && Number.isFinite(toStartMs(id));
    return isHour ? [[id, asArray(sums).slice(0, MAX_MODELS).flatMap((one) => parseSums(asObject(one)) ?? [])]] : [];
  });
  const prices = asArray(json.prices).slice(0, MAX_PRICES).flatMap((one) => parsePrice(asObject(one)) ?? []);
  return { hours: Object.fromEntries(hours), prices };
}

/** Returns the ID of an hour: `"2026-11-27T06"`, UTC. */
function toHourId(atMs: number): string {
  return new Date(Math.floor(atMs / HOUR_MS) * HOUR_MS).toISOString().slice(0, 13);
}

function toStartMs(hourId: string): number {
  return Date.parse(`${hourId}:00:00.000Z`);
}

/** Lists dates up to and including the last one. */
function listDates(last: string, count: number): string[] {
  const lastMs = Date.parse(`${last}T00:00:00Z`);
  return Array.from(
    { length: count },
    (_, n) => new Date(lastMs - (count - 1 - n) * DAY_MS).toISOString().slice(0, 10),
  );
}
