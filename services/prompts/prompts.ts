/** Assembles what a model is sent: blocks, and as much of the history as fits the context. */
import type { ChatMessage } from "../llm/chat_event.ts";
import { getDefaultMaxTokens } from "../llm/provider.ts";
import type { ContextSize, ContextSizes } from "./tokens/context_sizes.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { DroppedLore } from "./lorebook_scan.ts";
import type { NotExpanded } from "./macros/macro_budget.ts";
import { NO_BLOCKS, type PromptBlock, type PromptBlocks } from "./prompt_blocks.ts";
import {
  type Counted,
  insertAtDepths,
  type PromptEntry,
  squashSystemMessages,
  toPromptEntries,
} from "./prompt_messages.ts";
import type { CountedModel, TokenCounter } from "./tokens/token_counter.ts";
import { sumTokens, TrimPoints } from "./trimming.ts";

/** One message of the history. */
export interface PromptMessage {
  /** `undefined` for a message that isn't stored. */
  id?: string;
  message: ChatMessage;
  /** Creation time in milliseconds since 1970. */
  atMs?: number;
  /** Lorebook state after this message. */
  loreState?: ActivationState;
}

/** The part of the history that composition can see. */
export interface HistoryWindow {
  /** Newest first, slightly more than fits the context. */
  messages: readonly PromptMessage[];
  /** Tokens available for all messages. */
  budget: number;
  /** Estimates the tokens of a text. */
  countTokens(text: string): number;
  model: string;
  /** False for previews, which leave all state unchanged. */
  updatesState: boolean;
}

/** The blocks of a prompt, and what was dropped. */
export interface ComposedPrompt {
  blocks: PromptBlocks;
  droppedLore?: DroppedLore[];
  /** See `PromptLayout`. */
  squashesSystem?: boolean;
  /** Stored with the reply; see lorebook_scan.ts. */
  loreState?: ActivationState;
  /** Fields whose macros exceed the budget. */
  notExpanded?: NotExpanded[];
}

/** What to send. */
export interface PromptSource {
  /** Identifies the trim point. */
  conversationId: string;
  /** Composes the blocks; absent for a prompt without blocks. */
  compose?(seen: HistoryWindow, signal: AbortSignal): Promise<ComposedPrompt>;
  /** Newest first, without hidden messages. Only read as far as the context reaches. */
  history: Iterable<PromptMessage>;
  /** True if the newest message is the start of the reply. */
  continuesLast?: boolean;
}

/** Token limits of a prompt. */
export interface PromptLimits extends CountedModel {
  /** Maximum tokens of the reply; by default the value sent for requests without one. */
  answerTokens?: number;
  /** Maximum tokens of prompt and reply, if lower than the model's context. */
  contextTokens?: number;
  /** Counts all messages with the server's tokenizer, even if an estimate shows that they fit. */
  isExact?: boolean;
}

/** A prompt and its token counts. */
export interface Prompt {
  messages: ChatMessage[];
  /** Describes each of `messages`. */
  parts: PromptEntry[];
  tokens: number;
  /** True if the server's tokenizer counted. */
  isExact: boolean;
  contextSize: ContextSize;
  /** Tokens reserved for the reply: its maximum, but at most half of the context. */
  answerTokens: number;
  /** Tokens available for messages. */
  budget: number;
  /** True if older messages were dropped. */
  isTrimmed: boolean;
  /** Blocks that didn't fit or weren't needed. */
  leftOut: Counted[];
  droppedLore: DroppedLore[];
  loreState?: ActivationState;
  /** Fields sent as written, because their macros exceed the budget. */
  notExpanded: NotExpanded[];
}

type CountedBlocks = { [K in "leading" | "trailing"]: Counted[] } & {
  inserted: Counted<PromptBlocks["inserted"][number]>[];
  prefill: Counted[];
};

/** Estimates are off by at most this factor once a ratio is learned. Closer to the limit, the tokenizer decides. */
const ESTIMATE_ERROR = 1.35;
/** How far to read beyond the estimated limit, so that the tokenizer can decide. */
const READ_AHEAD = 1.5;
/** Reserved for the tokens of the template around the messages. */
const MARGIN = 16;

/** Assembles prompts. */
export class Prompts {
  readonly #counter: TokenCounter;
  readonly #sizes: ContextSizes;
  readonly #trimPoints = new TrimPoints();

  constructor(counter: TokenCounter, sizes: ContextSizes) {
    this.#counter = counter;
    this.#sizes = sizes;
  }

  /** Describes messages that a client assembled itself. They aren't changed. */
  async describe(messages: ChatMessage[], limits: PromptLimits, signal: AbortSignal): Promise<Prompt> {
    const contextSize = await this.#sizes.lookUp(limits.target, limits.model);
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    const parts = messages.map((message, n) => ({ part: "history" as const, message, tokens: tokens[n]! }));
    const nothing = { isTrimmed: false, leftOut: [], droppedLore: [], notExpanded: [] };
    return { ...toPrompt(parts), isExact, contextSize, ...computeBudget(contextSize, limits), ...nothing };
  }

  /**
   * Assembles a prompt from blocks and the newest part of the history that fits. The newest message is always sent,
   * even if it's too long by itself: only the server can tell.
   *
   * If not everything fits, all examples are dropped first, then the oldest messages
   * (docs/protocols/cards.md#prompt-order). A summary is sent only in place of dropped messages.
   *
   * @param remembers False for previews, which must not move the trim point.
   * @throws The reason of `signal` if aborted.
   */
  async assemble(source: PromptSource, limits: PromptLimits, signal: AbortSignal, remembers = true): Promise<Prompt> {
    const contextSize = await this.#sizes.lookUp(limits.target, limits.model);
    const { budget, answerTokens } = computeBudget(withContextLimit(contextSize, limits), limits);
    const { read, turns, isWhole } = this.#read(source.history, limits.model, budget);
    const composed = await source.compose?.(this.#toWindow(read, budget, limits, remembers), signal);
    const blocks = this.#estimate(composed?.blocks ?? NO_BLOCKS, limits.model);
    const { leading, inserted, trailing, prefill } = blocks;
    const all = [...leading, ...inserted, ...trailing, ...prefill];
    const isSure = isWhole && (sumTokens(all) + sumTokens(turns)) * ESTIMATE_ERROR <= budget;
    const isExact = (!isSure || limits.isExact === true) && await this.#count(all, turns, limits, signal);

    const continued = source.continuesLast ? turns.splice(0, 1) : [];
    const room = budget - sumTokens(all.filter((block) => !isOptional(block) && !replacesHistory(block))) -
      sumTokens(continued);
    const isFitting = isWhole && sumTokens(turns) <= room;
    const hasExtras = isFitting && sumTokens(turns) + sumTokens(all.filter(isOptional)) <= room;
    const roomBesideStandIns = room - sumTokens(leading.filter(replacesHistory));
    const kept = isFitting
      ? turns.length
      : this.#trimPoints.choose(source.conversationId, turns, roomBesideStandIns, remembers);
    if (isFitting && remembers) this.#trimPoints.forget(source.conversationId);
    const isSent = (block: Counted) => isOptional(block) ? hasExtras : replacesHistory(block) ? !isFitting : true;
    const history = turns.slice(0, kept).reverse();
    const separate = [
      ...toPromptEntries(leading.filter(isSent), true),
      ...insertAtDepths(history, inserted.filter(isSent)),
      ...toPromptEntries(trailing.filter(isSent)),
      ...toPromptEntries(prefill),
      ...continued,
    ];
    const parts = composed?.squashesSystem ? squashSystemMessages(separate) : separate;
    return {
      ...toPrompt(parts),
      isExact,
      contextSize,
      answerTokens,
      budget,
      isTrimmed: !isWhole || kept < turns.length,
      leftOut: all.filter((block) => !isSent(block)),
      droppedLore: composed?.droppedLore ?? [],
      loreState: composed?.loreState,
      notExpanded: composed?.notExpanded ?? [],
    };
  }

  #toWindow(turns: PromptMessage[], budget: number, { model }: PromptLimits, remembers: boolean): HistoryWindow {
    const countTokens = (text: string) => this.#counter.estimate({ role: "system", content: text }, model);
    return { messages: turns, budget, countTokens, model, updatesState: remembers };
  }

  #estimate({ leading, inserted, trailing, prefill }: PromptBlocks, model: string): CountedBlocks {
    const count = <T extends PromptBlock>(block: T) => ({
      ...block,
      tokens: this.#counter.estimate(toMessage(block), model),
    });
    return {
      leading: leading.map(count),
      inserted: inserted.map(count),
      trailing: trailing.map(count),
      prefill: prefill === undefined ? [] : [count(prefill)],
    };
  }

  /** Replaces estimates with counts. @returns Whether the server counted all of them. */
  async #count(
    blocks: Counted[],
    turns: PromptEntry[],
    limits: PromptLimits,
    signal: AbortSignal,
  ): Promise<boolean> {
    const messages = [...blocks.map(toMessage), ...turns.map(({ message }) => message)];
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    [...blocks, ...turns].forEach((counted, n) => counted.tokens = tokens[n]!);
    return isExact;
  }

  /** Reads the history from its end until nothing more can fit. */
  #read(history: Iterable<PromptMessage>, model: string, budget: number) {
    const turns: PromptEntry[] = [];
    const read: PromptMessage[] = [];
    let tokensRead = 0;
    for (const turn of history) {
      if (turns.length > 0 && tokensRead > budget * READ_AHEAD) return { read, turns, isWhole: false };
      const { id, message } = turn;
      const tokens = this.#counter.estimate(message, model);
      turns.push({ part: "history", messageId: id, message, tokens });
      read.push(turn);
      tokensRead += tokens;
    }
    return { read, turns, isWhole: true };
  }
}

function toMessage({ role, text }: PromptBlock): ChatMessage {
  return { role, content: text };
}

/** Reports whether a block is dropped first if the context is full. */
function isOptional({ part, isDroppedFirst }: PromptBlock): boolean {
  return part === "examples" || isDroppedFirst === true;
}

function replacesHistory(block: PromptBlock): boolean {
  return block.replacesHistory === true;
}

/** A preset may lower the limit. */
function withContextLimit({ tokens, isAssumed }: ContextSize, { contextTokens = Infinity }: PromptLimits): ContextSize {
  return { tokens: Math.min(tokens, contextTokens), isAssumed };
}

function computeBudget({ tokens, isAssumed }: ContextSize, { target, answerTokens }: PromptLimits) {
  const wanted = answerTokens ?? getDefaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, wanted), Math.floor(tokens / 2));
  return { answerTokens: answer, budget: Math.max(1, tokens - answer - MARGIN) };
}

function toPrompt(parts: PromptEntry[]): Pick<Prompt, "messages" | "parts" | "tokens"> {
  return { messages: parts.map(({ message }) => message), parts, tokens: sumTokens(parts) };
}
