/** The versions of messages that a client sends with a whole conversation. A message without versions keeps the stored ones. */
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import { isoTime, type Message, type MessageContent, type MessageInput } from "./message.ts";
import type { VariantRecord, VariantStore, VariantText } from "./variants.ts";

/** A version as a client sends it. Its index is its number. */
export interface VariantInput {
  content: MessageContent;
  reasoning?: string | null;
  model?: string | null;
  created_at?: string | null;
}

/** A message with its new versions. */
export interface InputTexts {
  message: Message;
  /** All versions but the active one. */
  others: VariantText[];
}

/** A change of the rows of versions. */
export interface TextChange {
  statements: Statement[];
  /** Messages whose versions change. */
  mids: string[];
  /** All rows that the statements replace, for the revision. */
  replaced: VariantText[];
}

/** No change. */
export const NO_TEXT_CHANGE: TextChange = { statements: [], mids: [], replaced: [] };

/** Returns the versions of a client's message, if it has any. */
export function getInputVariants({ variants }: MessageInput): VariantInput[] | undefined {
  return Array.isArray(variants) ? variants as VariantInput[] : undefined;
}

/**
 * Adds the versions of a client's message. `content` wins over the active version.
 *
 * @param message The message without versions.
 * @param now ISO 8601, UTC.
 * @throws {AppError} `invalid_request` if `active_variant` isn't one of them.
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
    const reason = `Message "${message.id}" has ${texts.length} variants, so active_variant can't be ${active}`;
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
    others: texts.flatMap((text, n) => n === active ? [] : [{ mid: message.id, n, record: toRecord(text, now) }]),
  };
}

/** Returns the change from the stored versions to the client's. Equal versions stay, with their other fields. */
export async function changeTexts(store: VariantStore, id: string, inputs: InputTexts[]): Promise<TextChange> {
  if (inputs.length === 0) return NO_TEXT_CHANGE;
  const rows = await store.openMany(store.rowsOf(id, inputs.map(({ message }) => message.id)));
  const stored = Map.groupBy(rows, ({ mid }) => mid);
  const change: TextChange = { statements: [], mids: [], replaced: [] };
  for (const { message, others } of inputs) {
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

function toRecord({ content, reasoning, model, created_at }: VariantInput, now: string): VariantRecord {
  return {
    content,
    ...(reasoning != null && { reasoning }),
    ...(model != null && { model }),
    status: "complete",
    updated_at: isoTime(created_at) ?? now,
  };
}

/** Whether two versions look the same in a list. */
function isSame(stored: VariantRecord | undefined, input: VariantRecord): boolean {
  const shown = (record: VariantRecord) => [record.content, record.reasoning, record.model, record.updated_at];
  return stored !== undefined && JSON.stringify(shown(stored)) === JSON.stringify(shown(input));
}
