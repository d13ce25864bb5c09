/** Estimates the memory of import items, so that few large ones are in memory together. */
import type { ImportedMessage, ImportedText, ImportStep } from "./import_item.ts";

/** Memory of a message without its texts. */
const MESSAGE_BYTES = 512;
const STEP_BYTES = 1024;

/** Larger conversations are sent, stored and counted one at a time. */
export const LARGE_BYTES = 2 * 1024 * 1024;

/** Estimates the bytes of an item: one byte per character of text. */
export function stepBytes(step: ImportStep): number {
  if (step.what === "attachment" || step.what === "document") return step.bytes.length;
  if (step.what === "voice") return step.audio.length;
  if (step.what === "character") return step.file.length + (step.avatar?.length ?? 0); // a path needs no memory
  if (step.what === "persona") return step.avatar?.length ?? 0;
  if (step.what !== "conversation") return STEP_BYTES;
  const all = [step.messages, ...(step.continuations ?? []).map(({ messages }) => messages)].flat();
  return all.reduce((sum, message) => sum + messageBytes(message), STEP_BYTES);
}

/** Estimates the bytes of a message with all its variants. */
export function messageBytes(message: ImportedMessage): number {
  let bytes = MESSAGE_BYTES + textBytes(message);
  for (const text of message.variants ?? []) bytes += textBytes(text);
  return bytes;
}

function textBytes({ content, reasoning = "" }: ImportedText): number {
  return reasoning.length + (typeof content === "string" ? content.length : stringBytes(content));
}

function stringBytes(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, item) => sum + stringBytes(item), 0);
}
