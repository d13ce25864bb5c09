/**
 * Proposals of notes: facts that a model found in a chat, until the owner accepts or dismisses them, and the tool with
 * which a model proposes notes. Decisions are remembered, so that the same fact isn't proposed again.
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

/** A proposal before it's stored. */
export interface ProposalInput {
  text: string;
  scope: MemoryScope;
  source?: MemorySource;
  /** ID of the note that it contradicts. */
  replaces?: string;
}

/** State of a proposal. */
export type ProposalState = "open" | "accepted" | "dismissed";

/** Stored fields of a proposal. */
export interface ProposalFields extends ProposalInput {
  state: ProposalState;
  /** ID of the note created from it. */
  memoryId?: string;
}

/** An open proposal. */
export interface Proposal extends ProposalInput {
  id: string;
  createdAtMs: number;
}

/** The owner's decision. */
export interface ProposalDecision {
  decision: "accept" | "dismiss";
  /** Text to use instead of the proposed one. */
  text?: string;
  scope?: MemoryScope;
}

/** Result of a model's proposal. */
export type ProposalOutcome = "proposed" | "known" | "decided" | "invalid" | "full";

/** When reading of chats started, and which notes were confirmed by chats. */
export interface MemoryUse {
  /** Only chats that changed after this time are read; in milliseconds since 1970. */
  sinceMs: number | null;
  /** When a chat last confirmed a note, by note ID. */
  confirmed: Record<string, number>;
  /** Permission of the tool with which the model proposes notes; by default it doesn't ask. */
  toolPermission?: ToolPermission;
}

/** Dependencies of `MemoryProposals`. */
export interface MemoryProposalsDeps {
  memories: Memories;
  store: DocumentStore<ProposalFields, null>;
  use: SealedSetting<MemoryUse>;
  now(): number;
}

/** Maximum number of open proposals, so that a model that proposes everything doesn't flood the list. */
const MAX_OPEN = 200;
/** Maximum number of remembered decisions. */
const MAX_DECIDED = 2_000;
/** Length of a note's random ID in bytes. It's short, because each reply lists the IDs of its notes. */
const ID_BYTES = 9;

/** Stores and decides proposals. */
export class MemoryProposals {
  readonly #deps: MemoryProposalsDeps;
  readonly #lock = new Mutex();

  constructor(deps: MemoryProposalsDeps) {
    this.#deps = deps;
  }

  /** Lists the open proposals, newest first. */
  list(): Proposal[] {
    return this.#listAll("open").map(({ id, createdAtMs, head: { text, scope, source, replaces } }) => ({
      id,
      createdAtMs,
      text,
      scope,
      source,
      // The note may no longer exist.
      replaces: replaces !== undefined && this.#deps.memories.find(replaces) !== undefined ? replaces : undefined,
    }));
  }

  /** Lists all proposals, decided ones too, newest first. Unreadable ones have no fields. */
  listStored(): { id: string; createdAtMs: number; fields: ProposalFields | undefined }[] {
    return this.#deps.store.list().map(({ id, createdAtMs, head: fields }) => ({ id, createdAtMs, fields }));
  }

  /**
   * Stores a proposal of an export, open or decided. Does nothing if there is one with its ID.
   *
   * @throws {AppError} `unprocessable` if too many are open
   */
  async import(id: string, head: ProposalFields, createdAtMs?: number): Promise<void> {
    await this.#lock.run(async () => {
      if (this.#deps.store.list().some((one) => one.id === id)) return;
      if (head.state === "open" && this.#listAll("open").length >= MAX_OPEN) {
        throw new AppError("unprocessable", "too many proposals are waiting");
      }
      await this.#deps.store.put(id, () => ({ head, body: null, createdAtMs }));
      await this.#forgetOldest();
    });
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

  /** Adds a proposal, unless a note, another proposal or an earlier decision states the same. Never changes a note. */
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
   * Accepts or dismisses a proposal. If it contradicts a note, accepting it changes that note.
   *
   * @returns The note; `undefined` for a dismissed proposal.
   * @throws {AppError} `not_found`; `conflict` if another decision was made; `invalid_request` for an empty or long
   *   text
   */
  decide(id: string, { decision, text, scope }: ProposalDecision): Promise<Memory | undefined> {
    return this.#lock.run(async () => {
      const { memories, store } = this.#deps;
      const { head } = await store.get(id);
      const newState: ProposalState = decision === "accept" ? "accepted" : "dismissed";
      if (head.state !== "open") {
        if (head.state !== newState) throw new AppError("conflict", `The proposal "${id}" was already ${head.state}`);
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
      const decided = { ...head, state: newState, ...(memory && { memoryId: memory.id }) } satisfies ProposalFields;
      await store.put(id, () => ({ head: decided, body: null }));
      await this.#forgetOldest();
      return memory;
    });
  }

  /** Withdraws the proposals from a chat that is deleted or excluded. Decisions stay. */
  withdraw(conversationId: string): Promise<void> {
    return this.#lock.run(async () => {
      for (const { id, head } of this.#listAll("open")) {
        if (head.source?.conversationId === conversationId) await this.#deps.store.delete(id);
      }
    });
  }

  /**
   * Returns the time since which chats are read. If reading was off before, that is now.
   *
   * @param isEnabled Whether the owner has turned reading on.
   */
  async settleReading(isEnabled: boolean): Promise<number | undefined> {
    const { use, now } = this.#deps;
    const { sinceMs } = use.load().content;
    if (!isEnabled) {
      if (sinceMs !== null) await use.change((before) => ({ ...before, sinceMs: null }));
      return undefined;
    }
    if (sinceMs !== null) return sinceMs;
    return (await use.change((before) => ({ ...before, sinceMs: now() }))).content.sinceMs ?? undefined;
  }

  #listAll(state: ProposalState) {
    return this.#deps.store.list().flatMap(({ head, ...frame }) => head?.state === state ? [{ ...frame, head }] : []);
  }

  /** Records that a chat confirmed notes. Such notes are the last ones to be dropped from a full budget. */
  async #confirm(ids: readonly string[]): Promise<void> {
    const { use, memories, now } = this.#deps;
    const existing = new Set(memories.list().map(({ id }) => id));
    await use.change((before) => {
      const remaining = Object.entries(before.confirmed).filter(([id]) => existing.has(id));
      return { ...before, confirmed: Object.fromEntries([...remaining, ...ids.map((id) => [id, now()] as const)]) };
    });
  }

  async #forgetOldest(): Promise<void> {
    const decided = [...this.#listAll("dismissed"), ...this.#listAll("accepted")].sort((a, b) =>
      b.updatedAtMs - a.updatedAtMs
    );
    for (const { id } of decided.slice(MAX_DECIDED)) await this.#deps.store.delete(id);
  }
}

/** Returns whether a note applies to all chats that a proposal would apply to. */
function coversScope(note: MemoryScope, proposal: MemoryScope): boolean {
  if (note.kind === "everything") return true;
  const isSamePersona = note.personaId === undefined || note.personaId === proposal.personaId;
  return note.kind === proposal.kind && note.id === proposal.id && isSamePersona;
}

/** Server ID of the tool. */
const MEMORY_SERVER_ID = "memory";

/** The chat of a tool call. */
export interface ToolChat {
  /** False if no notes may be proposed from it. */
  learns: boolean;
  characterId?: string;
  personaId?: string;
}

/** Dependencies of the tool. */
export interface MemoryToolDeps {
  proposals: MemoryProposals;
  use: SealedSetting<MemoryUse>;
  /** Returns whether the owner wants proposals. */
  isEnabled(): boolean;
  /** Finds a chat; `undefined` if it no longer exists. */
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

const RESULT_TEXTS: Record<ProposalOutcome, string> = {
  proposed: "Proposed. The user will decide.",
  known: "There is such a memory or proposal already.",
  decided: "The user has decided about this before.",
  invalid: "The text is empty or too long.",
  full: "Too many proposals are waiting for the user.",
};

/**
 * A tool with which a model proposes notes during a chat. It only adds a proposal, which the owner accepts or
 * dismisses, so it's allowed without asking. Offered while proposals are on.
 */
export class MemoryTool implements ToolSource {
  readonly #deps: MemoryToolDeps;

  constructor(deps: MemoryToolDeps) {
    this.#deps = deps;
  }

  listTools(): Promise<{ tools: Tool[]; unavailable: [] }> {
    return Promise.resolve({ tools: this.#deps.isEnabled() ? [this.#create()] : [], unavailable: [] });
  }

  findTool(serverId: string, name: string): Promise<Tool | undefined> {
    const isThis = serverId === MEMORY_SERVER_ID && name === NAME && this.#deps.isEnabled();
    return Promise.resolve(isThis ? this.#create() : undefined);
  }

  async callTool(_tool: Tool, args: JsonObject, { conversationId, messageId }: ToolCallOptions): Promise<ToolOutput> {
    const { proposals, findChat, isEnabled } = this.#deps;
    if (!isEnabled()) throw new AppError("not_found", "Memory proposals are off");
    const { text, scope } = args;
    const chat = conversationId === undefined ? undefined : await findChat(conversationId);
    if (chat === undefined || !chat.learns) return toOutput("Nothing is remembered from this chat.", true);
    if (typeof text !== "string") return toOutput(RESULT_TEXTS.invalid, true);
    const outcome = await proposals.add({
      text,
      scope: scope === "character" ? toCharacterScope(chat) : { kind: "everything" },
      source: { conversationId: conversationId!, messageId },
    });
    return toOutput(RESULT_TEXTS[outcome], outcome === "invalid");
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
