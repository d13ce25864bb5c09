/** Says how replies ended. */
import type { Message } from "../../api/types.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { getContentText } from "./message_text.ts";
import { getFailureTitle } from "./reply_failure.ts";

/** Returns how a reply ended; `undefined` if it's complete or still running. */
export function describeEnding(message: Message): string | undefined {
  const { status, finish_reason: reason, output_limit: limit, error, last_attempt: attempt } = message;
  const t = texts.chat;
  if (status === "streaming") return undefined;
  const hasText = getContentText(message.content) !== "";
  if (attempt) return hasText ? getAttemptTitle(attempt) : getFailureTitle(attempt.error);
  if (status === "failed") return getFailureTitle(error);
  if (status === "stopped") return t.stopped;
  if (status === "interrupted") return error?.code === "exported" ? t.unfinishedExport : t.interrupted;
  if (reason === "length") {
    if (hasText) return limit === undefined ? t.cutOffPlain : t.cutOff(formatNumber(limit));
    return limit === undefined ? t.thinkingUsedAllPlain : t.thinkingUsedAll(formatNumber(limit));
  }
  if (hasText) return reason === "content_filter" ? t.blocked : undefined;
  return message.tool_calls?.length ? undefined : t.empty;
}

/** Returns how a reply ended, with the cause of a failure, in whole sentences. */
export function announceEnding(message: Message): string {
  const ending = describeEnding(message);
  if (ending === undefined) return message.status === "streaming" ? "" : texts.chat.replyDone;
  const error = message.last_attempt?.error ?? (message.status === "failed" ? message.error : undefined);
  const cause = message.last_attempt ? getFailureTitle(error) : undefined;
  const parts = [ending, cause, error?.message].filter((part) => part !== undefined && part !== "");
  return [...new Set(parts)].map((part) => /[.!?。！？]$/.test(part!) ? part : `${part}${texts.chat.period}`).join(" ");
}

/** What failed to change the reply that is shown. */
export function getAttemptTitle({ action, status }: NonNullable<Message["last_attempt"]>): string {
  const { attemptFailed, attemptInterrupted, continueFailed, continueInterrupted } = texts.chat;
  if (action === "continue") return status === "interrupted" ? continueInterrupted : continueFailed;
  return status === "interrupted" ? attemptInterrupted : attemptFailed;
}
