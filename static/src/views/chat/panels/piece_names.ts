/** Names of the parts of a prompt, and why parts aren't sent. */
import type { DroppedEntry } from "../../../api/types.ts";
import { texts } from "../../../texts/texts.ts";

/** Returns the name of a kind of part. */
export function getPieceName(part: string): string {
  const { pieces } = texts.chatOptions;
  return Object.hasOwn(pieces, part) ? pieces[part as keyof typeof pieces] : part;
}

/** Says why a lorebook entry wasn't sent. */
export function formatDropReason({ reason, key }: Pick<DroppedEntry, "reason" | "key">): string {
  const { missed, other, reasons } = texts.chatOptions;
  const why = Object.hasOwn(missed, reason) ? missed[reason as keyof typeof missed] : other;
  return key === undefined ? why : `${reasons.key(key)}; ${why}`;
}
