/** Writes imported items, several conversations at a time: they're encrypted concurrently and share commits. */
import {
  addLine,
  countItem,
  createChangedNote,
  createRefusedNote,
  createUnusedNote,
  importReason,
  type ImportReport,
} from "./import_report.ts";
import type { ByteBudget, Reservation } from "../async/byte_budget.ts";
import { AppError } from "../errors.ts";
import { isJsonObject } from "../json/type_guards.ts";
import { estimateStepBytes, type ImportedItem, type ImportNote, type ImportStep, LARGE_BYTES } from "./import_item.ts";
import { type ImportWriterDeps, writeItem, type WriteResult } from "./import_writer.ts";

/** Maximum number of conversations at a time. Each is in memory until it's stored. */
const AT_ONCE = 8;
/** Maximum number of messages in progress. A longer chat is written alone. */
const MAX_MESSAGES = 4_000;
/** Memory per byte of a conversation's messages: values, their text, the encrypted text, and garbage. */
const WEIGHT = 5;

/** Dependencies of `ImportQueue`. */
export interface ImportQueueDeps extends ImportWriterDeps {
  budget: ByteBudget;
}

/** An item being written, or a note waiting for its position in the report. */
type PendingItem =
  & { messages: number }
  & ({ item: ImportedItem; written: Promise<WriteResult> } | { note: ImportNote });

/** Takes items in order and reports their results in the same order. */
export class ImportQueue {
  readonly #deps: ImportQueueDeps;
  readonly #report: ImportReport;
  readonly #signal: AbortSignal | undefined;
  readonly #pending: PendingItem[] = [];
  /** Characters that have another ID here than in the import. They come before what refers to them. */
  readonly #otherIds = new Map<string, string>();
  #messages = 0;

  /** @param signal Ends the wait for memory. */
  constructor(deps: ImportQueueDeps, report: ImportReport, signal?: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#report = report;
  }

  /** Takes an item once there is capacity. @throws {AppError} Errors that every item would have: a full disk */
  async take(read: ImportStep): Promise<void> {
    const step = read.what === "note" || this.#otherIds.size === 0 ? read : renameIds(read, this.#otherIds);
    // Conversations refer to other items, never to each other.
    const messages = step.what === "note" ? 0 : step.what === "conversation" ? step.messages.length : Infinity;
    while (
      this.#pending.length > 0 && (this.#pending.length >= AT_ONCE || this.#messages + messages > MAX_MESSAGES)
    ) {
      await this.#settleFirst();
    }
    const bytes = estimateStepBytes(step);
    if (step.what === "conversation" && bytes > LARGE_BYTES) {
      await this.finish();
      using _ = await this.#reserve(bytes);
      this.#pending.push({ messages, item: step, written: writeItem(this.#deps, step, this.#report.dry_run) });
      return await this.#settleFirst();
    }
    this.#messages += messages;
    if (step.what === "note") {
      this.#pending.push({ messages, note: step });
      return;
    }
    const written = writeItem(this.#deps, step, this.#report.dry_run);
    written.catch(() => {}); // Reported when it's settled.
    this.#pending.push({ messages, item: step, written });
    if (step.what !== "conversation") await this.#settleFirst();
  }

  /** Waits for everything in progress. @throws {AppError} Like `take` */
  async finish(): Promise<void> {
    while (this.#pending.length > 0) await this.#settleFirst();
  }

  /** Reserves memory. An import is a job without an open request, so it can wait without a time limit. */
  async #reserve(bytes: number): Promise<Reservation> {
    return await this.#deps.budget.reserve(bytes * WEIGHT, { signal: this.#signal, waitMs: Infinity });
  }

  async #settleFirst(): Promise<void> {
    const first = this.#pending.shift()!;
    this.#messages = this.#pending.length === 0 ? 0 : this.#messages - first.messages;
    if ("note" in first) return addLine(this.#report, first.note);
    const { item, written } = first;
    try {
      const { state, reason, leftOff = [], unused = [], assetCount, name = item.name, id = item.id } = await written;
      if (id !== item.id) this.#otherIds.set(item.id, id);
      countItem(this.#report, { what: item.what, id, name }, state);
      if (reason !== undefined) addLine(this.#report, createChangedNote(item.source, reason));
      for (const { code, params, count } of leftOff) {
        addLine(this.#report, { level: "changed", source: item.source, ...importReason(code, params), count });
      }
      // The readers of other programs name what they leave out.
      if (this.#report.kind === "sillytavern") {
        for (const entry of unused) addLine(this.#report, createUnusedNote(item.source, entry));
      }
      if (assetCount) {
        addLine(this.#report, {
          level: "kept",
          source: item.source,
          ...importReason("files_in_card"),
          count: assetCount,
        });
      }
      if (item.what === "conversation" && state !== "present") this.#report.messages += item.messages.length;
    } catch (error) {
      // A failed item doesn't stop the import; a full disk does.
      if (!(error instanceof AppError) || error.code === "storage_full" || error.code === "internal") throw error;
      countItem(this.#report, item, "refused");
      addLine(this.#report, createRefusedNote(item.source, error));
    }
  }
}

/** Returns a value in which IDs are replaced, also as a part of an object; bytes stay as they are. */
function renameIds<T>(value: T, ids: ReadonlyMap<string, string>): T {
  if (typeof value === "string") return (ids.get(value) ?? value) as T;
  if (Array.isArray(value)) return value.map((each) => renameIds(each, ids)) as T;
  if (!isJsonObject(value) || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, renameIds(each, ids)])) as T;
}
