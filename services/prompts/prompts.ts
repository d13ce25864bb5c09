/** Assembles what a model is sent: blocks, and as much of the history as fits the context. */
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import { getDefaultMaxTokens, type UpstreamTarget } from "../llm/provider.ts";
import type { ContextSize, ContextSizes, CountedModel, TokenCounter } from "./token_counter.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { DroppedLore } from "./compose_context.ts";
import type { NotExpanded } from "./macros/macro_budget.ts";
import type { DocumentUse } from "../documents/document.ts";
import { splitContent } from "../llm/token_estimate.ts";
import type { MemoryChoice } from "../memories/memory_choice.ts";
import {
  chooseDocuments,
  type ChosenDocuments,
  type DocumentChoiceInput,
  type DocumentReader,
  type SentDocument,
  type WantedDocument,
} from "./document_choice.ts";
import { NO_BLOCKS, type PromptBlock, type PromptBlocks } from "./prompt_blocks.ts";
import {
  type Counted,
  insertAtDepths,
  type PromptEntry,
  squashSystemMessages,
  toPromptEntries,
} from "./prompt_messages.ts";
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
  /** Documents of this message. */
  documents?: readonly DocumentUse[];
}

/** The part of the history that composition can see. */
export interface HistoryWindow {
  /** Newest first, slightly more than fits the context. */
  messages: readonly PromptMessage[];
  /** Tokens available for all messages. */
  budget: number;
  /** Tokens of messages and reply together. */
  contextTokens: number;
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
  /** The notes in the blocks. */
  memories?: MemoryChoice;
}

/** A message that stays in the prompt when the history is trimmed. */
export interface PinnedMessage {
  id: string;
  /** Who wrote it. */
  name: string;
  text: string;
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
  /** Documents that are always at hand. Those of messages are in the history. */
  documents?: readonly DocumentUse[];
  /** Pinned messages, oldest first. Quoted before the history if they don't fit into it. */
  pinned?: readonly PinnedMessage[];
  /** Messages before those that fit may have documents, and have to be searched for them. */
  hasEarlierDocuments?: boolean;
}

/** Messages that a client assembled, and documents. */
export interface ClientPromptSource {
  /** Oldest first, each with an id. */
  history: readonly PromptMessage[];
  /** Documents of the conversation. */
  documents: readonly DocumentUse[];
}

/** Token limits of a prompt. */
export interface PromptLimits extends CountedModel {
  /** Maximum tokens of the reply; by default the value sent for requests without one. */
  answerTokens?: number;
  /** Maximum tokens of prompt and reply, if lower than the model's context. */
  contextTokens?: number;
  /** Tokens of the definitions of tools, which are sent with the prompt. */
  toolTokens?: number;
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
  /** Tokens that prompt and reply need together, with a reserve for the error of an estimate. */
  neededTokens: number;
  /** True if older messages were dropped. */
  isTrimmed: boolean;
  /** Blocks that didn't fit or weren't needed. */
  leftOut: Counted[];
  droppedLore: DroppedLore[];
  loreState?: ActivationState;
  /** Fields sent as written, because their macros exceed the budget. */
  notExpanded: NotExpanded[];
  /** What is sent of each document. */
  documents: SentDocument[];
  /** Notes of the owner that are sent, and those that exceed their budget. */
  memories: MemoryChoice;
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
/** Share of the context that the history keeps beside documents. */
const HISTORY_SHARE = 0.3;
/** Messages before the question that the search for passages knows. */
const QUERY_CONTEXT = 2;
/** Documents come before other blocks of the same depth. */
const DOCUMENT_ORDER = -2_000_000;
const MAX_DOCUMENT_TRIES = 2;
/** Left free when documents are chosen again. */
const DOCUMENT_RESERVE = 0.95;
/** How many messages beyond the ones that are read are searched for documents. */
const DOCUMENT_LOOKBACK = 200;
/** Added to an estimate when the context is chosen by it, because servers cut a prompt that is longer. */
const ESTIMATE_RESERVE = 1.25;

/** Share of the budget for pinned messages that aren't in the history. */
const PINNED_SHARE = 0.25;
const NO_MEMORIES: MemoryChoice = { sent: [], leftOut: [] };

/** Assembles prompts. */
export class Prompts {
  readonly #counter: TokenCounter;
  readonly #sizes: ContextSizes;
  readonly #openDocuments: (() => Promise<DocumentReader>) | undefined;
  readonly #trimPoints = new TrimPoints();

  /** @param openDocuments Opens the documents, for prompts that have some. */
  constructor(counter: TokenCounter, sizes: ContextSizes, openDocuments?: () => Promise<DocumentReader>) {
    this.#counter = counter;
    this.#sizes = sizes;
    this.#openDocuments = openDocuments;
  }

  /** Asks again for a context size that was unknown: a server that loads a model with its first call knows it now. */
  replyCompleted({ target, call }: { target: UpstreamTarget; call: ChatCall }): void {
    this.#sizes.forgetUnknown(target, call.model);
  }

  /** Describes messages that a client assembled itself. They aren't changed. */
  async describe(messages: ChatMessage[], limits: PromptLimits, signal: AbortSignal): Promise<Prompt> {
    const most = await this.#sizes.lookUp(limits.target, limits.model);
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    const parts = messages.map((message, n) => ({ part: "history" as const, message, tokens: tokens[n]! }));
    const nothing = {
      isTrimmed: false,
      leftOut: [],
      droppedLore: [],
      notExpanded: [],
      documents: [],
      memories: NO_MEMORIES,
    };
    const prompt = { ...toPrompt(parts), isExact };
    return { ...prompt, ...await this.#chooseContext(prompt, most, limits), ...nothing };
  }

  /**
   * Adds documents to messages that a client assembled. All of its messages are sent, unchanged; documents get the tokens that
   * are left. Those of the conversation follow the system messages at the start.
   *
   * @param waits False for previews, which don't wait for documents that are being read.
   * @throws The reason of `signal` if aborted.
   */
  async addDocuments(
    { history, documents }: ClientPromptSource,
    limits: PromptLimits,
    signal: AbortSignal,
    waits = true,
  ): Promise<Prompt> {
    const messages = history.map(({ message }) => message);
    const plain = await this.describe(messages, limits, signal);
    const read = history.toReversed();
    const wanted = findWantedDocuments(documents, read, []);
    if (wanted.length === 0) return plain;
    const turns: PromptEntry[] = plain.parts.map((part, n) => ({ ...part, messageId: history[n]!.id }));
    const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
    const depth = first < 0 ? 0 : messages.length - first;
    const most = await this.#sizes.lookUp(limits.target, limits.model);
    const { budget } = computeBudget(withContextLimit(most, limits), limits);
    const free = Math.max(0, budget - plain.tokens);
    for (let share = 1, tries = 0;; tries++) {
      const room = { read, turns: turns.toReversed(), others: [], budget, limits, share };
      const input = { ...this.#toDocumentInput(wanted, room), budget: free * share, maxBudget: free * share };
      const chosen = await this.#chooseDocuments(input, { waits, signal });
      const blocks: Pick<CountedBlocks, "leading" | "inserted"> = { leading: [], inserted: [] };
      this.#addDocuments(blocks, chosen, {}, read, limits.model);
      const atHand = blocks.leading.map((block) => ({ ...block, depth, order: DOCUMENT_ORDER - 1 }));
      const entries = insertAtDepths(turns, [...atHand, ...blocks.inserted]);
      const { tokens, isExact } = await this.#counter.count(entries.map(({ message }) => message), limits, signal);
      const parts = entries.map((entry, n) => ({ ...entry, tokens: tokens[n]! }));
      const prompt = { ...toPrompt(parts), isExact };
      const excess = prompt.tokens - budget;
      const documentTokens = prompt.tokens - plain.tokens;
      if (excess <= 0 || documentTokens <= 0 || tries === MAX_DOCUMENT_TRIES) {
        return { ...plain, ...prompt, ...await this.#chooseContext(prompt, most, limits), documents: chosen.sent };
      }
      share *= Math.max(0, documentTokens - excess) / documentTokens * DOCUMENT_RESERVE;
    }
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
    const most = await this.#sizes.lookUp(limits.target, limits.model);
    const context = withContextLimit(most, limits);
    const { budget } = computeBudget(context, limits);
    const { read, turns, isWhole, earlierDocuments } = this.#read(source, limits.model, budget);
    const composed = await source.compose?.(
      this.#toWindow(read, { budget, contextTokens: context.tokens }, limits, remembers),
      signal,
    );
    const blocks = this.#estimate(composed?.blocks ?? NO_BLOCKS, limits.model);
    const { leading, inserted, trailing, prefill } = blocks;
    leading.push(...this.#choosePinned(source.pinned ?? [], limits.model, budget));
    const wanted = findWantedDocuments(source.documents ?? [], read, earlierDocuments);
    let documents: SentDocument[] = [];
    let all = [...leading, ...inserted, ...trailing, ...prefill];
    let isExact = false;
    // Estimates can be off. If what was chosen by an estimate turns out too long, less is chosen.
    const plain = { leading: [...leading], inserted: [...inserted] };
    for (let share = 1, tries = 0;; tries++) {
      leading.splice(0, leading.length, ...plain.leading);
      inserted.splice(0, inserted.length, ...plain.inserted);
      if (wanted.length > 0) {
        const others = [...leading, ...inserted, ...trailing, ...prefill];
        const input = this.#toDocumentInput(wanted, { read, turns, others, budget, limits, share });
        const chosen = await this.#chooseDocuments(input, { waits: remembers, signal });
        documents = chosen.sent;
        this.#addDocuments({ leading, inserted }, chosen, source, read, limits.model);
      }
      all = [...leading, ...inserted, ...trailing, ...prefill];
      const isSure = isWhole && (sumTokens(all) + sumTokens(turns)) * ESTIMATE_ERROR <= budget;
      isExact = (!isSure || limits.isExact === true) && await this.#count(all, turns, limits, signal);
      const needed = sumTokens(all.filter((block) => !isOptional(block) && !replacesHistory(block))) +
        (turns[0]?.tokens ?? 0);
      if (wanted.length === 0 || needed <= budget || tries === MAX_DOCUMENT_TRIES) break;
      const documentTokens = sumTokens(all.filter(({ part }) => part === "documents"));
      share *= Math.max(0, documentTokens - (needed - budget)) / Math.max(1, documentTokens) * DOCUMENT_RESERVE;
    }

    const continued = source.continuesLast ? turns.splice(0, 1) : [];
    const room = budget - sumTokens(all.filter((block) => !isOptional(block) && !replacesHistory(block))) -
      sumTokens(continued);
    const isFitting = isWhole && sumTokens(turns) <= room;
    const hasExtras = isFitting && sumTokens(turns) + sumTokens(all.filter(isOptional)) <= room;
    const roomBesideStandIns = room - sumTokens(leading.filter(replacesHistory));
    const kept = isFitting ? turns.length : keepResultsWithCalls(
      turns,
      this.#trimPoints.choose(source.conversationId, turns, roomBesideStandIns, remembers),
    );
    if (isFitting && remembers) this.#trimPoints.forget(source.conversationId);
    const history = turns.slice(0, kept).reverse();
    const sentIds = new Set(history.map(({ messageId }) => messageId));
    const isInHistory = ({ pinnedId }: PromptBlock) => pinnedId !== undefined && sentIds.has(pinnedId);
    const isSent = (block: Counted) =>
      isOptional(block) ? hasExtras : replacesHistory(block) ? !isFitting && !isInHistory(block) : true;
    const separate = [
      ...toPromptEntries(leading.filter(isSent), true),
      ...insertAtDepths(history, inserted.filter(isSent)),
      ...toPromptEntries(trailing.filter(isSent)),
      ...toPromptEntries(prefill),
      ...continued,
    ];
    const parts = composed?.squashesSystem ? squashSystemMessages(separate) : separate;
    const prompt = { ...toPrompt(parts), isExact };
    return {
      ...prompt,
      ...await this.#chooseContext(prompt, most, limits),
      isTrimmed: !isWhole || kept < turns.length,
      leftOut: all.filter((block) => !isSent(block) && !isInHistory(block)),
      droppedLore: composed?.droppedLore ?? [],
      loreState: composed?.loreState,
      notExpanded: composed?.notExpanded ?? [],
      documents,
      memories: composed?.memories ?? NO_MEMORIES,
    };
  }

  /** Quotes pinned messages, the newest of them if they are too long together. */
  #choosePinned(pinned: readonly PinnedMessage[], model: string, budget: number): Counted[] {
    const chosen: Counted[] = [];
    let left = budget * PINNED_SHARE;
    for (const { id, name, text } of pinned.toReversed()) {
      const block: PromptBlock = {
        part: "pinned",
        role: "system",
        text: `[Earlier message of ${name}: ${text}]`,
        pinnedId: id,
        replacesHistory: true,
      };
      const tokens = this.#counter.estimate(toMessage(block), model);
      left -= tokens;
      if (left < 0) break;
      chosen.unshift({ ...block, tokens });
    }
    return chosen;
  }

  async #chooseDocuments(
    input: DocumentChoiceInput,
    options: { waits: boolean; signal: AbortSignal },
  ): Promise<ChosenDocuments> {
    if (this.#openDocuments === undefined) return { fixed: [], sent: [] };
    return await chooseDocuments(await this.#openDocuments(), input, options);
  }

  /** The history keeps up to a part of the context; documents can have the rest. */
  #toDocumentInput(
    wanted: readonly WantedDocument[],
    { read, turns, others, budget, limits: { model }, share }: {
      read: readonly PromptMessage[];
      turns: readonly PromptEntry[];
      others: readonly Counted[];
      budget: number;
      limits: PromptLimits;
      share: number;
    },
  ): DocumentChoiceInput {
    const room = budget - sumTokens(others.filter((block) => !isOptional(block) && !replacesHistory(block)));
    const newest = turns[0]?.tokens ?? 0;
    const history = Math.max(newest, Math.min(sumTokens(turns), room * HISTORY_SHARE));
    const asked = read.findIndex(({ message }) => message.role === "user");
    const textOf = (message: PromptMessage | undefined) =>
      message === undefined ? "" : splitContent(message.message).text;
    return {
      wanted,
      budget: Math.max(0, room - history) * share,
      maxBudget: Math.max(0, room - newest) * share,
      query: {
        text: textOf(read[Math.max(0, asked)]),
        context: read.slice(Math.max(0, asked) + 1, asked + 1 + QUERY_CONTEXT).map(textOf).join("\n"),
      },
      estimate: (text) => this.#counter.estimate({ role: "system", content: text }, model),
      tokenRatio: this.#counter.ratioOf(model),
    };
  }

  /**
   * Adds documents where they keep the start of the prompt the same: those always at hand before the history, those of a
   * message before it, passages before the newest message of the user.
   */
  #addDocuments(
    { leading, inserted }: Pick<CountedBlocks, "leading" | "inserted">,
    { fixed, passages }: ChosenDocuments,
    { continuesLast }: Pick<PromptSource, "continuesLast">,
    read: readonly PromptMessage[],
    model: string,
  ): void {
    const count = (text: string): Counted => {
      const block: PromptBlock = { part: "documents", role: "system", text };
      return { ...block, tokens: this.#counter.estimate(toMessage(block), model) };
    };
    const insert = (text: string, index: number) => {
      // The message that is continued isn't part of the history.
      const depth = index < 0 ? Infinity : index + (continuesLast ? 0 : 1);
      inserted.push({ ...count(text), depth, order: DOCUMENT_ORDER });
    };
    const first = leading.findIndex(({ part }) => part === "chat_begins" || part === "summary");
    const atHand = fixed.filter(({ messageId }) => messageId === undefined).map(({ text }) => count(text));
    leading.splice(first < 0 ? leading.length : first, 0, ...atHand);
    for (const { text, messageId } of fixed) {
      if (messageId !== undefined) insert(text, read.findIndex((message) => keyOf(message) === messageId));
    }
    if (passages !== undefined) insert(passages, read.findIndex(({ message }) => message.role === "user"));
  }

  /** Determines the context that a prompt is sent with: the server's own, or the one that it is asked for. */
  async #chooseContext(
    { tokens, isExact }: Pick<Prompt, "tokens" | "isExact">,
    most: ContextSize,
    limits: PromptLimits,
  ): Promise<Pick<Prompt, "contextSize" | "answerTokens" | "budget" | "neededTokens">> {
    const { answerTokens } = computeBudget(withContextLimit(most, limits), limits);
    const neededTokens = Math.ceil(tokens * (isExact ? 1 : ESTIMATE_RESERVE)) + answerTokens +
      (limits.toolTokens ?? 0) + MARGIN;
    const contextSize = await this.#sizes.choose(limits.target, limits.model, neededTokens, most);
    const { budget } = computeBudget(withContextLimit(contextSize, limits), { ...limits, answerTokens });
    return { contextSize, answerTokens, budget, neededTokens };
  }

  #toWindow(
    turns: PromptMessage[],
    space: Pick<HistoryWindow, "budget" | "contextTokens">,
    { model }: PromptLimits,
    remembers: boolean,
  ): HistoryWindow {
    const countTokens = (text: string) => this.#counter.estimate({ role: "system", content: text }, model);
    return { messages: turns, ...space, countTokens, model, updatesState: remembers };
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
  #read({ history, hasEarlierDocuments = false }: PromptSource, model: string, budget: number) {
    const turns: PromptEntry[] = [];
    const read: PromptMessage[] = [];
    let tokensRead = 0;
    const earlierDocuments: WantedDocument[] = [];
    let lookedAt = 0;
    for (const turn of history) {
      if (turns.length > 0 && tokensRead > budget * READ_AHEAD) {
        if (!hasEarlierDocuments) return { read, turns, isWhole: false, earlierDocuments };
        // Its message may be long gone, but a document stays until it's removed.
        for (const use of turn.documents ?? []) earlierDocuments.push({ use, messageId: keyOf(turn) });
        if (++lookedAt >= DOCUMENT_LOOKBACK) break;
        continue;
      }
      const { id, message } = turn;
      const tokens = this.#counter.estimate(message, model);
      turns.push({ part: "history", messageId: id, message, tokens });
      read.push(turn);
      tokensRead += tokens;
    }
    return { read, turns, isWhole: lookedAt === 0, earlierDocuments };
  }
}

/**
 * Returns how many messages, newest first, are sent so that no result of a tool is without its call. Results that begin the
 * history are dropped, except the newest, which need their call.
 */
function keepResultsWithCalls(turns: readonly PromptEntry[], kept: number): number {
  const isResult = (index: number) => turns[index]?.message.role === "tool";
  let count = kept;
  while (count > 0 && isResult(count - 1)) count--;
  if (count > 0) return count;
  while (isResult(count)) count++;
  return Math.min(turns.length, count + 1);
}

/** Identifies a message of the history, also one that isn't stored yet. */
function keyOf({ id }: PromptMessage): string {
  return id ?? "";
}

/**
 * Lists the documents of a prompt, oldest first, each once. The first mention decides where it's sent, the last one how
 * much of it.
 */
function findWantedDocuments(
  atHand: readonly DocumentUse[],
  read: readonly PromptMessage[],
  earlier: readonly WantedDocument[],
): WantedDocument[] {
  const inMessages = read.toReversed().flatMap((message) =>
    (message.documents ?? []).map((use) => ({ use, messageId: keyOf(message) }))
  );
  const wanted = new Map<string, WantedDocument>();
  for (const one of [...atHand.map((use) => ({ use })), ...earlier.toReversed(), ...inMessages]) {
    wanted.set(one.use.id, { ...wanted.get(one.use.id) ?? one, use: one.use });
  }
  return [...wanted.values()];
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

function computeBudget({ tokens, isAssumed }: ContextSize, { target, answerTokens, toolTokens = 0 }: PromptLimits) {
  const wanted = answerTokens ?? getDefaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, wanted), Math.floor(tokens / 2));
  return { answerTokens: answer, budget: Math.max(1, tokens - answer - toolTokens - MARGIN) };
}

function toPrompt(parts: PromptEntry[]): Pick<Prompt, "messages" | "parts" | "tokens"> {
  return { messages: parts.map(({ message }) => message), parts, tokens: sumTokens(parts) };
}
