/** A conversation as the API shows it, without its messages, and the short form that lists use. */
import { AppError } from "../errors.ts";
import { type Message, textOfContent, withoutNulls } from "./message.ts";

/** Everything of a conversation that its owner may set, but the messages and the draft. Unknown fields are kept. */
export interface ConversationHead {
  title: string;
  participants: { character_id: string; muted?: boolean; talkativeness?: number }[];
  connection_id?: string;
  model?: string;
  pinned?: boolean;
  folder?: string;
  [field: string]: unknown;
}

/** What identifies one state of a conversation. */
export interface ConversationState {
  id: string;
  revision: number;
  createdAtMs: number;
  updatedAtMs: number;
  messageCount: number;
  head: ConversationHead;
}

/** One entry of `GET /api/conversations?view=summary`, but for `draft_version`, which changes by itself. */
export interface ConversationSummary {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  message_count: number;
  /** Begin of the last message. */
  snippet: string;
  character_ids: string[];
  pinned?: boolean;
  folder?: string;
}

/** What a client may hand in as a conversation. */
export interface ConversationInput {
  [field: string]: unknown;
}

/** Fields that the server computes or that live elsewhere; a client's values for them are not kept. */
const NOT_IN_HEAD = [
  "id",
  "revision",
  "created_at",
  "updated_at",
  "draft",
  "draft_version",
  "messages",
  "continuations",
  "character_id",
  "message_count",
  "damaged",
];
const SNIPPET_LENGTH = 160;
const TITLE_LENGTH = 60;

/**
 * Makes the head of a conversation from a client's document.
 *
 * @throws {AppError} `invalid_request` when `character_id` and the first participant differ.
 */
export function headFrom(input: ConversationInput): ConversationHead {
  const fields = withoutNulls(input) as ConversationHead & { character_id?: string };
  let participants = fields.participants ?? [];
  if (fields.character_id !== undefined) {
    if (participants.length === 0) participants = [{ character_id: fields.character_id }];
    else if (participants[0]!.character_id !== fields.character_id) {
      throw new AppError("invalid_request", "character_id differs from the first of participants; send one of the two");
    }
  }
  const head: ConversationHead = { ...fields, title: fields.title ?? "", participants };
  for (const field of NOT_IN_HEAD) delete head[field];
  return head;
}

/**
 * Gives a head with some fields changed; null clears one.
 *
 * @throws {AppError} `invalid_request` as `headFrom` does.
 */
export function patchHead(before: ConversationHead, patch: ConversationInput): ConversationHead {
  const { character_id: characterId, ...fields } = patch;
  if (characterId !== undefined && patch.participants === undefined) {
    // It stands for the first participant, the others stay.
    const first = typeof characterId === "string" ? [{ character_id: characterId }] : [];
    if (before.participants[0]?.character_id === characterId) return headFrom({ ...before, ...fields });
    return headFrom({ ...before, ...fields, participants: [...first, ...before.participants.slice(1)] });
  }
  return headFrom({ ...before, ...patch });
}

/** Gives the API's conversation without `messages`, as the text of an object that lacks its closing brace. */
export function headJson(state: ConversationState, draft: { text: string; version: number }): string {
  const object = {
    id: state.id,
    ...state.head,
    character_id: state.head.participants[0]?.character_id,
    created_at: new Date(state.createdAtMs).toISOString(),
    updated_at: new Date(state.updatedAtMs).toISOString(),
    revision: state.revision,
    draft: draft.text,
    draft_version: draft.version,
  };
  return JSON.stringify(object).slice(0, -1);
}

/** Gives the list entry of a conversation in this state. */
export function summaryOf(state: ConversationState, snippet: string): ConversationSummary {
  return {
    id: state.id,
    title: state.head.title,
    created_at: new Date(state.createdAtMs).toISOString(),
    updated_at: new Date(state.updatedAtMs).toISOString(),
    revision: state.revision,
    message_count: state.messageCount,
    snippet,
    character_ids: state.head.participants.map((participant) => participant.character_id),
    pinned: state.head.pinned,
    folder: state.head.folder,
  };
}

/** Gives the begin of a message for lists: one line, at most 160 characters. */
export function toSnippet(message: Message | undefined): string {
  return message === undefined ? "" : firstWords(textOfContent(message.content), SNIPPET_LENGTH);
}

/** Gives a title from the first thing that was said, without the marks of markdown. */
export function toTitle(text: string): string {
  return firstWords(text.replace(/\*\*|__|`|^\s*[#>]+\s/g, ""), TITLE_LENGTH);
}

function firstWords(text: string, length: number): string {
  const line = text.slice(0, length * 4).replace(/\s+/g, " ").trim();
  if (line.length <= length) return line;
  const cut = line.slice(0, length);
  const atWord = cut.lastIndexOf(" ");
  // A cut inside a surrogate pair would leave half a character.
  return (atWord > length / 2 ? cut.slice(0, atWord) : cut.replace(/[\uD800-\uDBFF]$/, "")) + "…";
}
