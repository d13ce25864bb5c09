/**
 * Stores what was learned about each connection: the dialect and models of its server, rejected fields, and how the
 * last call ended.
 */
import { Mutex } from "../../async/locks.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { getErrorMessage } from "../../errors.ts";
import type { EventHub } from "../../events/event_hub.ts";
import type { Log } from "../../log.ts";
import type { Database } from "../../storage/database/database.ts";
import { parseContracts, type ServerContract } from "../contract/contract.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { parseDialectName } from "../dialects/dialects.ts";
import type { CallConnection, CallFailure, ModelThinking, ServerNotice } from "../provider.ts";
import type { Refusal } from "../refused_fields.ts";

/** A rejected field, with its model and the time at which it expires. */
export interface StoredRefusal extends Refusal {
  model: string;
  atMs: number;
}

/** How the last call ended. */
export interface LastCall {
  atMs: number;
  /** Absent if it succeeded. */
  failure?: CallFailure;
}

/** Facts about a connection. */
export interface ConnectionFacts {
  detected?: DialectName;
  /** First model in the server's last known list. */
  firstModel?: string;
  /** Whether models think, if the server reports it. */
  thinking?: Record<string, ModelThinking>;
  refusals: StoredRefusal[];
  /** What the server was found to do, by model. */
  contracts?: Record<string, ServerContract>;
  lastCall?: LastCall;
  notice?: ServerNotice;
}

/** Dependencies of `ConnectionMemory`. */
export interface ConnectionMemoryDeps {
  db: Database;
  /** For the purpose "connections". */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  now(): number;
  /** Called when a connection works again after its calls failed. */
  onRecovered?(id: string): void;
}

/** How long a rejected field is remembered. */
export const REFUSAL_TTL_MS = 7 * 24 * 60 * 60 * 1000;
/** Maximum number of rejected fields per connection. The oldest are dropped first. */
const MAX_REFUSALS = 200;
const SAVE_DELAY_MS = 2_000;
/** Maximum number of models whose facts are stored. */
const MAX_MODELS = 1_000;
/** Maximum number of models per connection whose contracts are stored. */
const MAX_CONTRACTS = 50;
/** Key in table `setting`. */
const KEY = "connection_facts";
const AAD = { table: "setting", id: KEY, field: "value", version: 1 };

/** Facts about all connections. Everything except the last calls is stored, encrypted. */
export class ConnectionMemory {
  readonly #deps: ConnectionMemoryDeps;
  readonly #facts: Map<string, ConnectionFacts>;
  readonly #lock = new Mutex();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(deps: ConnectionMemoryDeps) {
    this.#deps = deps;
    this.#facts = this.#load();
  }

  /** Returns the facts about a connection, without expired rejections. */
  find(id: string): ConnectionFacts {
    const facts = this.#facts.get(id);
    if (facts === undefined) return { refusals: [] };
    return { ...facts, refusals: facts.refusals.filter((refusal) => this.#isCounted(refusal)) };
  }

  /** Forgets a connection that was edited or deleted. Calls that are still running can't restore anything. */
  async forget(id: string): Promise<void> {
    const wasStored = isStored(this.#facts.get(id));
    if (this.#facts.delete(id) && wasStored) await this.#save();
  }

  /**
   * Returns the memory for the calls of a connection.
   *
   * @param hasModel False if the first model of the server's list is used.
   */
  toCallMemory(id: string, hasModel: boolean): NonNullable<CallConnection["memory"]> {
    const facts = this.#getState(id);
    const isCurrent = () => this.#facts.get(id) === facts;
    return {
      list: (model) => facts.refusals.filter((refusal) => refusal.model === model && this.#isCounted(refusal)),
      add: (model, refusal) => {
        if (!isCurrent()) return;
        const others = facts.refusals.filter((one) => one.model !== model || one.wire !== refusal.wire);
        facts.refusals = [...others, { ...refusal, model, atMs: this.#deps.now() }].slice(-MAX_REFUSALS);
        this.#announceChange(id);
      },
      reportCall: (failure) => {
        if (!isCurrent()) return;
        const before = facts.lastCall;
        facts.lastCall = { atMs: this.#deps.now(), ...(failure && { failure }) };
        // A server that still works isn't worth an event.
        const isNews = failure !== undefined || before?.failure !== undefined;
        if (isNews) this.#deps.events.publish({ kind: "connection", id });
        if (failure === undefined && before?.failure !== undefined) this.#deps.onRecovered?.(id);
      },
      reportDialect: (detected) => {
        if (!isCurrent() || facts.detected === detected) return;
        facts.detected = detected;
        this.#announceChange(id);
      },
      reportNotice: (notice) => {
        if (!isCurrent() || facts.notice?.message === notice?.message) return;
        facts.notice = notice;
        this.#deps.events.publish({ kind: "connection", id });
      },
      reportThinking: (model, thinking) => {
        if (!isCurrent() || facts.thinking?.[model] === thinking) return;
        const others = Object.entries(facts.thinking ?? {}).filter(([name]) => name !== model);
        facts.thinking = Object.fromEntries([...others, [model, thinking] as const].slice(-MAX_MODELS));
        this.#announceChange(id);
      },
      reportModels: (models) => {
        if (!isCurrent()) return;
        const firstModel = models[0]?.id;
        const known = models.filter(({ thinking }) => thinking !== undefined).slice(0, MAX_MODELS);
        // A request may list fewer facts than another.
        const thinking = { ...facts.thinking, ...Object.fromEntries(known.map((one) => [one.id, one.thinking!])) };
        const isSame = facts.firstModel === firstModel &&
          JSON.stringify(facts.thinking ?? {}) === JSON.stringify(thinking);
        if (isSame) return;
        const isVisible = !hasModel || JSON.stringify(facts.thinking ?? {}) !== JSON.stringify(thinking);
        facts.firstModel = firstModel;
        facts.thinking = thinking;
        this.#announceChange(id, isVisible);
      },
      reportContract: (model, contract) => {
        if (!isCurrent()) return;
        const others = Object.entries(facts.contracts ?? {}).filter(([name]) => name !== model);
        facts.contracts = Object.fromEntries([...others, [model, contract] as const].slice(-MAX_CONTRACTS));
        this.#announceChange(id);
      },
    };
  }

  /** Saves pending changes. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) await this.#save();
    await this.#lock.waitUntilSettled();
  }

  #isCounted({ atMs }: StoredRefusal): boolean {
    return atMs + REFUSAL_TTL_MS > this.#deps.now();
  }

  #getState(id: string): ConnectionFacts {
    let facts = this.#facts.get(id);
    if (facts === undefined) this.#facts.set(id, facts = { refusals: [] });
    return facts;
  }

  /** Schedules a save. Many facts arrive with the first call, so they're saved together. */
  #announceChange(id: string, isVisible = true): void {
    if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#save(), SAVE_DELAY_MS);
      Deno.unrefTimer(this.#timer as unknown as number);
    }
    if (isVisible) this.#deps.events.publish({ kind: "connection", id });
  }

  #load(): Map<string, ConnectionFacts> {
    const { db, sealer, log } = this.#deps;
    try {
      const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", KEY);
      if (row === undefined) return new Map();
      const stored: [string, ConnectionFacts][] = JSON.parse(new TextDecoder().decode(sealer.openNow(AAD, row.sealed)));
      return new Map(stored.map(([id, facts]) => [id, {
        ...facts,
        detected: parseDialectName(facts.detected),
        contracts: parseContracts(facts.contracts),
      }]));
    } catch (error) {
      // It's learned again with the next calls.
      log("warn", "Can't read the stored facts about connections", { error: getErrorMessage(error) });
      return new Map();
    }
  }

  async #save(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { db, sealer, log } = this.#deps;
    const stored = [...this.#facts].filter(([, facts]) => isStored(facts)).map((
      [id, { lastCall: _, notice: __, ...facts }],
    ) => [
      id,
      { ...facts, refusals: facts.refusals.filter((refusal) => this.#isCounted(refusal)) },
    ]);
    const sealed = sealer.sealNow(AAD, JSON.stringify(stored));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
    await this.#lock.run(() => db.write([{ sql, params: [KEY, sealed] }])).catch((error) =>
      log("warn", "Can't save the facts about connections", { error: getErrorMessage(error) })
    );
  }
}

/** Returns whether there is something to store. A failed call isn't stored. */
function isStored(facts: ConnectionFacts | undefined): boolean {
  if (facts === undefined) return false;
  const { detected, firstModel, thinking, refusals, contracts } = facts;
  return [detected, firstModel, thinking, contracts].some((fact) => fact !== undefined) || refusals.length > 0;
}
