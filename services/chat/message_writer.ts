/** What is stored before a model is asked: the user's turn, and the place where the answer will stand. */
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { StatefulChatRequest } from "./chat_request.ts";
import { type ConversationState, titleFrom } from "../conversations/conversation.ts";
import type { Conversations } from "../conversations/conversations.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import {
  completeMessage,
  isEmptyAttempt,
  isEmptyFailure,
  type Message,
  textOfContent,
} from "../conversations/message.ts";
import { lineOf } from "../conversations/tree/message_tree.ts";
import { NOTHING_STORED } from "../conversations/revisions/revision_preparation.ts";
import { replyBegun } from "../conversations/reply_rows.ts";
import { withTrueSummary } from "../conversations/summary_validity.ts";
import { userTextOf, type VariantStore, withoutText } from "../conversations/variants.ts";

/** What writing a turn needs. */
export interface TurnParts {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  conversations: Conversations;
}

/** The run of a reply that is about to begin. */
export interface Run {
  messageId: string;
  generation: string;
  /** Absent where it isn't known yet. */
  model: string | undefined;
  now: number;
  /** Whose message the answer becomes, where it is a new one. */
  characterId?: string;
}

/** What was stored. */
export interface WrittenTurn {
  /** The user's turn, where the request brought one. */
  turn?: Message;
  /** Text and reasoning that the answer continues. */
  base: { text: string; reasoning: string };
  /** The message as it was, where its text is written again or continued. */
  previous?: Message;
}

/**
 * Stores turn and place in one atomic write; a new conversation comes into being with it. The caller holds the
 * conversation's turn.
 *
 * @param existing The conversation as it stands in that turn.
 * @throws {AppError} `conflict` when an id is taken, `not_found` or `invalid_request` when there is no such reply.
 */
export async function writeTurn(
  parts: TurnParts,
  request: StatefulChatRequest,
  run: Run,
  existing: ConversationState | undefined,
): Promise<WrittenTurn> {
  const { blocks, conversations } = parts;
  const id = request.conversationId;
  const isEdit = request.action === "edit";
  const turn = request.action === "send" || isEdit ? userTurnOf(request, run.now, existing) : undefined;
  if (turn?.id === run.messageId) {
    throw new AppError("invalid_request", "user_message_id and assistant_message_id are the same id");
  }
  // Of one that is there its own id is no question: the database takes no two that differ by letter case alone.
  if (existing === undefined) conversations.refuseCaseClash(id);
  const mids = [run.messageId, ...(turn === undefined ? [] : [turn.id])];
  const taken = existing === undefined ? new Set<string>() : blocks.taken(id, mids);
  const isNew = request.action === "send" || isEdit;
  if (!isNew || taken.has(run.messageId)) {
    return { turn, ...await rewrite(parts, request, run, existing) };
  }
  if (isEdit) {
    if (existing === undefined) throw new AppError("not_found", `There is no conversation "${id}"`);
    return { turn: await writeVersion(parts, request, run, existing), base: { text: "", reasoning: "" } };
  }
  if (turn !== undefined && taken.has(turn.id)) blocks.requireOnPath(id, turn.id);
  const isTurnThere = turn !== undefined && existing !== undefined && taken.has(turn.id);
  const place = placeOf(run);
  const added = turn === undefined || isTurnThere ? [place] : [turn, place];
  if (existing === undefined) await create(parts, request, run, added, turn);
  else {
    const touched = { added: added.map((message) => message.id) };
    const edit = { statements: blocks.append(id, added), last: turn ?? "unchanged" as const, touched };
    await conversations.write(named(existing, request), added.length, edit, [rowOf(id, run)]);
  }
  return { turn, base: { text: "", reasoning: "" } };
}

/** Gives the user's turn that the request brings: the last of its messages, if it is one. */
function userTurnOf(
  request: StatefulChatRequest,
  now: number,
  conversation: ConversationState | undefined,
): Message | undefined {
  const last = request.messages.at(-1);
  if (last?.role !== "user") return undefined;
  // Its id is the request's affair; everything else is stored as it was sent.
  const { id: _, mid: __, variants: ___, ...fields } = last;
  const input = { persona_id: conversation?.head.persona_id, ...fields };
  return completeMessage(input, request.userMessageId ?? uuidV7(), new Date(now).toISOString());
}

/** Makes the message that will hold the answer. */
function placeOf(run: Run): Message {
  // Both are named for good: who speaks later changes nothing of what was said.
  const input = { role: "assistant", model: run.model, character_id: run.characterId };
  return { ...completeMessage(input, run.messageId, isoTimeOf(run)), status: "streaming" };
}

/** Adds a version to a user message and makes it the active one, followed by the place of the answer alone. */
async function writeVersion(
  { blocks, conversations, variants }: TurnParts,
  request: StatefulChatRequest,
  run: Run,
  existing: ConversationState,
): Promise<Message> {
  const { conversationId: id, userMessageId: mid } = request;
  blocks.requireOnPath(id, mid!);
  const said = userTextOf(request.messages.at(-1)!, mid!, isoTimeOf(run));
  const kept: Statement[] = [];
  const n = blocks.messageOf(id, mid!).variant_count;
  const edit = blocks.switchVersion(id, mid!, n, (before) => {
    if (before.role !== "user") throw new AppError("invalid_request", `Message "${mid}" isn't a user message`);
    kept.push(...variants.keep(id, before));
    return {
      ...withoutText(before),
      ...said,
      ...{ status: "complete", updated_at: isoTimeOf(run), variant_count: n + 1, active_variant: n },
    };
  }, [placeOf(run)]);
  const next = withTrueSummary(blocks, named(existing, request), mid!);
  const change = { statements: edit.statements, last: edit.after, touched: edit.touched };
  await conversations.write(next, edit.messageCount - existing.messageCount, change, [...kept, rowOf(id, run)]);
  return edit.after;
}

/** Makes an existing message the place of the answer: to continue it, or to write it anew. */
async function rewrite(
  parts: TurnParts,
  request: StatefulChatRequest,
  run: Run,
  existing: ConversationState | undefined,
) {
  const { blocks, conversations, variants } = parts;
  const [id, mid] = [request.conversationId, run.messageId];
  if (existing === undefined) throw new AppError("not_found", `There is no conversation "${id}"`);
  blocks.requireOnPath(id, mid);
  const base = { text: "", reasoning: "" };
  const kept: Statement[] = [];
  let previous: Message | undefined;
  const isRetry = request.action === "send" || request.action === "edit";
  const edit = blocks.edit(id, mid, (before) => {
    if (isRetry && !isEmptyFailure(before)) {
      throw new AppError("conflict", `Message "${mid}" is already there and was not written by a reply`);
    }
    if (before.role !== "assistant") throw new AppError("invalid_request", `Message "${mid}" is no reply`);
    if (request.action === "continue") {
      base.text = textOfContent(before.content);
      base.reasoning = before.reasoning ?? "";
      previous = before;
      kept.push(...variants.keep(id, before));
      return { ...before, model: run.model ?? before.model, status: "streaming", error: undefined };
    }
    // What it said stays as a variant, unless that was nothing.
    if (isEmptyAttempt(before)) return emptied(before, run);
    previous = before;
    kept.push(...variants.keep(id, before));
    return { ...emptied(before, run), variant_count: before.variant_count + 1, active_variant: before.variant_count };
  });
  await conversations.write(existing, 0, edit, [...kept, rowOf(id, run, previous)]);
  return { base, previous };
}

async function create(
  parts: TurnParts,
  request: StatefulChatRequest,
  run: Run,
  added: Message[],
  turn: Message | undefined,
) {
  const { db, conversations } = parts;
  const id = request.conversationId;
  const state: ConversationState = {
    id,
    revision: 1,
    createdAtMs: run.now,
    updatedAtMs: run.now,
    messageCount: added.length,
    head: { title: titleFor(request), participants: [] },
  };
  const { statements } = await conversations.replacing(undefined, state, {
    tree: lineOf(added),
    standing: NOTHING_STORED,
    snippetOwner: turn,
  });
  await db.write([...statements, rowOf(id, run)]);
  conversations.publish(state);
}

/** A message about to be written anew, without what the last run left in it. */
function emptied(before: Message, run: Run): Message {
  const { reasoning: _, error: __, usage: ___, timings: ____, finish_reason: _____, tool_calls: ______, ...rest } =
    before;
  delete rest.lorebook_state;
  return { ...rest, content: "", model: run.model, status: "streaming", updated_at: isoTimeOf(run) };
}

function named(state: ConversationState, request: StatefulChatRequest): ConversationState {
  return state.head.title === "" ? { ...state, head: { ...state.head, title: titleFor(request) } } : state;
}

function titleFor(request: StatefulChatRequest): string {
  const said = request.messages.findLast((message) => message.role === "user");
  return titleFrom(textOfContent(said?.content));
}

function rowOf(conversationId: string, { messageId, generation, now }: Run, previous?: Message): Statement {
  return replyBegun({
    ...{ mid: messageId, conversation_id: conversationId, generation, started_at: now },
    previous_variant: previous?.active_variant ?? null,
  });
}

function isoTimeOf({ now }: Run): string {
  return new Date(now).toISOString();
}
