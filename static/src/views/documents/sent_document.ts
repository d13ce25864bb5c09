/** The words for how much of a document is sent: before Send from a preview, afterward from the message. */
import type { Message } from "../../api/types.ts";
import { parsePageList } from "../../state/chat/attachments.ts";
import { texts } from "../../texts/texts.ts";

/** What was sent of a document, or will be. */
type SentDocument = NonNullable<NonNullable<Message["documents"]>[number]["sent"]>;

/** The words, and whether some is left out. */
interface SentDescription {
  text: string;
  /** True if not all of it is sent. */
  isPart: boolean;
  /** True if less is sent than the user chose: not all of it, or not all chosen pages. */
  isCut: boolean;
}

/**
 * Describes what is sent of a document.
 *
 * @param chosen The pages that the user chose, such as `3-5,12`, if any.
 * @param isSent False before Send.
 */
export function describeSent(
  { pages = "", page_count: count = 0, unit = "page" }: SentDocument = {},
  chosen?: string | null,
  isSent = true,
): SentDescription {
  const { sent, fit, notSent, fitsNone } = texts.documents;
  const sentCount = parsePageList(pages)?.length ?? 0;
  const wanted = chosen ? parsePageList(chosen, count)?.length ?? count : count;
  const none = isSent ? notSent : fitsNone;
  return {
    text: sentCount === 0 ? none : (isSent ? sent : fit)[unit](sentCount, count),
    isPart: sentCount < count,
    isCut: sentCount < wanted,
  };
}
