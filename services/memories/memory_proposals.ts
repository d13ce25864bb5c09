/**
 * Proposals of notes: what a model noticed in a chat, until the owner accepts or dismisses it, and the tool by which it
 * proposes one. Decided ones are remembered, so that the same is not proposed again.
 */
import { Mutex } from "../async/locks.ts";
import { randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { DocumentStore } from "../storage/documents/document_store.ts";
import type { SealedSetting } from "../storage/documents/sealed_document.ts";
import type { Tool, ToolCallOptions, ToolOutput, ToolPermission, ToolSource } from "../tools/tool_registry.ts";
import type { Memories } from "./memories.ts";
import {
  isSameStatement,
  MAX_MEMORY_TEXT,
  type Memory,
  type MemoryScope,
  type MemorySource,
  parseMemoryText,
  type UsableMemory,
} from "./memory.ts";
import { createHash } from "node:crypto";
import type { JsonObject } from "../json/type_guards.ts";

/** A proposal before it is stored. */
export interface ProposalInput {
  text: string;
  scope: MemoryScope;
  source?: MemorySource;
  /** Id of the note that it contradicts. */
  replaces?: string;
}

/** How a proposal stands. */
export type ProposalState = "open" | "accepted" | "dismissed";

/** What is stored of a proposal. */
export interface ProposalFields extends ProposalInput {
  state: ProposalState;
  /** The note that it became. */
  memoryId?: string;
}

/** A proposal that waits. */
export interface Proposal extends ProposalInput {
  id: string;
  createdAtMs: number;
}

/** How the owner decides. */
export interface ProposalDecision {
  decision: "accept" | "dismiss";
  /** Instead of the proposed one. */
  text?: string;
  scope?: MemoryScope;
}

/** What became of a proposal that a model made. */
export type ProposalOutcome = "proposed" | "known" | "decided" | "invalid" | "full";

/** When the reading of chats began, and which notes chats confirmed. */
export interface MemoryUse {
  /** Chats that changed later are read; in milliseconds since 1970. */
  sinceMs: number | null;
  /** When a chat last said the same as a note, by its id. */
  confirmed: Record<string, number>;
  /** Whether the model may propose notes by a tool; by default without asking. */
  toolPermission?: ToolPermission;
}

/** Dependencies of `MemoryProposals`. */
export interface MemoryProposalsDeps {
  memories: Memories;
  store: DocumentStore<ProposalFields, null>;
  use: SealedSetting<MemoryUse>;
  now(): number;
}

/** Proposals that wait. A model that proposes everything doesn't fill the inbox. */
const MAX_OPEN = 200;
/** Decided ones that are remembered. */
const MAX_DECIDED = 2_000;
/** Bytes of the random id of a note: short, because each reply names the notes that it was written with. */
const ID_BYTES = 9;

/** Stores and decides proposals. */
export class MemoryProposals {
  readonly #deps: MemoryProposalsDeps;
  readonly #lock = new Mutex();

  constructor(deps: MemoryProposalsDeps) {
    this.#deps = deps;
  }

  /** Lists the proposals that wait, newest first. */
  list(): Proposal[] {
    return this.#listAll("open").map(({ id, createdAtMs, head: { text, scope, source, replaces } }) => ({
      id,
      createdAtMs,
      text,
      scope,
      source,
      // The note may be gone by now.
      replaces: replaces !== undefined && this.#deps.memories.find(replaces) !== undefined ? replaces : undefined,
    }));
  }

  /** Lists the readable notes, with the time of their last use. */
  listUsable(): UsableMemory[] {
    const { confirmed } = this.#deps.use.load().content;
    return this.#deps.memories.list().flatMap((memory) => {
      const { id, fields, updatedAtMs } = memory;
      const usedAtMs = Math.max(updatedAtMs, confirmed[id] ?? 0);
      return fields === undefined ? [] : [{ ...memory, fields, usedAtMs }];
    });
  }

  /** Adds a proposal, unless a note, another proposal or an earlier decision says the same. Never changes a note. */
  add(input: ProposalInput): Promise<ProposalOutcome> {
    return this.#lock.run(async () => {
      let text: string;
      try {
        text = parseMemoryText(input.text);
      } catch (error) {
        if (error instanceof AppError) return "invalid";
        throw error;
      }
      const known = this.#deps.memories.list().filter(({ fields }) =>
        fields !== undefined && coversScope(fields.scope, input.scope) && isSameStatement(fields.text, text)
      );
      if (known.length > 0) {
        await this.#confirm(known.map(({ id }) => id));
        return "known";
      }
      const open = this.#listAll("open");
      if (open.some(({ head }) => isSameStatement(head.text, text))) return "known";
      const decided = [...this.#listAll("dismissed"), ...this.#listAll("accepted")];
      if (decided.some(({ head }) => isSameStatement(head.text, text))) return "decided";
      if (open.length >= MAX_OPEN) return "full";
      const isReplacing = input.replaces !== undefined && this.#deps.memories.find(input.replaces) !== undefined;
      const { scope, source, replaces } = input;
      const head: ProposalFields = { text, scope, source, ...(isReplacing && { replaces }), state: "open" };
      await this.#deps.store.put(randomToken(ID_BYTES), () => ({ head, body: null }));
      return "proposed";
    });
  }

  /**
   * Accepts or dismisses a proposal. Accepting one that contradicts a note changes that note.
   *
   * @returns The note; `undefined` for a dismissed one.
   * @throws {AppError} `not_found`; `conflict` if it was decided otherwise; `invalid_request` for an empty or long text
   */
  decide(id: string, { decision, text, scope }: ProposalDecision): Promise<Memory | undefined> {
    return this.#lock.run(async () => {
      const { memories, store } = this.#deps;
      const { head } = await store.get(id);
      const wanted: ProposalState = decision === "accept" ? "accepted" : "dismissed";
      if (head.state !== "open") {
        if (head.state !== wanted) throw new AppError("conflict", `The proposal "${id}" was ${head.state} already`);
        return head.memoryId === undefined ? undefined : await memories.get(head.memoryId);
      }
      let memory: Memory | undefined;
      if (decision === "accept") {
        const replaced = head.replaces === undefined ? undefined : memories.find(head.replaces);
        memory = await memories.put(replaced?.id ?? randomToken(ID_BYTES), {
          text: text ?? head.text,
          scope: scope ?? replaced?.fields.scope ?? head.scope,
          source: head.source ?? null,
        });
      }
      const decided = { ...head, state: wanted, ...(memory && { memoryId: memory.id }) };
      await store.put(id, () => ({ head: decided, body: null }));
      await this.#forgetOldest();
      return memory;
    });
  }

  /** Forgets the proposals from a chat that is deleted or shall not be learned from. Decisions stay. */
  withdraw(conversationId: string): Promise<void> {
    return this.#lock.run(async () => {
      for (const { id, head } of this.#listAll("open")) {
        if (head.source?.conversationId === conversationId) await this.#deps.store.delete(id);
      }
    });
  }

  /** Returns since when chats are read, and remembers now if they weren't before. @param isWanted Whether the owner wants it. */
  async settleReading(isWanted: boolean): Promise<number | undefined> {
    const { use, now } = this.#deps;
    const { sinceMs } = use.load().content;
    if (!isWanted) {
      if (sinceMs !== null) await use.change((before) => ({ ...before, sinceMs: null }));
      return undefined;
    }
    if (sinceMs !== null) return sinceMs;
    return (await use.change((before) => ({ ...before, sinceMs: now() }))).content.sinceMs ?? undefined;
  }

  #listAll(state: ProposalState) {
    return this.#deps.store.list().flatMap(({ head, ...frame }) => head?.state === state ? [{ ...frame, head }] : []);
  }

  /** A fact that comes up again makes its note the last to fall out of a full budget. */
  async #confirm(ids: readonly string[]): Promise<void> {
    const { use, memories, now } = this.#deps;
    const existing = new Set(memories.list().map(({ id }) => id));
    await use.change((before) => {
      const kept = Object.entries(before.confirmed).filter(([id]) => existing.has(id));
      return { ...before, confirmed: Object.fromEntries([...kept, ...ids.map((id) => [id, now()] as const)]) };
    });
  }

  async #forgetOldest(): Promise<void> {
    const decided = [...this.#listAll("dismissed"), ...this.#listAll("accepted")].sort((a, b) =>
      b.updatedAtMs - a.updatedAtMs
    );
    for (const { id } of decided.slice(MAX_DECIDED)) await this.#deps.store.delete(id);
  }
}

/** Whether a note is sent wherever a proposal would be. */
function coversScope(note: MemoryScope, proposal: MemoryScope): boolean {
  if (note.kind === "everything") return true;
  const isSamePersona = note.personaId === undefined || note.personaId === proposal.personaId;
  return note.kind === proposal.kind && note.id === proposal.id && isSamePersona;
}

/** Id of the tool's server. */
const MEMORY_SERVER_ID = "memory";

/** The chat that a call comes from. */
export interface ToolChat {
  /** False if nothing shall be learned from it. */
  learns: boolean;
  characterId?: string;
  personaId?: string;
}

/** Dependencies of the tool. */
export interface MemoryToolDeps {
  proposals: MemoryProposals;
  use: SealedSetting<MemoryUse>;
  /** Whether the owner wants proposals. */
  isWanted(): boolean;
  /** Finds a chat; `undefined` if it's gone. */
  findChat(id: string): Promise<ToolChat | undefined>;
}

const NAME = "propose_memory";
const DESCRIPTION =
  "Proposes a short note to remember in later chats: a lasting fact about the user, a preference, or something to come " +
  "back to. The user decides whether it is kept. Use it rarely, and never for passwords or numbers of cards and accounts.";
const INPUT_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    text: { type: "string", description: "One fact in one short sentence", minLength: 1, maxLength: MAX_MEMORY_TEXT },
    scope: {
      type: "string",
      enum: ["everything", "character"],
      description: "character: only between the user and the character of this chat",
    },
  },
  required: ["text"],
  additionalProperties: false,
};
const FINGERPRINT = createHash("sha256").update(JSON.stringify([DESCRIPTION, INPUT_SCHEMA])).digest("hex");

const ANSWERS: Record<ProposalOutcome, string> = {
  proposed: "Proposed. The user will decide.",
  known: "There is such a note or proposal already.",
  decided: "The user has decided about this before.",
  invalid: "The text is empty or too long.",
  full: "Too many proposals are waiting for the user.",
};

/**
 * A tool by which a model proposes a note in the middle of a chat. It only adds a proposal, which the owner accepts or
 * dismisses, so it is allowed without asking. Offered while proposals are on.
 */
export class MemoryTool implements ToolSource {
  readonly #deps: MemoryToolDeps;

  constructor(deps: MemoryToolDeps) {
    this.#deps = deps;
  }

  listTools(): Promise<{ tools: Tool[]; unavailable: [] }> {
    return Promise.resolve({ tools: this.#deps.isWanted() ? [this.#create()] : [], unavailable: [] });
  }

  findTool(serverId: string, name: string): Promise<Tool | undefined> {
    const isThis = serverId === MEMORY_SERVER_ID && name === NAME && this.#deps.isWanted();
    return Promise.resolve(isThis ? this.#create() : undefined);
  }

  async callTool(_tool: Tool, args: JsonObject, { conversationId, messageId }: ToolCallOptions): Promise<ToolOutput> {
    const { proposals, findChat, isWanted } = this.#deps;
    if (!isWanted()) throw new AppError("not_found", "Proposals of notes are off");
    const { text, scope } = args;
    const chat = conversationId === undefined ? undefined : await findChat(conversationId);
    if (chat === undefined || !chat.learns) return toOutput("Nothing is remembered from this chat.", true);
    if (typeof text !== "string") return toOutput(ANSWERS.invalid, true);
    const outcome = await proposals.add({
      text,
      scope: scope === "character" ? toCharacterScope(chat) : { kind: "everything" },
      source: { conversationId: conversationId!, messageId },
    });
    return toOutput(ANSWERS[outcome], outcome === "invalid");
  }

  async setPermission(_tool: Tool, toolPermission: ToolPermission): Promise<void> {
    await this.#deps.use.change((before) => ({ ...before, toolPermission }));
  }

  #create(): Tool {
    return {
      serverId: MEMORY_SERVER_ID,
      serverName: "Memory",
      name: NAME,
      description: DESCRIPTION,
      inputSchema: INPUT_SCHEMA,
      hints: { readOnly: false, destructive: false },
      permission: this.#deps.use.load().content.toolPermission ?? "allow",
      fingerprint: FINGERPRINT,
    };
  }
}

function toCharacterScope({ characterId, personaId }: ToolChat): MemoryScope {
  if (characterId === undefined) return { kind: "everything" };
  return { kind: "character", id: characterId, ...(personaId && { personaId }) };
}

function toOutput(text: string, isError: boolean): ToolOutput {
  return { parts: [{ type: "text", text }], isError, truncated: false };
}
