/**
 * Proposals of notes: what a model noticed in a chat, until the owner accepts or dismisses it. Decided ones are remembered, so
 * that the same is not proposed again.
 */
import { Mutex } from "../async/locks.ts";
import { randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { DocumentStore } from "../storage/documents/document_store.ts";
import type { SealedSetting } from "../storage/documents/sealed_json.ts";
import type { ToolPermission } from "../tools/tool_registry.ts";
import type { Memories } from "./memories.ts";
import {
  type Memory,
  type MemoryScope,
  type MemorySource,
  parseMemoryText,
  saysTheSame,
  type UsableMemory,
} from "./memory.ts";

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
    return this.#all("open").map(({ id, createdAtMs, head: { text, scope, source, replaces } }) => ({
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
        fields !== undefined && coversScope(fields.scope, input.scope) && saysTheSame(fields.text, text)
      );
      if (known.length > 0) {
        await this.#confirm(known.map(({ id }) => id));
        return "known";
      }
      const open = this.#all("open");
      if (open.some(({ head }) => saysTheSame(head.text, text))) return "known";
      const decided = [...this.#all("dismissed"), ...this.#all("accepted")];
      if (decided.some(({ head }) => saysTheSame(head.text, text))) return "decided";
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
      for (const { id, head } of this.#all("open")) {
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

  #all(state: ProposalState) {
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
    const decided = [...this.#all("dismissed"), ...this.#all("accepted")].sort((a, b) => b.updatedAtMs - a.updatedAtMs);
    for (const { id } of decided.slice(MAX_DECIDED)) await this.#deps.store.delete(id);
  }
}

/** Whether a note is sent wherever a proposal would be. */
function coversScope(note: MemoryScope, proposal: MemoryScope): boolean {
  if (note.kind === "everything") return true;
  const isSamePersona = note.personaId === undefined || note.personaId === proposal.personaId;
  return note.kind === proposal.kind && note.id === proposal.id && isSamePersona;
}
