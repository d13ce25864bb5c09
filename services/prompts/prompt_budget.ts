/**
 * The token budget of a prompt, the position and size of its documents, and the start of a trimmed history. The trim
 * point moves in large steps; between them the start of the prompt stays byte for byte the same, and the server's
 * prompt cache stays valid.
 */
import { LRUCache } from "lru-cache";
import { getDefaultMaxTokens } from "../llm/provider.ts";
import { type Counted, type CountedBlocks, type PromptEntry, toMessage } from "./prompt_messages.ts";
import type { PromptBlock, PromptLimits, PromptMessage } from "./prompt.ts";
import type { ContextSize } from "../llm/context_sizes.ts";
import type { TokenCounter } from "./token_counter.ts";
import type { DocumentUse } from "../documents/document.ts";
import { splitContent } from "../llm/token_count.ts";
import {
  chooseDocuments,
  type ChosenDocuments,
  type DocumentReader,
  type DocumentRequest,
  estimateChosenTokens,
} from "./document_choice.ts";

/** Number of tokens reserved for the template around the messages. */
export const MARGIN_TOKENS = 16;

/** Share of the budget that is filled when trimming, so that the next messages fit without trimming again. */
const TRIM_TO = 0.75;
/**
 * A trim point stays while the history fills at least this share of the budget. A larger context should contain more.
 */
const WORTH_KEEPING = 0.5;
/** Maximum number of remembered conversations. */
const MAX_CONVERSATIONS = 1_000;

/** The trim points of conversations. */
export class TrimPoints {
  /** The oldest message that is sent, by conversation, ordered by last use. */
  readonly #oldest = new LRUCache<string, string>({ max: MAX_CONVERSATIONS });

  /**
   * Returns the number of messages to send, newest first: those up to the last trim point if they fit, otherwise few
   * enough to leave some space.
   *
   * @param remembers False for previews, which must not move the trim point.
   */
  choose(conversationId: string, entries: readonly PromptEntry[], budget: number, remembers: boolean): number {
    const before = this.#oldest.get(conversationId);
    let count = before === undefined ? 0 : entries.findIndex(({ messageId }) => messageId === before) + 1;
    const asBefore = sumTokens(entries.slice(0, count));
    if (count === 0 || asBefore > budget || asBefore < budget * WORTH_KEEPING) {
      count = countFittingMessages(entries, budget * TRIM_TO);
    }
    const oldest = entries[count - 1]?.messageId;
    if (remembers && oldest !== undefined) this.#oldest.set(conversationId, oldest);
    return count;
  }

  /** Forgets the trim point of a conversation that fits again. */
  forget(conversationId: string): void {
    this.#oldest.delete(conversationId);
  }
}

/** Sums the tokens of messages or blocks. */
export function sumTokens(counted: readonly { tokens: number }[]): number {
  return counted.reduce((sum, { tokens }) => sum + tokens, 0);
}

/**
 * Returns the number of messages that fit, newest first: at least one, and if possible starting with a user message.
 */
function countFittingMessages(entries: readonly PromptEntry[], budget: number): number {
  let count = 0;
  for (let used = 0; count < entries.length && (used += entries[count]!.tokens) <= budget;) count++;
  // Some templates reject a history that starts with a reply.
  const fromUser = entries.slice(0, count).findLastIndex(({ message }) => message.role === "user") + 1;
  return Math.max(1, fromUser || count);
}

/**
 * Returns the number of messages to send, newest first, so that every tool result has its call. Results at the start of
 * the history are dropped, except the newest, which need their call.
 */
export function keepResultsWithCalls(entries: readonly PromptEntry[], wantedCount: number): number {
  const isResult = (index: number) => entries[index]?.message.role === "tool";
  let count = wantedCount;
  while (count > 0 && isResult(count - 1)) count--;
  if (count > 0) return count;
  while (isResult(count)) count++;
  return Math.min(entries.length, count + 1);
}

/** Returns the context size within the limit of a preset. */
export function withContextLimit(
  { tokens, isAssumed }: ContextSize,
  { contextTokens = Infinity }: PromptLimits,
): ContextSize {
  return { tokens: Math.min(tokens, contextTokens), isAssumed };
}

/** Divides a context between messages and reply. */
export function computeBudget(
  { tokens, isAssumed }: ContextSize,
  { target, replyTokens, toolTokens = 0 }: PromptLimits,
) {
  const requested = replyTokens ?? getDefaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, requested), Math.floor(tokens / 2));
  return { replyTokens: answer, budget: Math.max(1, tokens - answer - toolTokens - MARGIN_TOKENS) };
}

/** Number of messages before the question that the search for passages uses. */
const QUERY_CONTEXT = 2;
/** Documents come before other blocks of the same depth. */
export const DOCUMENT_ORDER = -2_000_000;

/** The number of tokens for documents, and the messages to which documents belong. */
export interface DocumentBudget {
  /** Newest first. */
  read: readonly PromptMessage[];
  model: string;
  /** Tokens for documents. */
  budget: number;
  /** Number of tokens for documents if only the newest message of the history is sent. */
  maxBudget: number;
}

/** Chooses and places the documents of prompts. */
export class PromptDocuments {
  readonly #counter: TokenCounter;
  readonly #open: (() => Promise<DocumentReader>) | undefined;

  /** @param open Opens the documents, for prompts with documents. */
  constructor(counter: TokenCounter, open?: () => Promise<DocumentReader>) {
    this.#counter = counter;
    this.#open = open;
  }

  /**
   * Chooses the parts of documents to send.
   *
   * @param options.waits False for previews, which don't wait for documents that are being extracted.
   * @throws The reason of `signal` if aborted.
   */
  async choose(
    requested: readonly DocumentRequest[],
    { read, model, budget, maxBudget }: DocumentBudget,
    options: { waits: boolean; signal: AbortSignal },
  ): Promise<ChosenDocuments> {
    if (this.#open === undefined) return { fixed: [], sent: [] };
    const question = read.findIndex(({ message }) => message.role === "user");
    const getText = (message: PromptMessage | undefined) =>
      message === undefined ? "" : splitContent(message.message).text;
    const input = {
      requested,
      budget,
      maxBudget,
      query: {
        text: getText(read[Math.max(0, question)]),
        context: read.slice(Math.max(0, question) + 1, question + 1 + QUERY_CONTEXT).map(getText).join("\n"),
      },
      estimate: (text: string) => this.#counter.estimate({ role: "system", content: text }, model),
      tokenRatio: this.#counter.getRatio(model),
    };
    return await chooseDocuments(await this.#open(), input, options);
  }

  /** Estimates the tokens of what the user chose; see `estimateChosenTokens`. */
  async estimateChosen(requested: readonly DocumentRequest[], model: string): Promise<number> {
    if (this.#open === undefined || requested.every(({ use }) => use.use === "auto")) return 0;
    return estimateChosenTokens(await this.#open(), requested, this.#counter.getRatio(model));
  }

  /**
   * Inserts documents so that the start of the prompt stays the same: attached ones before the history, those of a
   * message before it, and passages before the newest user message.
   */
  insert(
    { leading, inserted }: Pick<CountedBlocks, "leading" | "inserted">,
    { fixed, passages }: ChosenDocuments,
    { read, model, continuesLast }: Pick<DocumentBudget, "read" | "model"> & { continuesLast?: boolean },
  ): void {
    const count = (text: string): Counted => {
      const block: PromptBlock = { part: "documents", role: "system", text };
      return { ...block, tokens: this.#counter.estimate(toMessage(block), model) };
    };
    const insert = (text: string, index: number) => {
      // The message to continue isn't part of the history.
      const depth = index < 0 ? Infinity : index + (continuesLast ? 0 : 1);
      inserted.push({ ...count(text), depth, order: DOCUMENT_ORDER });
    };
    const first = leading.findIndex(({ part }) => part === "chat_begins" || part === "summary");
    const atHand = fixed.filter(({ messageId }) => messageId === undefined).map(({ text }) => count(text));
    leading.splice(first < 0 ? leading.length : first, 0, ...atHand);
    for (const { text, messageId } of fixed) {
      if (messageId !== undefined) insert(text, read.findIndex((message) => toMessageKey(message) === messageId));
    }
    if (passages !== undefined) insert(passages, read.findIndex(({ message }) => message.role === "user"));
  }
}

/** Identifies a message of the history, even if it isn't stored yet. */
export function toMessageKey({ id }: PromptMessage): string {
  return id ?? "";
}

/**
 * Lists the documents of a prompt, oldest first, each once. The first mention determines its position, the last one how
 * much of it is sent.
 */
export function findRequestedDocuments(
  atHand: readonly DocumentUse[],
  read: readonly PromptMessage[],
  earlier: readonly DocumentRequest[],
): DocumentRequest[] {
  const inMessages = read.toReversed().flatMap((message) =>
    (message.documents ?? []).map((use) => ({ use, messageId: toMessageKey(message) }))
  );
  const requested = new Map<string, DocumentRequest>();
  for (const one of [...atHand.map((use) => ({ use })), ...earlier.toReversed(), ...inMessages]) {
    requested.set(one.use.id, { ...requested.get(one.use.id) ?? one, use: one.use });
  }
  return [...requested.values()];
}
