/** The fields of a conversation without its messages, and the summary that lists show. */
import { AppError } from "../errors.ts";
import { type Message, textOfContent, withoutNulls } from "./message.ts";

/** The fields that a client may set, except the messages and the draft. Unknown fields are stored, too. */
export interface ConversationHead {
  title: string;
  participants: { character_id: string; muted?: boolean; talkativeness?: number }[];
  connection_id?: string;
  model?: string;
  pinned?: boolean;
  folder?: string;
  [field: string]: unknown;
}

/** One state of a conversation. */
export interface ConversationState {
  id: string;
  revision: number;
  createdAtMs: number;
  updatedAtMs: number;
  messageCount: number;
  head: ConversationHead;
}

/** One entry of `GET /api/conversations?view=summary`, without `draft_version`, which changes independently. */
export interface ConversationSummary {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  message_count: number;
  /** Beginning of the last message. */
  snippet: string;
  character_ids: string[];
  pinned?: boolean;
  folder?: string;
  /** It was copied from another conversation. Missing in rows of earlier versions. */
  is_branch?: boolean;
  /** The title is only the beginning of the character's greeting. Missing in rows of earlier versions. */
  has_greeting_title?: boolean;
}

/** A conversation as a client sends it. */
export interface ConversationInput {
  [field: string]: unknown;
}

/** Fields that the server computes or stores elsewhere. Values that a client sends for them are ignored. */
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
 * Creates the head of a conversation from a client's input.
 *
 * @throws {AppError} `invalid_request` if `character_id` and the first participant differ.
 */
export function parseHead(input: ConversationInput): ConversationHead {
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
 * Returns a head with some fields changed; null clears a field.
 *
 * @throws {AppError} `invalid_request` as `parseHead`.
 */
export function patchHead(before: ConversationHead, patch: ConversationInput): ConversationHead {
  const { character_id: characterId, ...fields } = patch;
  if (characterId !== undefined && patch.participants === undefined) {
    // It replaces the first participant. The others stay.
    const first = typeof characterId === "string" ? [{ character_id: characterId }] : [];
    if (before.participants[0]?.character_id === characterId) return parseHead({ ...before, ...fields });
    return parseHead({ ...before, ...fields, participants: [...first, ...before.participants.slice(1)] });
  }
  return parseHead({ ...before, ...patch });
}

/** Returns the conversation of the API without `messages`: JSON of an object without its closing brace. */
export function toHeadJson(state: ConversationState, draft: { text: string; version: number }): string {
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

/** Returns the list entry of a conversation. */
export function toSummary(
  state: ConversationState,
  snippet: string,
  hasGreetingTitle: boolean | undefined,
): ConversationSummary {
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
    is_branch: isBranch(state.head),
    has_greeting_title: hasGreetingTitle,
  };
}

/** Reports whether a conversation was copied from another one. */
export function isBranch(head: ConversationHead): boolean {
  return typeof (head.forked_from as { conversation_id?: unknown } | undefined)?.conversation_id === "string";
}

/** Shorter titles may begin like a greeting by chance, unless they were cut off. */
const MIN_GREETING_TITLE = 12;

/**
 * Reports whether a title is only the beginning of the greeting, as some programs name chats.
 *
 * @param first The first message of the conversation.
 */
export function isGreetingTitle(head: ConversationHead, first: Message | undefined): boolean {
  if (head.participants.length === 0 || first?.role !== "assistant") return false;
  const title = toComparable(head.title);
  const greeting = toComparable(textOfContent(first.content).slice(0, 2000));
  if (title === "" || !greeting.startsWith(title)) return false;
  return title === greeting || title.length >= MIN_GREETING_TITLE || /(…|\.\.\.)\s*$/.test(head.title);
}

/** Without Markdown, quotation marks and the dots of a cut. */
function toComparable(text: string): string {
  return text.replace(/[*_`#>"“”„«»「」~]/g, "").replace(/(…|\.\.\.)\s*$/, "").replace(/\s+/g, " ").trim()
    .toLowerCase();
}

/** Returns the beginning of a message for lists: one line of at most 160 characters. */
export function toSnippet(message: Message | undefined): string {
  return message === undefined ? "" : firstWords(textOfContent(message.content), SNIPPET_LENGTH);
}

/** Returns a title made of the first words of a text, without Markdown. */
export function toTitle(text: string): string {
  return firstWords(text.replace(/\*\*|__|`|^\s*[#>]+\s/g, ""), TITLE_LENGTH);
}

function firstWords(text: string, length: number): string {
  const line = text.slice(0, length * 4).replace(/\s+/g, " ").trim();
  if (line.length <= length) return line;
  const cut = line.slice(0, length);
  const atWord = cut.lastIndexOf(" ");
  // Don't cut inside a surrogate pair.
  return (atWord > length / 2 ? cut.slice(0, atWord) : cut.replace(/[\uD800-\uDBFF]$/, "")) + "…";
}
