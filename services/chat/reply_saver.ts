/** Saves replies. A failed attempt to rewrite a reply never replaces the earlier text. */
import { delay } from "../async/delay.ts";
import type { ConversationWriter } from "../conversations/conversation_writer.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ConversationReader } from "../conversations/conversation_reader.ts";
import {
  getReplyText,
  type Message,
  type MessageError,
  type MessageStatus,
  withoutReply,
} from "../conversations/message.ts";
import { createEndStatement, deleteResumeRow } from "../conversations/live_replies.ts";
import type { VariantStore } from "../conversations/variants.ts";
import { AppError, getErrorMessage, getErrorTrace } from "../errors.ts";
import type { Log } from "../log.ts";
import type { SentDocument } from "../prompts/document_choice.ts";
import { type Prompt, replacesHistory } from "../prompts/prompt.ts";
import type { Statement } from "../storage/database/database.ts";
import type { Reply } from "./reply.ts";

/** Maximum number of blocks, and of lorebook entries, that a reply lists as left out. */
const MAX_LEFT_OUT = 100;

/** Dependencies of `ReplySaver`. */
export interface ReplySaverDeps {
  store: ConversationStore;
  conversationWriter: ConversationWriter;
  reader: ConversationReader;
  variants: VariantStore;
  log: Log;
  now(): number;
  /** Delay before a reply that couldn't be saved is saved again. */
  retryMs?: number;
}

const RETRY_MS = 5000;

/** Saves replies. */
export class ReplySaver {
  readonly #deps: ReplySaverDeps;
  readonly #closing = new AbortController();

  constructor(deps: ReplySaverDeps) {
    this.#deps = deps;
  }

  /** Makes `save` give up after its next failure. */
  stopRetrying(): void {
    this.#closing.abort();
  }

  /** Saves the message of an ended reply. Retries until that succeeds; until then, the text is in the journal. */
  async save(reply: Reply, prompt?: Prompt): Promise<void> {
    const { store, conversationWriter, variants, log, now } = this.#deps;
    const { conversationId, messageId } = reply;
    const { loreState = {}, documents = [], memories } = prompt ?? {};
    const extra = {
      ...(Object.keys(loreState).length > 0 && { lorebook_state: loreState }),
      ...(documents.length > 0 &&
        { documents: documents.map(toSentJson).map((sent) => ({ id: sent.id, use: sent.use, sent })) }),
      // Only IDs: deleting a note removes its text everywhere.
      ...(prompt !== undefined && { memories: memories?.sent.map(({ id }) => id) }),
    };
    if (extra.memories?.length === 0) extra.memories = undefined;
    const contextUse = prompt?.parts.some(({ messageId }) => messageId !== undefined)
      ? this.#toContextUse(conversationId, prompt)
      : undefined;
    for (;;) {
      try {
        const time = new Date(now()).toISOString();
        const statements: Statement[] = [
          createEndStatement(conversationId, messageId, now()),
          deleteResumeRow(conversationId, messageId),
          // Stopping a reply counts as reading it.
          reply.isFollowed || reply.end?.status === "stopped"
            ? store.markRead(conversationId)
            : store.markUnread(conversationId, now()),
        ];
        let saved: Message | undefined;
        await conversationWriter.editMessage(conversationId, messageId, (before) => {
          const ended = {
            ...reply.getFinalMessage(before),
            ...extra,
            ...(contextUse && { context_use: contextUse }),
            updated_at: time,
          };
          const settled = settleAttempt(variants, conversationId, ended, reply.previousVariant, time);
          statements.push(...settled.statements);
          return saved = settled.message;
        }, {
          byReply: true,
          withRounds: true,
          extraStatements: () => statements,
          written: () => reply.markSaved(saved!),
        });
        break;
      } catch (error) {
        if (error instanceof AppError && error.code === "not_found") break;
        log("error", "Couldn't save a reply", { error: getErrorTrace(error) });
        reply.markUnsaved(error, new Date(now()).toISOString());
        if (this.#closing.signal.aborted) return; // The text is in the journal.
        await delay(this.#deps.retryMs ?? RETRY_MS, this.#closing.signal).catch(() => {});
      }
    }
    await reply.journal.settle();
    if (prompt !== undefined && documents.length > 0) await this.#saveSent(conversationId, prompt);
  }

  /** Describes how a prompt filled the context and what it left out, in the API's format. */
  #toContextUse(conversationId: string, prompt: Prompt) {
    const { contextSize, tokens, replyTokens, parts, isTrimmed } = prompt;
    const sums = new Map<string, number>();
    for (const entry of parts) {
      for (const { part, tokens } of entry.pieces ?? [entry]) sums.set(part, (sums.get(part) ?? 0) + tokens);
    }
    const oldest = isTrimmed ? parts.find(({ messageId }) => messageId !== undefined)?.messageId : undefined;
    const leftOut = {
      ...(oldest !== undefined && { messages: this.#deps.reader.countBefore(conversationId, oldest) }),
      ...listLeftOut(prompt),
    };
    return {
      size: contextSize.tokens,
      ...(contextSize.isAssumed && { assumed: true }),
      tokens,
      reply_tokens: replyTokens,
      parts: [...sums].map(([kind, tokens]) => ({ kind, tokens })),
      ...(oldest !== undefined && { first_message_id: oldest }),
      ...(Object.keys(leftOut).length > 0 && { left_out: leftOut }),
    };
  }

  /** Records in the user's message which parts of its documents were sent. */
  async #saveSent(conversationId: string, { documents, parts }: Pick<Prompt, "documents" | "parts">): Promise<void> {
    const { conversationWriter, reader, log } = this.#deps;
    const userMessageId = parts.findLast(({ part, message }) => part === "history" && message.role === "user")
      ?.messageId;
    if (userMessageId === undefined) return;
    const sent = new Map(documents.map((document) => [document.id, toSentJson(document)]));
    try {
      const before = reader.readMessage(conversationId, userMessageId).documents;
      if (!Array.isArray(before) || !before.some(({ id }) => sent.has(id))) return;
      await conversationWriter.editMessage(conversationId, userMessageId, (message) => ({
        ...message,
        documents: before.map((use) => sent.has(use.id) ? { ...use, sent: sent.get(use.id) } : use),
      }), { byReply: true });
    } catch (error) {
      // Not essential: the reply itself is saved.
      log("warn", "Can't record which pages of documents were sent", { error: getErrorMessage(error) });
    }
  }
}

/** Converts a sent document to the API's format. */
export function toSentJson({ id, name, use, pages, pageCount, unit, tokens, error }: SentDocument) {
  return { id, name, use, pages, page_count: pageCount, unit, tokens, ...(error && { error }) };
}

/** Lists the blocks, lorebook entries and notes that weren't sent, in the API's format. */
function listLeftOut({ leftOut, droppedLore, memories }: Prompt) {
  // What stands for earlier messages isn't missing while they're sent themselves.
  const pieces = leftOut.filter((block) => !replacesHistory(block));
  return {
    ...(pieces.length > 0 && {
      pieces: pieces.slice(0, MAX_LEFT_OUT).map(({ part, title, tokens }) => ({
        kind: part,
        ...(title !== undefined && { title }),
        tokens,
      })),
    }),
    ...(droppedLore.length > 0 && {
      lorebook_entries: droppedLore.slice(0, MAX_LEFT_OUT).map(({ bookName, title, reason, key }) => ({
        lorebook_name: bookName,
        entry_name: title,
        reason,
        ...(key !== undefined && { key }),
      })),
    }),
    ...(memories.leftOut.length > 0 && { memories: memories.leftOut }),
  };
}

/** The last attempt to rewrite a reply, if it failed. Part of the message until the next success. */
interface LastAttempt {
  /** Absent in messages of earlier versions. */
  action?: "regenerate" | "continue";
  status: MessageStatus;
  error?: MessageError;
  /** When it ended; ISO 8601, UTC. */
  created_at: string;
}

/** A message at the end of a reply. */
export interface SavedMessage {
  message: Message;
  statements: Statement[];
}

/**
 * Settles a message that was rewritten or continued.
 *
 * If the attempt failed or was interrupted, the earlier text stays active and `last_attempt` contains the reason. The
 * attempt's text, if any, becomes an inactive version. If the user stopped the attempt, its text becomes active, unless
 * it's empty.
 *
 * @param attempt The message at the end of the reply.
 * @param previous Number of the version that was active before; `null` for the reply to a new message.
 * @param now ISO 8601, UTC.
 */
export function settleAttempt(
  variants: VariantStore,
  conversationId: string,
  attempt: Message,
  previous: number | null,
  now: string,
): SavedMessage {
  const { last_attempt: _, ...settled } = attempt as Message;
  if (previous === null || attempt.status === "complete") return { message: settled as Message, statements: [] };
  const record = variants.find(conversationId, attempt.id, previous);
  if (record === undefined) return { message: attempt, statements: [] };
  const isContinued = previous === attempt.active_variant;
  // Tool calls are worth a version: they may have changed something.
  const hasText = getReplyText(attempt) !== (isContinued ? getReplyText(record) : "") ||
    (attempt.tool_rounds?.length ?? 0) !== (isContinued ? record.tool_rounds?.length ?? 0 : 0);
  if (hasText && (isContinued || attempt.status === "stopped")) return { message: settled as Message, statements: [] };
  const before = variants.switchTo(conversationId, attempt, previous);
  const message: Message = {
    ...before,
    variant_count: isContinued || hasText ? attempt.variant_count : attempt.variant_count - 1,
  };
  if (attempt.status !== "stopped") {
    const { status, error } = attempt;
    const action = isContinued ? "continue" : "regenerate";
    message.last_attempt = { action, status, ...(error && { error }), created_at: now } satisfies LastAttempt;
  }
  return { message, statements: hasText ? variants.keep(conversationId, { ...attempt, updated_at: now }) : [] };
}

/** Returns the failed attempt of a message as a message, so that clients that follow the attempt get its text and its end. */
export function getLastAttempt(variants: VariantStore, conversationId: string, message: Message): Message {
  const attempt = message.last_attempt as LastAttempt | undefined;
  if (attempt === undefined) return message;
  const n = message.variant_count - 1;
  const record = n === message.active_variant ? undefined : variants.find(conversationId, message.id, n);
  const isItsText = record?.updated_at === attempt.created_at;
  return {
    ...withoutReply(message),
    content: "",
    ...(isItsText && record),
    status: attempt.status,
    error: attempt.error,
  } as Message;
}
