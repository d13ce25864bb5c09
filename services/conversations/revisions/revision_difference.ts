/** Compares a revision of a conversation with its current state. */
import { isDeepStrictEqual } from "node:util";
import type { ConversationsDeps } from "../conversations.ts";
import type { ConversationHead, ConversationState } from "../conversation.ts";
import { type Message, textOfContent } from "../message.ts";
import { pathOf } from "../tree/message_tree.ts";
import { ROOT_SEGMENT } from "../tree/conversation_tree.ts";
import { openRevision, type RevisionRecord } from "./revision_store.ts";

/** One message that differs. `before` is its text in the revision, `after` its current text. */
export interface MessageDifference {
  id: string;
  role: string;
  change: "changed" | "removed" | "added";
  before?: string;
  after?: string;
}

/** What restoring a revision would change. */
export interface RevisionDifference {
  /** Names of the fields that differ. */
  fields: string[];
  /** In the order of the conversation, at most `MOST_MESSAGES`. */
  messages: MessageDifference[];
  /** How many more messages differ. */
  more: number;
}

/** Most messages in a response: enough to read, also if the whole conversation was replaced. */
const MOST_MESSAGES = 200;

/** Most characters of one text in a response. */
const MOST_CHARACTERS = 20_000;

/**
 * Lists what differs between a revision and the current state. The caller holds the conversation's lock.
 *
 * @throws {AppError} `internal` if a block of either can't be opened.
 */
export async function compareRevision(
  { blocks }: Pick<ConversationsDeps, "blocks">,
  state: ConversationState,
  record: RevisionRecord,
): Promise<RevisionDifference> {
  const { id } = state;
  if (record.removed !== undefined) {
    const { messages, segments = [], continuations = [], place } = record.removed;
    const home = place.segment ?? ROOT_SEGMENT;
    const lists = new Map([...segments.map((one) => [one.segment, one.messages] as const), [home, messages] as const]);
    const removed = pathOf({ segments: lists, continuations }, home);
    const taken = blocks.taken(id, removed.map((message) => message.id));
    return listed(removed.filter((message) => !taken.has(message.id)).map(removedOne));
  }
  if (record.edited !== undefined) {
    const row = blocks.rowAnywhere(id, record.edited.id);
    const now = row && blocks.messagesOf(id, row).find((message) => message.id === record.edited!.id);
    return listed(now === undefined ? [removedOne(record.edited)] : changedOnes([record.edited], [now]));
  }
  const fields = record.head === undefined ? [] : differingFields(record.head, state.head);
  if (record.blocks === undefined) return { ...listed([]), fields };
  if (record.continuations !== undefined || !blocks.tree(id).isLine) {
    const then = pathOf(await openRevision(blocks, id, record));
    const now = (await blocks.openPath(id)).flatMap(({ messages }) => messages);
    return { ...listed(changedOnes(then, now)), fields };
  }
  const rows = record.blocks.map((name) => blocks.version(id, name)).filter((row) => row !== undefined);
  const present = blocks.rows(id);
  // A block that is still in use has the same messages as before.
  const nameOf = (row: { id: number; version: number }) => `${row.id}/${row.version}`;
  const [then, now] = [new Set(rows.map(nameOf)), new Set(present.map(nameOf))];
  const open = async (list: typeof rows, others: Set<string>) =>
    (await blocks.openMany(id, list.filter((row) => !others.has(nameOf(row))))).flatMap(({ messages }) => messages);
  return { ...listed(changedOnes(await open(rows, now), await open(present, then))), fields };
}

function changedOnes(before: Message[], after: Message[]): MessageDifference[] {
  const now = new Map(after.map((message) => [message.id, message]));
  const then = new Set(before.map(({ id }) => id));
  const gone = before.flatMap((message) => {
    const present = now.get(message.id);
    if (present === undefined) return [removedOne(message)];
    if (isDeepStrictEqual(shownOf(message), shownOf(present))) return [];
    const { id, role } = message;
    return [{ id, role, change: "changed" as const, before: textIn(message), after: textIn(present) }];
  });
  const added = after.filter(({ id }) => !then.has(id)).map((message) => (
    { id: message.id, role: message.role, change: "added" as const, after: textIn(message) }
  ));
  return [...gone, ...added];
}

function removedOne(message: Message): MessageDifference {
  return { id: message.id, role: message.role, change: "removed", before: textIn(message) };
}

function listed(messages: MessageDifference[]): RevisionDifference {
  return { fields: [], messages: messages.slice(0, MOST_MESSAGES), more: Math.max(0, messages.length - MOST_MESSAGES) };
}

/** The fields of a message that a reader sees. Times and token counts don't count as a difference. */
function shownOf({ role, content, reasoning, hidden, character_id, persona_id, attachments }: Message): unknown {
  return [role, content, reasoning, hidden ?? false, character_id ?? null, persona_id ?? null, attachments ?? []];
}

function textIn({ content }: Message): string {
  return textOfContent(content).slice(0, MOST_CHARACTERS);
}

function differingFields(before: ConversationHead, after: ConversationHead): string[] {
  const [then, now] = [before as unknown as Record<string, unknown>, after as unknown as Record<string, unknown>];
  const names = new Set([...Object.keys(then), ...Object.keys(now)]);
  return [...names].filter((name) => !isDeepStrictEqual(then[name] ?? null, now[name] ?? null)).sort();
}
