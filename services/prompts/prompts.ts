/** Assembles the prompt for a model: blocks, and as much of the history as fits in the context. */
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import type { UpstreamTarget } from "../llm/provider.ts";
import type { ContextSize, ContextSizes } from "../llm/context_sizes.ts";
import type { TokenCounter } from "./token_counter.ts";
import type { MemoryChoice } from "../memories/memory.ts";
import type { DocumentReader, DocumentRequest, SentDocument } from "./document_choice.ts";
import {
  type ClientPromptSource,
  type ComposedPrompt,
  type HistoryWindow,
  isOptional,
  NO_BLOCKS,
  type PinnedMessage,
  type Prompt,
  type PromptBlock,
  type PromptBlocks,
  type PromptLimits,
  type PromptMessage,
  type PromptSource,
  replacesHistory,
} from "./prompt.ts";
import {
  computeBudget,
  DOCUMENT_ORDER,
  findRequestedDocuments,
  keepResultsWithCalls,
  MARGIN_TOKENS,
  PromptDocuments,
  sumTokens,
  toMessageKey,
  TrimPoints,
  withContextLimit,
} from "./prompt_budget.ts";
import {
  type Counted,
  type CountedBlocks,
  insertAtDepths,
  type PromptEntry,
  squashSystemMessages,
  toMessage,
  toPromptEntries,
} from "./prompt_messages.ts";

/** The part of the history that was read. */
interface ReadHistory {
  /** Newest first. */
  read: PromptMessage[];
  /** The same messages with their tokens. */
  historyEntries: PromptEntry[];
  /** True if there is no older message. */
  isWhole: boolean;
  /** Documents of older messages. */
  earlierDocuments: DocumentRequest[];
}

/** A prompt before it's known what fits. */
interface Draft {
  blocks: CountedBlocks;
  history: ReadHistory;
  budget: number;
}

/** Estimates are wrong by at most this factor once a ratio is learned. Closer to the limit, the tokenizer decides. */
const ESTIMATE_ERROR = 1.35;
/** How far to read beyond the estimated limit, so that the tokenizer can decide. */
const READ_AHEAD = 1.5;
/** Share of the context that is reserved for the history if there are documents. */
const HISTORY_SHARE = 0.3;
const MAX_DOCUMENT_TRIES = 2;
/** Share of the budget to use when documents are chosen again. */
const DOCUMENT_RESERVE = 0.95;
/** Number of messages beyond those that are read in which to look for documents. */
const DOCUMENT_LOOKBACK = 200;
/** Factor for an estimate that determines the context size, because servers truncate longer prompts. */
const ESTIMATE_RESERVE = 1.25;

/** Share of the budget for pinned messages that aren't in the history. */
const PINNED_SHARE = 0.25;
const NO_MEMORIES: MemoryChoice = { sent: [], leftOut: [] };

/** Assembles prompts. */
export class Prompts {
  readonly #counter: TokenCounter;
  readonly #sizes: ContextSizes;
  readonly #documents: PromptDocuments;
  readonly #trimPoints = new TrimPoints();

  /** @param openDocuments Opens the documents, for prompts with documents. */
  constructor(counter: TokenCounter, sizes: ContextSizes, openDocuments?: () => Promise<DocumentReader>) {
    this.#counter = counter;
    this.#sizes = sizes;
    this.#documents = new PromptDocuments(counter, openDocuments);
  }

  /**
   * Makes the next prompt request an unknown context size again: a server that loads a model with its first call knows
   * it now.
   */
  replyCompleted({ target, call }: { target: UpstreamTarget; call: ChatCall }): void {
    this.#sizes.forgetUnknown(target, call.model);
  }

  /** Returns the most tokens that a prompt may have. */
  async findBudget(limits: PromptLimits): Promise<number> {
    const most = await this.#sizes.lookUp(limits.target, limits.model);
    return computeBudget(withContextLimit(most, limits), limits).budget;
  }

  /** Describes messages that a client assembled. They aren't changed. */
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
   * Adds documents to messages that a client assembled. All messages are sent unchanged; documents get the remaining
   * tokens. Those of the conversation follow the system messages at the start.
   *
   * @param waits False for previews, which don't wait for documents that are being extracted.
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
    const requested = findRequestedDocuments(documents, read, []);
    if (requested.length === 0) return plain;
    const historyEntries: PromptEntry[] = plain.parts.map((part, n) => ({ ...part, messageId: history[n]!.id }));
    const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
    const depth = first < 0 ? 0 : messages.length - first;
    const most = await this.#sizes.lookUp(limits.target, limits.model);
    const context = withContextLimit(most, limits);
    const chosenTokens = await this.#estimateChosen(requested, context, limits);
    const budget = computeBudget(context, limits).budget + chosenTokens;
    const free = Math.max(0, budget - plain.tokens);
    for (let share = 1, tries = 0;; tries++) {
      const limit = { read, model: limits.model, budget: free * share, maxBudget: free * share };
      const chosen = await this.#documents.choose(requested, limit, { waits, signal });
      const blocks: Pick<CountedBlocks, "leading" | "inserted"> = { leading: [], inserted: [] };
      this.#documents.insert(blocks, chosen, { read, model: limits.model });
      const atHand = blocks.leading.map((block) => ({ ...block, depth, order: DOCUMENT_ORDER - 1 }));
      const entries = insertAtDepths(historyEntries, [...atHand, ...blocks.inserted]);
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
   * even if it's too long by itself: only the server knows.
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
    const { budget: ownBudget } = computeBudget(context, limits);
    const history = await this.#runScripts(source, this.#read(source, limits.model, ownBudget), limits.model);
    const requested = findRequestedDocuments(source.documents ?? [], history.read, history.earlierDocuments);
    const budget = ownBudget + await this.#estimateChosen(requested, context, limits);
    const window = this.#toWindow(
      history.read,
      { budget: ownBudget, contextTokens: context.tokens },
      limits,
      remembers,
    );
    const kept = await source.compose?.(window, signal);
    const draft = await this.#compose(source, { composed: kept, history, budget }, limits, { remembers, signal });
    const before = history.read.find(({ loreState }) => loreState !== undefined)?.firstSentId;
    // The server reads everything anew after trimming, so this is when what was kept can go.
    const isReleased = kept?.keepsLore && draft.arranged.isTrimmed && draft.oldestId !== before;
    const composed = isReleased ? await source.compose!({ ...window, releasesLore: true }, signal) : kept;
    const { fit, arranged: { entries, isTrimmed, leftOut } } = isReleased
      ? await this.#compose(source, { composed, history, budget }, limits, { remembers, signal })
      : draft;
    const parts = composed?.squashesSystem ? squashSystemMessages(entries) : entries;
    const prompt = { ...toPrompt(parts), isExact: fit.isExact };
    return {
      ...prompt,
      ...await this.#chooseContext(prompt, most, limits),
      isTrimmed,
      leftOut,
      droppedLore: composed?.droppedLore ?? [],
      loreState: composed?.loreState,
      notExpanded: composed?.notExpanded ?? [],
      documents: fit.documents,
      memories: composed?.memories ?? NO_MEMORIES,
    };
  }

  /**
   * Returns the tokens by which documents that the user chose extend a context whose size is only assumed: an assumption
   * must not cut what was chosen. Only the server knows whether it fits.
   */
  async #estimateChosen(
    requested: readonly DocumentRequest[],
    { isAssumed, tokens }: ContextSize,
    { model, contextTokens = Infinity }: PromptLimits,
  ): Promise<number> {
    if (!isAssumed) return 0;
    const chosen = Math.ceil(await this.#documents.estimateChosen(requested, model) * ESTIMATE_ERROR);
    return Math.min(chosen, contextTokens - tokens);
  }

  /** Adds documents and the history to composed blocks. */
  async #compose(
    source: PromptSource,
    { composed, history, budget }: Omit<Draft, "blocks"> & { composed: ComposedPrompt | undefined },
    limits: PromptLimits,
    { remembers, signal }: { remembers: boolean; signal: AbortSignal },
  ) {
    const blocks = this.#estimate(composed?.blocks ?? NO_BLOCKS, limits.model);
    blocks.leading.push(...this.#choosePinned(source.pinned ?? [], limits.model, budget));
    const fit = await this.#addDocumentsThatFit(source, { blocks, history, budget }, limits, {
      waits: remembers,
      signal,
    });
    const arranged = this.#arrange(source, { blocks: fit.blocks, history, budget }, remembers);
    return { fit, arranged, oldestId: arranged.entries.find(({ messageId }) => messageId !== undefined)?.messageId };
  }

  /**
   * Adds documents to the blocks. Estimates can be wrong: if the choice turns out to be too long, chooses less.
   *
   * @returns The blocks with documents, whether the server counted their tokens, and the sent part of each document.
   */
  async #addDocumentsThatFit(
    source: PromptSource,
    { blocks, history, budget }: Draft,
    limits: PromptLimits,
    { waits, signal }: { waits: boolean; signal: AbortSignal },
  ): Promise<{ blocks: CountedBlocks; isExact: boolean; documents: SentDocument[] }> {
    const { read, historyEntries, isWhole, earlierDocuments } = history;
    const { model } = limits;
    const requested = findRequestedDocuments(source.documents ?? [], read, earlierDocuments);
    for (let share = 1, tries = 0;; tries++) {
      const chosenBlocks = { ...blocks, leading: [...blocks.leading], inserted: [...blocks.inserted] };
      let documents: SentDocument[] = [];
      if (requested.length > 0) {
        const limit = { read, model, ...getDocumentTokens(historyEntries, listBlocks(blocks), budget, share) };
        const chosen = await this.#documents.choose(requested, limit, { waits, signal });
        documents = chosen.sent;
        this.#documents.insert(chosenBlocks, chosen, { read, model, continuesLast: source.continuesLast });
      }
      const all = listBlocks(chosenBlocks);
      const isSure = isWhole && (sumTokens(all) + sumTokens(historyEntries)) * ESTIMATE_ERROR <= budget;
      const isExact = (!isSure || limits.isExact === true) && await this.#count(all, historyEntries, limits, signal);
      const needed = sumRequired(all) + (historyEntries[0]?.tokens ?? 0);
      if (requested.length === 0 || needed <= budget || tries === MAX_DOCUMENT_TRIES) {
        return { blocks: chosenBlocks, isExact, documents };
      }
      const documentTokens = sumTokens(all.filter(({ part }) => part === "documents"));
      share *= Math.max(0, documentTokens - (needed - budget)) / Math.max(1, documentTokens) * DOCUMENT_RESERVE;
    }
  }

  /** Decides which blocks and messages are sent, and puts them in order. */
  #arrange(
    source: PromptSource,
    { blocks, history: { historyEntries: read, isWhole }, budget }: Draft,
    remembers: boolean,
  ): { entries: PromptEntry[]; isTrimmed: boolean; leftOut: Counted[] } {
    const { leading, inserted, trailing, prefill } = blocks;
    const all = listBlocks(blocks);
    const continued = source.continuesLast ? read.slice(0, 1) : [];
    const historyEntries = read.slice(continued.length);
    const available = budget - sumRequired(all) - sumTokens(continued);
    const isFitting = isWhole && sumTokens(historyEntries) <= available;
    const hasExtras = isFitting && sumTokens(historyEntries) + sumTokens(all.filter(isOptional)) <= available;
    const roomBesideStandIns = available - sumTokens(leading.filter(replacesHistory));
    const sentCount = isFitting ? historyEntries.length : keepResultsWithCalls(
      historyEntries,
      this.#trimPoints.choose(source.conversationId, historyEntries, roomBesideStandIns, remembers),
    );
    if (isFitting && remembers) this.#trimPoints.forget(source.conversationId);
    const history = historyEntries.slice(0, sentCount).reverse();
    const sentIds = new Set(history.map(({ messageId }) => messageId));
    const isInHistory = ({ pinnedId }: PromptBlock) => pinnedId !== undefined && sentIds.has(pinnedId);
    const isSent = (block: Counted) =>
      isOptional(block) ? hasExtras : replacesHistory(block) ? !isFitting && !isInHistory(block) : true;
    const inChat = insertAtDepths(history, inserted.filter(isSent));
    const isNudge = ({ part }: PromptBlock) => part === "continue";
    const nudge = trailing.filter((block) => isNudge(block) && isSent(block));
    // The message to continue is right before the instruction to do so.
    const nudged = nudge.length > 0 ? history.slice(-1) : [];
    const entries = [
      ...toPromptEntries(leading.filter(isSent), true),
      ...inChat.filter((entry) => !nudged.includes(entry)),
      ...toPromptEntries(trailing.filter((block) => !isNudge(block) && isSent(block))),
      ...nudged,
      ...toPromptEntries(nudge),
      ...toPromptEntries(prefill),
      ...continued,
    ];
    return {
      entries,
      isTrimmed: !isWhole || sentCount < historyEntries.length,
      leftOut: all.filter((block) => !isSent(block) && !isInHistory(block)),
    };
  }

  /** Quotes pinned messages; only the newest if they're too long together. */
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

  /** Determines the context size of a prompt: the server's own, or the one to request from it. */
  async #chooseContext(
    { tokens, isExact }: Pick<Prompt, "tokens" | "isExact">,
    most: ContextSize,
    limits: PromptLimits,
  ): Promise<Pick<Prompt, "contextSize" | "replyTokens" | "budget" | "neededTokens">> {
    const { replyTokens } = computeBudget(withContextLimit(most, limits), limits);
    const neededTokens = Math.ceil(tokens * (isExact ? 1 : ESTIMATE_RESERVE)) + replyTokens +
      (limits.toolTokens ?? 0) + MARGIN_TOKENS;
    const contextSize = await this.#sizes.choose(limits.target, limits.model, neededTokens, most);
    const { budget } = computeBudget(withContextLimit(contextSize, limits), { ...limits, replyTokens });
    return { contextSize, replyTokens, budget, neededTokens };
  }

  #toWindow(
    historyEntries: PromptMessage[],
    space: Pick<HistoryWindow, "budget" | "contextTokens">,
    { model }: PromptLimits,
    remembers: boolean,
  ): HistoryWindow {
    const countTokens = (text: string) => this.#counter.estimate({ role: "system", content: text }, model);
    return { messages: historyEntries, ...space, countTokens, model, updatesState: remembers };
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
    historyEntries: PromptEntry[],
    limits: PromptLimits,
    signal: AbortSignal,
  ): Promise<boolean> {
    const messages = [...blocks.map(toMessage), ...historyEntries.map(({ message }) => message)];
    const { tokens, isExact } = await this.#counter.count(messages, limits, signal);
    [...blocks, ...historyEntries].forEach((counted, n) => counted.tokens = tokens[n]!);
    return isExact;
  }

  async #runScripts(source: PromptSource, history: ReadHistory, model: string): Promise<ReadHistory> {
    if (source.runScripts === undefined) return history;
    const read = await source.runScripts(history.read);
    const historyEntries = read.map(({ id, message }, n): PromptEntry => {
      const before = history.historyEntries[n]!;
      if (message === before.message) return before;
      return { part: "history", messageId: id, message, tokens: this.#counter.estimate(message, model) };
    });
    return { ...history, read, historyEntries };
  }

  /** Reads the history from its end until nothing more fits. */
  #read({ history, hasEarlierDocuments = false }: PromptSource, model: string, budget: number): ReadHistory {
    const historyEntries: PromptEntry[] = [];
    const read: PromptMessage[] = [];
    let tokensRead = 0;
    const earlierDocuments: DocumentRequest[] = [];
    let lookedAt = 0;
    for (const entry of history) {
      if (historyEntries.length > 0 && tokensRead > budget * READ_AHEAD) {
        if (!hasEarlierDocuments) return { read, historyEntries, isWhole: false, earlierDocuments };
        // Its message may be far back, but a document stays until it's removed.
        for (const use of entry.documents ?? []) earlierDocuments.push({ use, messageId: toMessageKey(entry) });
        if (++lookedAt >= DOCUMENT_LOOKBACK) break;
        continue;
      }
      const { id, message } = entry;
      const tokens = this.#counter.estimate(message, model);
      historyEntries.push({ part: "history", messageId: id, message, tokens });
      read.push(entry);
      tokensRead += tokens;
    }
    return { read, historyEntries, isWhole: lookedAt === 0, earlierDocuments };
  }
}

function listBlocks({ leading, inserted, trailing, prefill }: CountedBlocks): Counted[] {
  return [...leading, ...inserted, ...trailing, ...prefill];
}

/** Sums the tokens of blocks that are always sent. */
function sumRequired(blocks: readonly Counted[]): number {
  return sumTokens(blocks.filter((block) => !isOptional(block) && !replacesHistory(block)));
}

/** Returns the tokens for documents. A part of the context is reserved for the history; documents can use the rest. */
function getDocumentTokens(
  historyEntries: readonly PromptEntry[],
  others: readonly Counted[],
  budget: number,
  share: number,
): { budget: number; maxBudget: number } {
  const available = budget - sumRequired(others);
  const newest = historyEntries[0]?.tokens ?? 0;
  const history = Math.max(newest, Math.min(sumTokens(historyEntries), available * HISTORY_SHARE));
  return { budget: Math.max(0, available - history) * share, maxBudget: Math.max(0, available - newest) * share };
}

function toPrompt(parts: PromptEntry[]): Pick<Prompt, "messages" | "parts" | "tokens"> {
  return { messages: parts.map(({ message }) => message), parts, tokens: sumTokens(parts) };
}
