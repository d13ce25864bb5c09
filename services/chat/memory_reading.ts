/**
 * Reads idle chats for facts worth remembering, while no reply is running, and proposes them as notes. Only reads chats
 * that changed since the owner turned this on, and only their new messages. Temporary chats aren't stored, so they're
 * never read.
 */
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ConversationState } from "../conversations/conversation.ts";
import { getContentText, type Message } from "../conversations/message.ts";
import { AppError, getErrorTrace } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { ModelRouter } from "../llm/model_router.ts";
import { stripReasoning } from "../llm/reasoning.ts";
import { estimateTokens } from "../llm/token_count.ts";
import type { Log } from "../log.ts";
import type { MemoryScope } from "../memories/memory.ts";
import type { MemoryServices } from "../memories/memories.ts";
import { askForProposals, type ProposalQuestion } from "../memories/proposal_call.ts";
import { type CardSource, loadParticipants } from "../prompts/participants.ts";
import type { IdleQueue } from "./idle_tasks.ts";

/** Dependencies of MemoryReading. */
export interface MemoryReadingDeps extends MemoryServices {
  store: ConversationStore;
  blocks: BlockStore;
  idle: IdleQueue;
  modelRouter: ModelRouter;
  cards: CardSource;
  personas: { findName(id: string): Promise<string | undefined> };
  /** The user's name without a persona. */
  getOwnerName(): string;
  settings(): {
    memory_proposals: boolean;
    memory_idle_minutes: number;
    default_persona_id: string | null;
  };
  events: EventHub;
  log: Log;
  now(): number;
}

/** The messages to read in one call. */
interface Unread {
  messages: Message[];
  /** Whether more messages follow that don't fit into one call. */
  isCut: boolean;
}

const TIMEOUT_MS = 5 * 60 * 1000;
/** Maximum number of chats to queue at once. The others follow with the next check. */
const MAX_QUEUED = 4;
/** Maximum number of conversations per check, the most recently changed first. */
const MAX_CHECKED = 200;
/** Maximum number of message tokens in one call. */
const MAX_TOKENS = 8_000;
/** Share of the context for messages. The rest is for notes, the instruction and the reply. */
const CONTEXT_SHARE = 0.4;
const USUAL_CONTEXT = 4_096;
/** Number of failures after which a chat isn't read again until it changes. */
const MAX_FAILURES = 2;
const MAX_REMEMBERED = 1_000;

/** Reads chats and proposes notes. */
export class MemoryReading {
  readonly #deps: MemoryReadingDeps;
  /** Failures by chat and its last message. */
  readonly #failures = new Map<string, number>();

  readonly #unsubscribe: () => void;

  constructor(deps: MemoryReadingDeps) {
    this.#deps = deps;
    this.#unsubscribe = deps.events.subscribe(({ kind, id }) => {
      if (kind === "conversation") this.#withdraw(id);
    });
  }

  /** Stops listening for changes of chats. */
  close(): void {
    this.#unsubscribe();
  }

  /** Queues the chats that have been quiet for long enough. Called every minute. */
  async check(): Promise<void> {
    const { proposals, store, idle, settings, now, log } = this.#deps;
    const { memory_proposals: isEnabled, memory_idle_minutes: idleMinutes } = settings();
    const sinceMs = await proposals.settleReading(isEnabled);
    if (sinceMs === undefined) return;
    const quietMs = now() - idleMinutes * 60_000;
    let queued = 0;
    for (const { id, updated_at: updatedAtMs } of store.listSummaries(MAX_CHECKED)) {
      if (updatedAtMs < sinceMs || queued === MAX_QUEUED) break;
      if (updatedAtMs > quietMs) continue;
      const last = await this.#findUnread(id);
      if (last === undefined || (this.#failures.get(`${id} ${last}`) ?? 0) >= MAX_FAILURES) continue;
      queued++;
      idle.add(`memory ${id}`, {
        run: (signal) => this.#read(id, signal),
        onError: (error) => {
          this.#recordFailure(`${id} ${last}`);
          log("debug", "Couldn't read a chat for memories", { error: getErrorTrace(error) });
        },
      });
    }
  }

  /** Withdraws the proposals from a chat that the user excluded. */
  #withdraw(id: string): void {
    const { proposals, store, log } = this.#deps;
    if (!proposals.list().some(({ source }) => source?.conversationId === id)) return;
    try {
      if (store.find(id)?.head.learn !== false) return;
    } catch {
      return; // The head can't be read; the proposals stay.
    }
    proposals.withdraw(id).catch((error) =>
      log("error", "Couldn't withdraw proposals", { error: getErrorTrace(error) })
    );
  }

  /** Returns the last message of a chat if it may be read and hasn't been. */
  async #findUnread(id: string): Promise<string | undefined> {
    const { store, blocks, readMarks } = this.#deps;
    let state: ConversationState | undefined;
    try {
      state = store.find(id);
    } catch {
      return undefined; // The head can't be read, so it's unknown whether the chat may be read.
    }
    if (state === undefined || state.head.learn === false) return undefined;
    const row = blocks.findPrevious(id);
    const last = row && blocks.findReadableMessages(id, row)?.at(-1);
    if (last === undefined || last.status === "streaming") return undefined;
    return (await readMarks.find(id))?.head.messageId === last.id ? undefined : last.id;
  }

  async #read(id: string, stop: AbortSignal): Promise<void> {
    const { store, readMarks, modelRouter, settings } = this.#deps;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
    for (;;) {
      const state = store.find(id);
      if (state === undefined || state.head.learn === false || !settings().memory_proposals) return;
      const { connection_id: connectionId, model: conversationModel } = state.head;
      const { target, model } = await modelRouter.route({ connectionId, conversationModel }, signal);
      if (target.kind === "demo") return;
      const context = await modelRouter.client.readContextSize(target, model, signal).catch(() => undefined) ??
        target.contextSize ?? USUAL_CONTEXT;
      const budget = Math.min(MAX_TOKENS, context * CONTEXT_SHARE);
      const { messages, isCut } = this.#readUnread(id, (await readMarks.find(id))?.head.messageId, budget);
      const last = messages.at(-1);
      if (last === undefined) return;
      if (messages.some(isReadable)) {
        const question = await this.#createQuestion(state, messages, context * CONTEXT_SHARE / 2);
        const found = await askForProposals(
          modelRouter.client,
          { target, model, conversationId: id },
          question,
          signal,
        );
        // It may have been turned off, or the chat deleted, while the model was writing.
        const current = store.find(id);
        if (current === undefined || current.head.learn === false || !settings().memory_proposals) return;
        const persona = this.#getPersonaId(state);
        for (const { text, scope, replaces, messageId } of found) {
          await this.#deps.proposals.add({
            text,
            scope: toScope(scope, state.head.participants[0]?.character_id, persona),
            source: { conversationId: id, messageId },
            replaces,
          });
        }
      }
      await readMarks.put(id, () => ({ head: { messageId: last.id }, body: null }));
      if (!isCut) return;
    }
  }

  /** Reads the messages after a mark, as many as fit. If the marked message is gone, reads the newest ones that fit. */
  #readUnread(id: string, mark: string | undefined, budget: number): Unread {
    const { blocks } = this.#deps;
    const isMarked = mark !== undefined && blocks.findRow(id, mark) !== undefined;
    const messages: Message[] = [];
    let tokens = 0;
    if (!isMarked) {
      for (let row = blocks.findPrevious(id); row !== undefined; row = blocks.findPrevious(id, row)) {
        for (const message of (blocks.findReadableMessages(id, row) ?? []).toReversed()) {
          tokens += estimateMessageTokens(message);
          if (messages.length > 0 && tokens > budget) return { messages, isCut: false };
          messages.unshift(message);
        }
      }
      return { messages, isCut: false };
    }
    for (let row = blocks.findRow(id, mark); row !== undefined; row = blocks.next(id, row)) {
      const all = blocks.findReadableMessages(id, row) ?? [];
      for (const message of all.slice(all.findIndex((candidate) => candidate.id === mark) + 1)) {
        tokens += estimateMessageTokens(message);
        if (messages.length > 0 && tokens > budget) return { messages, isCut: true };
        messages.push(message);
      }
    }
    return { messages, isCut: false };
  }

  async #createQuestion(
    state: ConversationState,
    messages: readonly Message[],
    notesBudget: number,
  ): Promise<ProposalQuestion> {
    const { cards, personas, getOwnerName, proposals } = this.#deps;
    const personaId = this.#getPersonaId(state);
    const [participants, persona] = await Promise.all([
      loadParticipants(cards, state.head.participants).catch((error) => {
        if (error instanceof AppError) return [];
        throw error;
      }),
      personaId === undefined ? undefined : personas.findName(personaId),
    ]);
    const user = persona ?? getOwnerName();
    const characterId = participants[0]?.id;
    let left = notesBudget;
    const notes = proposals.listUsable().filter(({ fields: { scope } }) =>
      scope.kind === "everything" || (scope.kind === "persona" && scope.id === personaId) ||
      (scope.kind === "character" && scope.id === characterId)
    ).sort((a, b) => b.usedAtMs - a.usedAtMs).filter(({ fields }) => (left -= estimateTokens(fields.text) + 10) > 0);
    return {
      user,
      character: participants[0]?.name,
      hasPersona: personaId !== undefined,
      notes: notes.map(({ id, fields }) => ({ id, text: fields.text })),
      messages: messages.filter(isReadable).map((message) => ({
        id: message.id,
        name: message.role === "user"
          ? user
          : participants.find(({ id }) => id === message.character_id)?.name ?? participants[0]?.name ?? "Assistant",
        text: readText(message),
      })),
    };
  }

  #getPersonaId({ head }: ConversationState): string | undefined {
    return typeof head.persona_id === "string" && head.persona_id !== ""
      ? head.persona_id
      : this.#deps.settings().default_persona_id ?? undefined;
  }

  #recordFailure(key: string): void {
    if (this.#failures.size >= MAX_REMEMBERED) this.#failures.clear();
    this.#failures.set(key, (this.#failures.get(key) ?? 0) + 1);
  }
}

/** Returns the scope of notes: between character and persona. */
function toScope(
  kind: "everything" | "character" | "persona",
  characterId: string | undefined,
  personaId: string | undefined,
): MemoryScope {
  if (kind === "character" && characterId !== undefined) {
    return { kind, id: characterId, ...(personaId && { personaId }) };
  }
  if (kind === "persona" && personaId !== undefined) return { kind, id: personaId };
  return { kind: "everything" };
}

function isReadable(message: Message): boolean {
  const { role, hidden, status } = message;
  return (role === "user" || role === "assistant") && hidden !== true && status !== "failed" &&
    readText(message) !== "";
}

function readText({ content }: Message): string {
  return stripReasoning(getContentText(content)).trim();
}

function estimateMessageTokens(message: Message): number {
  return isReadable(message) ? estimateTokens(readText(message)) + 8 : 0;
}
