/** Puts together what a model is sent: the pieces of the scene, and as much of the history as its context holds. */
import type { ChatMessage } from "../llm/chat_event.ts";
import { getDefaultMaxTokens } from "../llm/provider.ts";
import type { ContextSize, ContextSizes } from "./tokens/context_sizes.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { DroppedLore } from "./lorebook_scan.ts";
import type { NotExpanded } from "./macros/macro_budget.ts";
import { NO_BLOCKS, type PromptBlock, type PromptBlocks } from "./prompt_blocks.ts";
import { type Counted, messagesOf, type PromptEntry, withInserted, withSystemSquashed } from "./prompt_messages.ts";
import type { CountedModel, TokenCounter } from "./tokens/token_counter.ts";
import { Cuts, total } from "./trimming.ts";

/** One message of the history. */
export interface PromptTurn {
  /** `undefined` for a turn that is not stored. */
  id?: string;
  message: ChatMessage;
  /** When it was said; milliseconds since 1970. */
  atMs?: number;
  /** What its lorebooks left for the turns after it. */
  loreState?: ActivationState;
}

/** What there is to know when the pieces are made. */
export interface Seen {
  /** Newest first, as far as the context reaches and somewhat beyond. */
  turns: readonly PromptTurn[];
  /** Tokens that all messages may take. */
  budget: number;
  /** Tokens of a text, estimated. */
  countTokens(text: string): number;
  model: string;
  /** False for a look, after which everything stands as before. */
  remembers: boolean;
}

/** The pieces of a prompt and what did not become one. */
export interface Composed {
  blocks: PromptBlocks;
  droppedLore?: DroppedLore[];
  /** See `PromptLayout`. */
  squashesSystem?: boolean;
  /** To be kept with the answer; see lore_scan.ts. */
  loreState?: ActivationState;
  /** Fields whose macros exceed the budget. */
  notExpanded?: NotExpanded[];
}

/** What there is to send. */
export interface PromptSource {
  /** Names the conversation, so that its trimming stays where it was. */
  conversationId: string;
  /** Makes the pieces; none where it is absent. */
  compose?(seen: Seen, signal: AbortSignal): Promise<Composed>;
  /** Newest first, hidden ones left out; read only as far as the context reaches. */
  history: Iterable<PromptTurn>;
  /** True where the newest message is the begin of the answer. */
  continuesLast?: boolean;
}

/** What the sent has to fit into. */
export interface PromptLimits extends CountedModel {
  /** Tokens that the answer may take; what is sent when the request names none, unless given. */
  answerTokens?: number;
  /** Tokens that prompt and answer may take together, where less than the model holds. */
  contextTokens?: number;
  /** Have the server count all messages, also where an estimate shows that there is room enough. */
  isExact?: boolean;
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
  /** Pieces for which there is no room, or that are not needed. */
  leftOut: Counted[];
  droppedLore: DroppedLore[];
  loreState?: ActivationState;
  /** Fields that are sent as written, since their macros exceed the budget. */
  notExpanded: NotExpanded[];
}

type CountedBlocks = { [K in "leading" | "trailing"]: Counted[] } & {
  inserted: Counted<PromptBlocks["inserted"][number]>[];
  prefill: Counted[];
};

/** Estimates are off by this factor at worst once a ratio is learned; above it the tokeniser decides. */
const SURE = 1.35;
/** What is read of a history beyond what an estimate lets in, for the tokeniser to decide. */
const BEYOND = 1.5;
/** Tokens that neither messages nor answer get: begin marks, and the template's opening of the answer. */
const MARGIN = 16;

/** Puts prompts together. */
export class Prompts {
  readonly #counter: TokenCounter;
  readonly #sizes: ContextSizes;
  readonly #cuts = new Cuts();

  constructor(counter: TokenCounter, sizes: ContextSizes) {
    this.#counter = counter;
    this.#sizes = sizes;
  }

  /** Gives what is known of messages that a client assembled itself; nothing of them changes. */
  async describe(messages: ChatMessage[], limits: PromptLimits, signal: AbortSignal): Promise<Prompt> {
    const contextSize = await this.#sizes.of(limits.target, limits.model);
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    const parts = messages.map((message, n) => ({ part: "history" as const, message, tokens: tokens[n]! }));
    const nothing = { isTrimmed: false, leftOut: [], droppedLore: [], notExpanded: [] };
    return { ...promptOf(parts), isExact, contextSize, ...roomOf(contextSize, limits), ...nothing };
  }

  /**
   * Assembles a prompt: the pieces before the history, the newest part of it that fits with others set into it, and what
   * stands behind. The newest message always goes out, even alone and too long: only the server can say that it does not
   * fit.
   *
   * If not everything fits, all examples are dropped first, then the oldest messages
   * (docs/protocols/cards.md#prompt-order). A summary is sent only in place of dropped messages.
   *
   * @param remembers False for a look that must not move the cut.
   * @throws The reason of `signal`, when that fired.
   */
  async assemble(source: PromptSource, limits: PromptLimits, signal: AbortSignal, remembers = true): Promise<Prompt> {
    const contextSize = await this.#sizes.of(limits.target, limits.model);
    const { budget, answerTokens } = roomOf(narrowed(contextSize, limits), limits);
    const { read, turns, isWhole } = this.#read(source.history, limits.model, budget);
    const composed = await source.compose?.(this.#seen(read, budget, limits, remembers), signal);
    const blocks = this.#counted(composed?.blocks ?? NO_BLOCKS, limits.model);
    const { leading, inserted, trailing, prefill } = blocks;
    const all = [...leading, ...inserted, ...trailing, ...prefill];
    const isSure = isWhole && (total(all) + total(turns)) * SURE <= budget;
    const isExact = (!isSure || limits.isExact === true) && await this.#count(all, turns, limits, signal);

    const continued = source.continuesLast ? turns.splice(0, 1) : [];
    const room = budget - total(all.filter((block) => !isExtra(block) && !isStandIn(block))) - total(continued);
    const isFitting = isWhole && total(turns) <= room;
    const hasExtras = isFitting && total(turns) + total(all.filter(isExtra)) <= room;
    const roomBesideStandIns = room - total(leading.filter(isStandIn));
    const kept = isFitting
      ? turns.length
      : this.#cuts.choose(source.conversationId, turns, roomBesideStandIns, remembers);
    if (isFitting && remembers) this.#cuts.forget(source.conversationId);
    const isSent = (block: Counted) => isExtra(block) ? hasExtras : isStandIn(block) ? !isFitting : true;
    const history = turns.slice(0, kept).reverse();
    const separate = [
      ...messagesOf(leading.filter(isSent), true),
      ...withInserted(history, inserted.filter(isSent)),
      ...messagesOf(trailing.filter(isSent)),
      ...messagesOf(prefill),
      ...continued,
    ];
    const parts = composed?.squashesSystem ? withSystemSquashed(separate) : separate;
    return {
      ...promptOf(parts),
      ...{ isExact, contextSize, answerTokens, budget },
      isTrimmed: !isWhole || kept < turns.length,
      leftOut: all.filter((block) => !isSent(block)),
      droppedLore: composed?.droppedLore ?? [],
      loreState: composed?.loreState,
      notExpanded: composed?.notExpanded ?? [],
    };
  }

  #seen(turns: PromptTurn[], budget: number, { model }: PromptLimits, remembers: boolean): Seen {
    const countTokens = (text: string) => this.#counter.estimate({ role: "system", content: text }, model);
    return { turns, budget, countTokens, model, remembers };
  }

  #counted({ leading, inserted, trailing, prefill }: PromptBlocks, model: string): CountedBlocks {
    const count = <T extends PromptBlock>(block: T) => ({
      ...block,
      tokens: this.#counter.estimate(messageOf(block), model),
    });
    return {
      leading: leading.map(count),
      inserted: inserted.map(count),
      trailing: trailing.map(count),
      prefill: prefill === undefined ? [] : [count(prefill)],
    };
  }

  /** Puts counts in place of estimates. Gives whether all of them are the server's own. */
  async #count(
    blocks: Counted[],
    turns: PromptEntry[],
    limits: PromptLimits,
    signal: AbortSignal,
  ): Promise<boolean> {
    const messages = [...blocks.map(messageOf), ...turns.map(({ message }) => message)];
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    [...blocks, ...turns].forEach((counted, n) => counted.tokens = tokens[n]!);
    return isExact;
  }

  /** Reads the history from its end until an estimate says that no more can fit. */
  #read(history: Iterable<PromptTurn>, model: string, budget: number) {
    const turns: PromptEntry[] = [];
    const read: PromptTurn[] = [];
    let tokensRead = 0;
    for (const turn of history) {
      if (turns.length > 0 && tokensRead > budget * BEYOND) return { read, turns, isWhole: false };
      const { id, message } = turn;
      const tokens = this.#counter.estimate(message, model);
      turns.push({ part: "history", messageId: id, message, tokens });
      read.push(turn);
      tokensRead += tokens;
    }
    return { read, turns, isWhole: true };
  }
}

function messageOf({ role, text }: PromptBlock): ChatMessage {
  return { role, content: text };
}

/** What goes first where there is not room for everything. */
function isExtra({ part, isFirstToGo }: PromptBlock): boolean {
  return part === "examples" || isFirstToGo === true;
}

function isStandIn(block: PromptBlock): boolean {
  return block.isStandIn === true;
}

/** A preset may ask for less than there is. */
function narrowed({ tokens, isAssumed }: ContextSize, { contextTokens = Infinity }: PromptLimits): ContextSize {
  return { tokens: Math.min(tokens, contextTokens), isAssumed };
}

function roomOf({ tokens, isAssumed }: ContextSize, { target, answerTokens }: PromptLimits) {
  const wanted = answerTokens ?? getDefaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, wanted), Math.floor(tokens / 2));
  return { answerTokens: answer, budget: Math.max(1, tokens - answer - MARGIN) };
}

function promptOf(parts: PromptEntry[]): Pick<Prompt, "messages" | "parts" | "tokens"> {
  return { messages: parts.map(({ message }) => message), parts, tokens: total(parts) };
}
