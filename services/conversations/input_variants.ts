/** Texts of messages that a client hands in with a whole conversation; without any, the stored ones stay. */
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import { isoTime, type Message, type MessageContent, type MessageInput } from "./message.ts";
import type { VariantRecord, VariantStore, VariantText } from "./variants.ts";

/** One text as a client hands it in; its place among the others is its number. */
export interface VariantInput {
  content: MessageContent;
  reasoning?: string | null;
  model?: string | null;
  created_at?: string | null;
}

/** A message with the texts that it is to have. */
export interface InputTexts {
  message: Message;
  /** All but the active one. */
  others: VariantText[];
}

/** What becomes of the rows of texts. */
export interface TextChange {
  statements: Statement[];
  /** Messages whose texts change. */
  mids: string[];
  /** All rows of the messages whose texts the statements replace, for the revision that may bring them back. */
  replaced: VariantText[];
}

/** Nothing becomes of them. */
export const NO_TEXT_CHANGE: TextChange = { statements: [], mids: [], replaced: [] };

/** Gives the texts that a client hands in with a message, if it does. */
export function getInputVariants({ variants }: MessageInput): VariantInput[] | undefined {
  return Array.isArray(variants) ? variants as VariantInput[] : undefined;
}

/**
 * Gives a message the texts that came with it. What stands in `content` counts more than the same text among them.
 *
 * @param message As it is without them.
 * @param now ISO 8601, UTC.
 * @throws {AppError} `invalid_request` when `active_variant` is none of them.
 */
export function withInputTexts(
  message: Message,
  input: MessageInput,
  texts: VariantInput[],
  now: string,
): InputTexts {
  const active = typeof input.active_variant === "number" ? input.active_variant : 0;
  const shown = texts[active];
  if (shown === undefined) {
    const reason = `Message "${message.id}" comes with ${texts.length} variants, and not with one numbered ${active}`;
    throw new AppError("invalid_request", reason);
  }
  const { content, reasoning, model } = shown;
  return {
    message: {
      ...message,
      content: input.content ?? content,
      ...(input.content == null && reasoning != null && { reasoning }),
      ...(input.content == null && model != null && { model }),
      variant_count: texts.length,
      active_variant: active,
    },
    others: texts.flatMap((text, n) => n === active ? [] : [{ mid: message.id, n, record: recordOf(text, now) }]),
  };
}

/** Tells how the stored texts become the given ones; texts that are the same stay as they lie, with all that is known of them. */
export async function changeTexts(store: VariantStore, id: string, given: InputTexts[]): Promise<TextChange> {
  if (given.length === 0) return NO_TEXT_CHANGE;
  const rows = await store.openMany(store.rowsOf(id, given.map(({ message }) => message.id)));
  const stored = Map.groupBy(rows, ({ mid }) => mid);
  const change: TextChange = { statements: [], mids: [], replaced: [] };
  for (const { message, others } of given) {
    const before = stored.get(message.id) ?? [];
    const records = new Map(before.map(({ n, record }) => [n, record]));
    const changed = others.filter(({ n, record }) => !isSame(records.get(n), record));
    const isShorter = before.some(({ n }) => n >= message.variant_count);
    if (changed.length === 0 && !isShorter) continue;
    change.mids.push(message.id);
    change.replaced.push(...before);
    change.statements.push(store.removeFrom(id, message.id, message.variant_count), ...store.restore(id, changed));
  }
  return change;
}

function recordOf({ content, reasoning, model, created_at }: VariantInput, now: string): VariantRecord {
  return {
    content,
    ...(reasoning != null && { reasoning }),
    ...(model != null && { model }),
    status: "complete",
    updated_at: isoTime(created_at) ?? now,
  };
}

/** Compares what a list of texts shows of each. */
function isSame(stored: VariantRecord | undefined, given: VariantRecord): boolean {
  const shown = (record: VariantRecord) => [record.content, record.reasoning, record.model, record.updated_at];
  return stored !== undefined && JSON.stringify(shown(stored)) === JSON.stringify(shown(given));
}
