/** Brings in what a reader gives, several conversations at a time: they are sealed beside each other and share commits. */
import { importReason } from "./import_reasons.ts";
import { changed, refused } from "./import_notes.ts";
import type { ByteBudget, Reservation } from "../async/byte_budget.ts";
import { AppError } from "../errors.ts";
import type { ImportedItem, ImportNote, ImportStep } from "./import_item.ts";
import { addLine, countItem, type ImportReport } from "./import_report.ts";
import { LARGE_BYTES, stepBytes } from "./import_memory.ts";
import { land, type Landed, type LandingParts } from "./import_writer.ts";

/** Each holds its messages until they are stored. */
const AT_ONCE = 8;
/** Messages of those under way; a long chat goes alone. */
const MAX_MESSAGES = 4_000;
/** Memory that a conversation takes for each byte of its messages: values, their text, the same sealed, and garbage. */
const WEIGHT = 5;

/** What a queue needs. */
export interface LandingQueueDeps extends LandingParts {
  budget: ByteBudget;
}

/** A thing that is being brought in, or a note that waits for its turn in the report. */
type UnderWay = { messages: number } & ({ item: ImportedItem; landed: Promise<Landed> } | { note: ImportNote });

/** Takes steps in order, and tells in the report what became of them in the same order. */
export class LandingQueue {
  readonly #parts: LandingQueueDeps;
  readonly #report: ImportReport;
  readonly #signal: AbortSignal | undefined;
  readonly #underWay: UnderWay[] = [];
  #messages = 0;

  /** @param signal Ends the wait for memory. */
  constructor(parts: LandingQueueDeps, report: ImportReport, signal?: AbortSignal) {
    this.#parts = parts;
    this.#signal = signal;
    this.#report = report;
  }

  /** Takes a step, when there is room for it. @throws {AppError} what keeps everything else out as well: a full disk */
  async take(step: ImportStep): Promise<void> {
    // Conversations refer to other things and never to each other.
    const messages = step.what === "note" ? 0 : step.what === "conversation" ? step.messages.length : Infinity;
    while (
      this.#underWay.length > 0 && (this.#underWay.length >= AT_ONCE || this.#messages + messages > MAX_MESSAGES)
    ) {
      await this.#settleFirst();
    }
    const bytes = stepBytes(step);
    if (step.what === "conversation" && bytes > LARGE_BYTES) {
      await this.end();
      using _ = await this.#reserve(bytes);
      this.#underWay.push({ messages, item: step, landed: land(this.#parts, step, this.#report.dry_run) });
      return await this.#settleFirst();
    }
    this.#messages += messages;
    if (step.what === "note") {
      this.#underWay.push({ messages, note: step });
      return;
    }
    const landed = land(this.#parts, step, this.#report.dry_run);
    landed.catch(() => {}); // told when it is settled
    this.#underWay.push({ messages, item: step, landed });
    if (step.what !== "conversation") await this.#settleFirst();
  }

  /** Waits for everything that is under way. @throws {AppError} as `take` */
  async end(): Promise<void> {
    while (this.#underWay.length > 0) await this.#settleFirst();
  }

  /** Nobody waits for an import at the other end of a request, so it waits as long as it takes. */
  async #reserve(bytes: number): Promise<Reservation> {
    return await this.#parts.budget.reserve(bytes * WEIGHT, { signal: this.#signal, waitMs: Infinity });
  }

  async #settleFirst(): Promise<void> {
    const first = this.#underWay.shift()!;
    this.#messages = this.#underWay.length === 0 ? 0 : this.#messages - first.messages;
    if ("note" in first) return addLine(this.#report, first.note);
    const { item, landed } = first;
    try {
      const { state, reason, kept, name = item.name } = await landed;
      countItem(this.#report, { ...item, name }, state);
      if (reason !== undefined) addLine(this.#report, changed(item.source, reason));
      if (kept) {
        addLine(this.#report, { level: "kept", source: item.source, ...importReason("files_in_card"), count: kept });
      }
      if (item.what === "conversation" && state !== "present") this.#report.messages += item.messages.length;
    } catch (error) {
      // One that cannot come in keeps nobody else out; a full disk does.
      if (!(error instanceof AppError) || error.code === "storage_full" || error.code === "internal") throw error;
      countItem(this.#report, item, "refused");
      addLine(this.#report, refused(item.source, error));
    }
  }
}
