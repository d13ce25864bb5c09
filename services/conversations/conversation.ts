/**
 * The fields of a conversation without its messages, their changes by the server, and the summaries that lists show.
 */
import { AppError } from "../errors.ts";
import { getContentText, type Message, withoutNulls } from "./message.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationStore, ListCursor } from "./conversation_store.ts";

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

/**
 * One entry of `GET /api/conversations?view=summary`, without `draft_version` and `unread`, which change independently of
 * it.
 */
export interface ConversationSummary {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  message_count: number;
  /** Start of the last message. */
  snippet: string;
  /** When the last message was made; without messages, the conversation. Missing in rows of earlier versions. */
  last_message_at?: string;
  character_ids: string[];
  pinned?: boolean;
  folder?: string;
  /** Whether it was copied from another conversation. Missing in rows of earlier versions. */
  is_branch?: boolean;
  /** Whether the title is only the start of the character's greeting. Missing in rows of earlier versions. */
  has_greeting_title?: boolean;
}

/** What lists show of the last message. `at` is `undefined` without messages and in rows of earlier versions. */
export interface LastMessage {
  snippet: string;
  at?: string;
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
  "image_sizes",
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
      throw new AppError(
        "invalid_request",
        "character_id differs from the first of participants. Send only one of the two",
      );
    }
  }
  const head: ConversationHead = { ...fields, title: fields.title ?? "", participants };
  for (const field of NOT_IN_HEAD) delete head[field];
  return head;
}

/**
 * Returns a head with some fields changed; null clears a field.
 *
 * @throws {AppError} `invalid_request` Like `parseHead`.
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
  { snippet, at }: LastMessage,
  hasGreetingTitle: boolean | undefined,
): ConversationSummary {
  const created_at = new Date(state.createdAtMs).toISOString();
  return {
    id: state.id,
    title: state.head.title,
    created_at,
    updated_at: new Date(state.updatedAtMs).toISOString(),
    revision: state.revision,
    message_count: state.messageCount,
    snippet,
    last_message_at: at ?? (state.messageCount === 0 ? created_at : undefined),
    character_ids: state.head.participants.map((participant) => participant.character_id),
    pinned: state.head.pinned,
    folder: state.head.folder,
    is_branch: isBranch(state.head),
    has_greeting_title: hasGreetingTitle,
  };
}

/** Reports whether a conversation was copied from another one. */
function isBranch(head: ConversationHead): boolean {
  return typeof (head.forked_from as { conversation_id?: unknown } | undefined)?.conversation_id === "string";
}

/**
 * Minimum length of a title that is compared with the greeting, unless it's truncated. Shorter titles may match by
 * chance.
 */
const MIN_GREETING_TITLE = 12;

/**
 * Reports whether a title is only the start of the greeting: some programs name chats like that.
 *
 * @param first The first message of the conversation.
 */
export function isGreetingTitle(head: ConversationHead, first: Message | undefined): boolean {
  if (head.participants.length === 0 || first?.role !== "assistant") return false;
  const title = toComparable(head.title);
  const greeting = toComparable(getContentText(first.content).slice(0, 2000));
  if (title === "" || !greeting.startsWith(title)) return false;
  return title === greeting || title.length >= MIN_GREETING_TITLE || /(…|\.\.\.)\s*$/.test(head.title);
}

/** Normalizes text for the comparison: removes Markdown, quotation marks and the dots of a truncation. */
function toComparable(text: string): string {
  return text.replace(/[*_`#>"“”„«»「」~]/g, "").replace(/(…|\.\.\.)\s*$/, "").replace(/\s+/g, " ").trim()
    .toLowerCase();
}

/** Returns the start of a message for lists: one line of at most 160 characters. */
export function toSnippet(message: Message | undefined): string {
  return message === undefined ? "" : firstWords(getContentText(message.content), SNIPPET_LENGTH);
}

/** Returns what lists show of the last message. */
export function toLastMessage(message: Message | undefined): LastMessage {
  return { snippet: toSnippet(message), at: message?.created_at };
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
  // Don't split a surrogate pair.
  return (atWord > length / 2 ? cut.slice(0, atWord) : cut.replace(/[\uD800-\uDBFF]$/, "")) + "…";
}

const DEFAULT_PAGE = 100;
/** Maximum number of conversations of earlier versions in the cache `#missingFieldsOf`. */
const MAX_MISSING_FIELDS = 10_000;

/** Lists the summaries of conversations: the fields that lists show, without messages. */
export class ConversationSummaries {
  readonly #store: ConversationStore;
  readonly #blocks: BlockStore;
  /** See `#formatMissingFields`. */
  readonly #missingFieldsOf = new Map<string, { revision: number; json: string }>();

  constructor({ store, blocks }: { store: ConversationStore; blocks: BlockStore }) {
    this.#store = store;
    this.#blocks = blocks;
  }

  /** Reads one page of summaries as JSON, newest first. The cursor is a position, so pages stay stable while conversations change. */
  async list(limit = DEFAULT_PAGE, cursor?: string): Promise<string> {
    const rows = this.#store.listSummaries(limit + 1, cursor === undefined ? undefined : parseCursor(cursor));
    const shown = rows.slice(0, limit);
    // A page of 500 takes about 4 ms; longer the first time with rows of earlier versions.
    const texts: string[] = [];
    for (const row of shown) {
      await yieldIfTickUsedUp();
      try {
        const text = this.#store.openSummary(row);
        const added = this.#formatMissingFields(row, text);
        const own = `"draft_version":${row.draft_version},"unread":${row.unread !== 0}`;
        texts.push(`${text.slice(0, -1)}${added},${own}}`);
      } catch {
        texts.push(JSON.stringify({ id: row.id, error: { code: "unreadable" } }));
      }
    }
    const last = shown.at(-1);
    const next = rows.length > limit && last !== undefined
      ? formatCursor({ updatedAtMs: last.updated_at, id: last.id })
      : null;
    return `{"items":[${texts.join(",")}],"next_cursor":${JSON.stringify(next)}}`;
  }

  /** Returns the fields that summaries of earlier versions lack, as JSON members after a comma. */
  #formatMissingFields({ id, revision }: { id: string; revision: number }, text: string): string {
    const hasNameFields = text.includes('"has_greeting_title":');
    const hasTime = text.includes('"last_message_at":');
    if (hasNameFields && hasTime) return "";
    const known = this.#missingFieldsOf.get(id);
    if (known?.revision === revision) return known.json;
    let json = "";
    try {
      if (!hasTime) json += `,"last_message_at":${JSON.stringify(this.#readLastMessageAt(id))}`;
      if (!hasNameFields) json += this.#formatNameFields(id);
    } catch {
      // The rest of the summary is readable.
    }
    if (this.#missingFieldsOf.size >= MAX_MISSING_FIELDS) this.#missingFieldsOf.clear();
    this.#missingFieldsOf.set(id, { revision, json });
    return json;
  }

  #formatNameFields(id: string): string {
    const { head } = this.#store.get(id);
    const block = head.title === "" || head.participants.length === 0 ? undefined : this.#blocks.next(id);
    const first = block === undefined ? undefined : this.#blocks.openMessages(id, block)[0];
    return `,"is_branch":${isBranch(head)},"has_greeting_title":${isGreetingTitle(head, first)}`;
  }

  /** Falls back to the time of the last change if the last messages can't be read. */
  #readLastMessageAt(id: string): string {
    const { createdAtMs, updatedAtMs } = this.#store.get(id);
    try {
      return this.#blocks.findLast(id)?.created_at ?? new Date(createdAtMs).toISOString();
    } catch {
      return new Date(updatedAtMs).toISOString();
    }
  }
}

function formatCursor(at: ListCursor): string {
  return `${at.updatedAtMs}.${at.id}`;
}

function parseCursor(text: string): ListCursor {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (match === null) throw new AppError("invalid_request", "Invalid cursor: it isn't from a list of conversations");
  return { updatedAtMs: Number(match[1]), id: match[2]! };
}
