/** Puts together what a model is sent: fixed parts, and as much of the history as its context holds. */
import type { ChatMessage } from "../llm/chat_event.ts";
import { defaultMaxTokens } from "../llm/openai_request.ts";
import type { ContextSize, ContextSizes } from "./context_sizes.ts";
import type { CountedModel, TokenCounter } from "./token_counter.ts";

/** A note of the author, set into the history. */
export interface PromptNote {
  text: string;
  /** Messages that stand behind it. */
  depth: number;
  role?: string;
}

/** One message of the history. */
export interface PromptTurn {
  /** `undefined` for a turn that is not stored. */
  id?: string;
  message: ChatMessage;
}

/** What there is to send. */
export interface PromptSource {
  /** Names the conversation, so that its trimming stays where it was. */
  conversationId: string;
  systemPrompt?: string;
  note?: PromptNote;
  /** Newest first, hidden ones left out; read only as far as the context reaches. */
  history: Iterable<PromptTurn>;
}

/** What the sent has to fit into. */
export interface PromptLimits extends CountedModel {
  /** Tokens that the answer may take; what is sent when the request names none, unless given. */
  answerTokens?: number;
  /** Have the server count all messages, also where an estimate shows that there is room enough. */
  isExact?: boolean;
}

/** What a message of the prompt is. */
export type PromptPart = "system_prompt" | "note" | "history";

/** What is known of one message of a prompt. */
export interface PromptEntry {
  part: PromptPart;
  /** Where it is a stored message. */
  messageId?: string;
  message: ChatMessage;
  tokens: number;
}

/** What is sent, and what is known of it. */
export interface Prompt {
  messages: ChatMessage[];
  /** What each of `messages` is, and how many tokens it takes. */
  parts: PromptEntry[];
  tokens: number;
  /** True when the server's tokeniser counted. */
  isExact: boolean;
  contextSize: ContextSize;
  /** Tokens kept for the answer: what it may take, but half of the context at most. */
  answerTokens: number;
  /** Tokens the messages may take. */
  budget: number;
  /** True when older messages did not fit. */
  isTrimmed: boolean;
}

/** Estimates are off by this factor at worst once a ratio is learned; above it the tokeniser decides. */
const SURE = 1.35;
/** What is read of a history beyond what an estimate lets in, for the tokeniser to decide. */
const BEYOND = 1.5;
/**
 * Where trimming begins it takes away this share of the room, so that the next turns fit without another cut: what a
 * server has cached of the prompt stays good until then.
 */
const TRIM_TO = 0.75;
/** A cut is kept while what it leaves fills at least this share: a larger model shall see more. */
const WORTH_KEEPING = 0.5;
/** Conversations whose cut is remembered. */
const CUTS = 1_000;
/** Tokens that neither messages nor answer get: begin marks, and the template's opening of the answer. */
const MARGIN = 16;

/** Puts prompts together. */
export class Prompts {
  readonly #counter: TokenCounter;
  readonly #sizes: ContextSizes;
  /** The oldest message that was sent, by conversation; the cut used last stands last. */
  readonly #cuts = new Map<string, string>();

  constructor(counter: TokenCounter, sizes: ContextSizes) {
    this.#counter = counter;
    this.#sizes = sizes;
  }

  /** Gives what is known of messages that a client assembled itself; nothing of them changes. */
  async describe(messages: ChatMessage[], limits: PromptLimits, signal: AbortSignal): Promise<Prompt> {
    const contextSize = await this.#sizes.of(limits.target, limits.model);
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    const parts = messages.map((message, n) => ({ part: "history" as const, message, tokens: tokens[n]! }));
    return { ...promptOf(parts), isExact, contextSize, ...roomOf(contextSize, limits), isTrimmed: false };
  }

  /**
   * Assembles a prompt: system prompt, then the newest part of the history that fits, the note at its depth. The newest
   * message always goes out, even alone and too long: only the server can say that it does not fit.
   *
   * @param remembers False for a look that must not move the cut.
   * @throws The reason of `signal`, when that fired.
   */
  async assemble(source: PromptSource, limits: PromptLimits, signal: AbortSignal, remembers = true): Promise<Prompt> {
    const contextSize = await this.#sizes.of(limits.target, limits.model);
    const { budget, answerTokens } = roomOf(contextSize, limits);
    const system = this.#entry("system_prompt", "system", source.systemPrompt, limits.model);
    const note = this.#entry("note", source.note?.role ?? "system", source.note?.text, limits.model);
    const { turns, isWhole } = this.#read(source.history, limits.model, budget);
    const all = [...system, ...note, ...turns];
    const isSure = isWhole && total(all) * SURE <= budget;
    const isExact = (!isSure || limits.isExact === true) && await this.#count(all, limits, signal);

    const room = budget - total([...system, ...note]);
    const isFitting = isWhole && total(turns) <= room;
    const kept = isFitting ? turns.length : this.#cut(source.conversationId, turns, room, remembers);
    if (isFitting && remembers) this.#cuts.delete(source.conversationId);
    const history = turns.slice(0, kept).reverse();
    history.splice(Math.max(0, history.length - (source.note?.depth ?? 0)), 0, ...note);
    return {
      ...promptOf([...system, ...history]),
      ...{ isExact, contextSize, answerTokens, budget },
      isTrimmed: !isWhole || kept < turns.length,
    };
  }

  #entry(part: PromptPart, role: string, content: string | undefined, model: string): PromptEntry[] {
    if (!content) return [];
    const message = { role, content };
    return [{ part, message, tokens: this.#counter.estimate(message, model) }];
  }

  /** Puts counts in place of estimates. Gives whether all of them are the server's own. */
  async #count(entries: PromptEntry[], limits: PromptLimits, signal: AbortSignal): Promise<boolean> {
    const { tokens, isExact } = await this.#counter.count(entries.map(({ message }) => message), limits, signal);
    entries.forEach((entry, n) => entry.tokens = tokens[n]!);
    return isExact;
  }

  /** Reads the history from its end until an estimate says that no more can fit. */
  #read(history: Iterable<PromptTurn>, model: string, budget: number): { turns: PromptEntry[]; isWhole: boolean } {
    const turns: PromptEntry[] = [];
    let read = 0;
    for (const { id, message } of history) {
      if (turns.length > 0 && read > budget * BEYOND) return { turns, isWhole: false };
      const tokens = this.#counter.estimate(message, model);
      turns.push({ part: "history", messageId: id, message, tokens });
      read += tokens;
    }
    return { turns, isWhole: true };
  }

  /** Gives how many turns, newest first, are sent: as before while that fits, else few enough for some turns to come. */
  #cut(conversationId: string, turns: PromptEntry[], room: number, remembers: boolean): number {
    const before = this.#cuts.get(conversationId);
    let kept = before === undefined ? 0 : turns.findIndex(({ messageId }) => messageId === before) + 1;
    const asBefore = total(turns.slice(0, kept));
    if (kept === 0 || asBefore > room || asBefore < room * WORTH_KEEPING) kept = fewTurns(turns, room * TRIM_TO);
    const oldest = turns[kept - 1]?.messageId;
    if (remembers && oldest !== undefined) {
      this.#cuts.delete(conversationId);
      if (this.#cuts.size >= CUTS) this.#cuts.delete(this.#cuts.keys().next().value!);
      this.#cuts.set(conversationId, oldest);
    }
    return kept;
  }
}

/** Gives how many turns, newest first, fit; at least one, and where possible up to one of the user's. */
function fewTurns(turns: PromptEntry[], room: number): number {
  let count = 0;
  for (let used = 0; count < turns.length && (used += turns[count]!.tokens) <= room;) count++;
  // Some templates refuse a history that begins with an answer.
  const fromUser = turns.slice(0, count).findLastIndex(({ message }) => message.role === "user") + 1;
  return Math.max(1, fromUser || count);
}

function roomOf({ tokens, isAssumed }: ContextSize, { target, answerTokens }: PromptLimits) {
  const wanted = answerTokens ?? defaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, wanted), Math.floor(tokens / 2));
  return { answerTokens: answer, budget: Math.max(1, tokens - answer - MARGIN) };
}

function promptOf(parts: PromptEntry[]): Pick<Prompt, "messages" | "parts" | "tokens"> {
  return { messages: parts.map(({ message }) => message), parts, tokens: total(parts) };
}

function total(entries: readonly PromptEntry[]): number {
  return entries.reduce((sum, { tokens }) => sum + tokens, 0);
}
