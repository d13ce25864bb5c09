/** Bounds what the macros of one prompt may cost: they come from cards, lorebooks, presets and messages of strangers. */
import { Buffer } from "node:buffer";

/** Why a text was not expanded. `variables` covers their number and their size. */
export type BudgetReason = "steps" | "bytes" | "depth" | "variables";

/** A field that stays as written, since its macros cost more than the budget allows. */
export interface NotExpanded {
  /** `description`, `lorebook`, `history`, …; the names of `BlockPart` and `history`. */
  field: string;
  /** Which one, where a prompt has several: an entry, a prompt of a preset, the id of a message. */
  source?: string;
  reason: BudgetReason;
}

/** Limits for the macros of one prompt. */
export interface MacroLimits {
  /** Macros evaluated; costly ones count as `COSTLY_STEPS`. */
  steps: number;
  /** UTF-8 bytes that macros insert. */
  bytes: number;
  /** Macros inside macros, and inside the fields they name. */
  depth: number;
  variables: number;
  /** UTF-8 bytes of all names and values of variables together. */
  variableBytes: number;
}

/** The limits of a prompt. The largest cards and presets in use need a few hundred steps. */
export const MACRO_LIMITS: Readonly<MacroLimits> = Object.freeze({
  steps: 100_000,
  bytes: 4 * 1024 * 1024,
  depth: 32,
  variables: 1_000,
  variableBytes: 1024 * 1024,
});

/** A choice by chance hashes its place, and a date is formatted: each takes as long as 20 other macros. */
export const COSTLY_STEPS = 20;
/** Work of fields over budget that is forgiven, in budgets. Beyond it they use up the budget of the other fields. */
const FORGIVEN = 3;
/** Fields that are reported. */
const MAX_REPORTED = 1_000;

/** Ends the expansion of a field. Never leaves `Macros`. */
export class OverBudget extends Error {
  readonly reason: BudgetReason;

  constructor(reason: BudgetReason) {
    super(`The macros exceed the budget for ${reason}`);
    this.reason = reason;
  }
}

/** Work done so far. */
export interface MacroWork {
  steps: number;
  bytes: number;
}

/** The budget of one prompt, shared by everything that is expanded for it. */
export class MacroBudget {
  readonly limits: Readonly<MacroLimits>;
  readonly #used: MacroWork = { steps: 0, bytes: 0 };
  readonly #forgiven: MacroWork = { steps: 0, bytes: 0 };
  readonly #reported = new Map<string, NotExpanded>();

  constructor(limits: Readonly<MacroLimits> = MACRO_LIMITS) {
    this.limits = limits;
  }

  /** The work that counts: of all fields that were expanded, and of what is being expanded now. */
  get used(): MacroWork {
    return { ...this.#used };
  }

  /** All work that was done, including that of fields which were over budget. */
  get done(): MacroWork {
    const { steps, bytes } = this.#forgiven;
    return { steps: this.#used.steps + steps, bytes: this.#used.bytes + bytes };
  }

  /** The fields that stay as written, each once. */
  get notExpanded(): NotExpanded[] {
    return [...this.#reported.values()];
  }

  /** Counts steps. @throws {OverBudget} */
  takeSteps(steps: number): void {
    if (this.#used.steps + steps > this.limits.steps) throw new OverBudget("steps");
    this.#used.steps += steps;
  }

  /** Counts bytes before they are produced. @throws {OverBudget} */
  takeBytes(bytes: number): void {
    if (this.#used.bytes + bytes > this.limits.bytes) throw new OverBudget("bytes");
    this.#used.bytes += bytes;
  }

  /**
   * Runs work for one field, all or nothing.
   *
   * The work of a field over budget doesn't count, so that one hostile field leaves the others their macros. Only so much
   * is forgiven; after that, hostile fields use up the budget, and the work for a prompt stays bounded.
   *
   * @returns `undefined` when it was over budget, which is then reported.
   */
  attempt<T>(field: Omit<NotExpanded, "reason">, work: () => T): T | undefined {
    const before = { ...this.#used };
    try {
      return work();
    } catch (error) {
      if (!(error instanceof OverBudget)) throw error;
      this.#forgive(before);
      this.#report({ ...field, reason: error.reason });
      return undefined;
    }
  }

  #forgive(before: MacroWork): void {
    for (const unit of ["steps", "bytes"] as const) {
      const wasted = this.#used[unit] - before[unit];
      if (this.#forgiven[unit] + wasted > this.limits[unit] * FORGIVEN) continue;
      this.#forgiven[unit] += wasted;
      this.#used[unit] = before[unit];
    }
  }

  #report({ field, source, reason }: NotExpanded): void {
    const key = `${field}\n${source ?? ""}`;
    if (this.#reported.has(key) || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.set(key, { field, ...(source !== undefined && { source }), reason });
  }
}

/** Variables that macros set. What one field changed can be undone. */
export class MacroVariables {
  readonly #limits: Readonly<MacroLimits>;
  readonly #values = new Map<string, string>();
  /** Values from before the field, `undefined` for a variable that was not set. */
  readonly #before = new Map<string, string | undefined>();
  #bytes = 0;

  constructor(limits: Readonly<MacroLimits>) {
    this.#limits = limits;
  }

  /** Returns a value, `""` for a variable that is not set. */
  get(name: string): string {
    return this.#values.get(name) ?? "";
  }

  /** Sets a variable. @throws {OverBudget} */
  set(name: string, value: string): void {
    const known = this.#values.get(name);
    const bytes = this.#bytes + byteLength(value) - (known === undefined ? -byteLength(name) : byteLength(known));
    const count = this.#values.size + (known === undefined ? 1 : 0);
    if (bytes > this.#limits.variableBytes || count > this.#limits.variables) throw new OverBudget("variables");
    if (!this.#before.has(name)) this.#before.set(name, known);
    this.#values.set(name, value);
    this.#bytes = bytes;
  }

  /** Begins a field. */
  begin(): void {
    this.#before.clear();
  }

  /** Undoes what has changed since `begin`. */
  rollBack(): void {
    for (const [name, before] of this.#before) {
      const known = this.#values.get(name) ?? "";
      this.#bytes -= byteLength(known);
      if (before === undefined) {
        this.#bytes -= byteLength(name);
        this.#values.delete(name);
      } else {
        this.#bytes += byteLength(before);
        this.#values.set(name, before);
      }
    }
    this.#before.clear();
  }
}

/** Returns the length of a text in UTF-8. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}
