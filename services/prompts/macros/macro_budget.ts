/** Limits the cost of macros in one prompt. They come from untrusted cards, lorebooks, presets and messages. */
import { Buffer } from "node:buffer";

/** Which limit was exceeded. `variables` covers their number and their size. */
type BudgetReason = "steps" | "bytes" | "depth" | "variables";

/**
 * A field sent as written, because its macros exceed the budget, or a macro that isn't expanded: Parlor doesn't have it
 * (`unknown`), or its arguments don't fit (`arguments`).
 */
export interface NotExpanded {
  /** A `BlockPart` or `history`. */
  field: string;
  /** Which one, if a prompt has several: an entry, a preset prompt or a message id. */
  source?: string;
  reason: BudgetReason | "unknown" | "arguments";
  /** Name of the macro, if it's only one. */
  macro?: string;
}

/** Limits for the macros of one prompt. */
export interface MacroLimits {
  /** Number of evaluated macros; expensive ones count as `COSTLY_STEPS`. */
  steps: number;
  /** UTF-8 bytes that macros insert. */
  bytes: number;
  /** Nesting of macros, including the fields they insert. */
  depth: number;
  variables: number;
  /** UTF-8 bytes of the names and values of all variables. */
  variableBytes: number;
}

/** Default limits. The largest cards and presets in use need a few hundred steps. */
export const MACRO_LIMITS: Readonly<MacroLimits> = Object.freeze({
  steps: 100_000,
  bytes: 4 * 1024 * 1024,
  depth: 32,
  variables: 1_000,
  variableBytes: 1024 * 1024,
});

/** Random choices hash their location, and dates are formatted: each takes as long as 20 other macros. */
export const COSTLY_STEPS = 20;
/**
 * How many times the budget is refunded for wasted work. After that, fields over budget use up the budget of others.
 */
const MAX_REFUNDS = 3;
/** Maximum number of reported fields. */
const MAX_REPORTED = 1_000;
/** Longer names are cut. */
const MAX_NAME_CHARS = 100;

/** Aborts the expansion of a field. Never leaves `Macros`. */
export class OverBudgetError extends Error {
  readonly reason: BudgetReason;

  constructor(reason: BudgetReason) {
    super(`The macros exceed the limit of ${reason}`);
    this.reason = reason;
  }
}

/** Work done. */
export interface MacroWork {
  steps: number;
  bytes: number;
}

/** The budget of one prompt, shared by all of its fields. */
export class MacroBudget {
  readonly limits: Readonly<MacroLimits>;
  readonly #used: MacroWork = { steps: 0, bytes: 0 };
  readonly #refunded: MacroWork = { steps: 0, bytes: 0 };
  readonly #reported = new Map<string, NotExpanded>();

  constructor(limits: Readonly<MacroLimits> = MACRO_LIMITS) {
    this.limits = limits;
  }

  /** Work that counts: of all expanded fields and the current one. */
  get used(): MacroWork {
    return { ...this.#used };
  }

  /** All work, including that of fields over budget. */
  get done(): MacroWork {
    const { steps, bytes } = this.#refunded;
    return { steps: this.#used.steps + steps, bytes: this.#used.bytes + bytes };
  }

  /** Fields over budget, each once. */
  get notExpanded(): NotExpanded[] {
    return [...this.#reported.values()];
  }

  /** Counts steps. @throws {OverBudgetError} */
  takeSteps(steps: number): void {
    if (this.#used.steps + steps > this.limits.steps) throw new OverBudgetError("steps");
    this.#used.steps += steps;
  }

  /** Counts bytes before they are produced. @throws {OverBudgetError} */
  takeBytes(bytes: number): void {
    if (this.#used.bytes + bytes > this.limits.bytes) throw new OverBudgetError("bytes");
    this.#used.bytes += bytes;
  }

  /**
   * Runs the work for one field, all or nothing.
   *
   * The work of a field over budget is refunded, so that one hostile field doesn't affect the others. Refunds are
   * limited, so the total work per prompt is bounded.
   *
   * @returns `undefined` if the field is over budget, which is then reported.
   */
  countAttempt<T>(field: Pick<NotExpanded, "field" | "source">, work: () => T): T | undefined {
    const before = { ...this.#used };
    try {
      return work();
    } catch (error) {
      if (!(error instanceof OverBudgetError)) throw error;
      this.#refund(before);
      this.report({ ...field, reason: error.reason });
      return undefined;
    }
  }

  #refund(before: MacroWork): void {
    for (const unit of ["steps", "bytes"] as const) {
      const wasted = this.#used[unit] - before[unit];
      if (this.#refunded[unit] + wasted > this.limits[unit] * MAX_REFUNDS) continue;
      this.#refunded[unit] += wasted;
      this.#used[unit] = before[unit];
    }
  }

  /** Reports a field or one of its macros, each once. */
  report({ field, source, reason, macro }: NotExpanded): void {
    const name = macro?.slice(0, MAX_NAME_CHARS);
    const key = `${field}\n${source ?? ""}\n${name ?? ""}`;
    if (this.#reported.has(key) || this.#reported.size >= MAX_REPORTED) return;
    const reported: NotExpanded = { field, ...(source !== undefined && { source }), reason };
    this.#reported.set(key, { ...reported, ...(name !== undefined && { macro: name }) });
  }
}

/** Variables set by macros. The changes of one field can be rolled back. */
export class MacroVariables {
  readonly #limits: Readonly<MacroLimits>;
  readonly #values = new Map<string, string>();
  /** Values before the current field; `undefined` if unset. */
  readonly #before = new Map<string, string | undefined>();
  #bytes = 0;

  constructor(limits: Readonly<MacroLimits>) {
    this.#limits = limits;
  }

  /** Returns a value; `undefined` if unset. */
  find(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** Sets a variable. @throws {OverBudgetError} */
  set(name: string, value: string): void {
    const known = this.#values.get(name);
    const bytes = this.#bytes + byteLength(value) - (known === undefined ? -byteLength(name) : byteLength(known));
    const count = this.#values.size + (known === undefined ? 1 : 0);
    if (bytes > this.#limits.variableBytes || count > this.#limits.variables) throw new OverBudgetError("variables");
    if (!this.#before.has(name)) this.#before.set(name, known);
    this.#values.set(name, value);
    this.#bytes = bytes;
  }

  /** Sets a variable unless that exceeds a limit. */
  trySet(name: string, value: string): void {
    try {
      this.set(name, value);
    } catch (error) {
      if (!(error instanceof OverBudgetError)) throw error;
    }
  }

  /** Removes a variable, if there is one. */
  delete(name: string): void {
    const known = this.#values.get(name);
    if (known === undefined) return;
    if (!this.#before.has(name)) this.#before.set(name, known);
    this.#values.delete(name);
    this.#bytes -= byteLength(name) + byteLength(known);
  }

  /** Starts a field. */
  beginField(): void {
    this.#before.clear();
  }

  /** Undoes all changes since `beginField`. */
  rollBack(): void {
    for (const [name, before] of this.#before) {
      const known = this.#values.get(name);
      if (known !== undefined) this.#bytes -= byteLength(name) + byteLength(known);
      if (before === undefined) this.#values.delete(name);
      else {
        this.#bytes += byteLength(name) + byteLength(before);
        this.#values.set(name, before);
      }
    }
    this.#before.clear();
  }
}

/** Returns the UTF-8 length of a text. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}
