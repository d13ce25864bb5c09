/**
 * Summarizes messages that no longer fit into the prompt, while no reply is running. Each time the history is trimmed,
 * a chapter is added. When a message of a chapter changes, the chapter is dropped and rewritten, unless the user edited
 * it.
 */
import { isDeepStrictEqual } from "node:util";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { type Chapter, parseChapters, withChapters } from "../conversations/chapters.ts";
import type { ConversationHead } from "../conversations/conversation.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ConversationWriter } from "../conversations/conversation_writer.ts";
import { getContentText, type Message } from "../conversations/message.ts";
import { getErrorTrace } from "../errors.ts";
import type { ChatCall, OpenAiCompletion } from "../llm/chat_event.ts";
import { stripReasoning } from "../llm/reasoning.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import { type CardSource, loadParticipants } from "../prompts/participants.ts";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import { estimateTokens } from "../llm/token_count.ts";
import type { IdleQueue } from "./idle_tasks.ts";
import type { CompletedReply } from "./reply_runner.ts";

/** Dependencies of `Summaries`. */
export interface SummariesDeps {
  store: ConversationStore;
  conversationWriter: ConversationWriter;
  blocks: BlockStore;
  client: UpstreamClient;
  idle: IdleQueue;
  log: Log;
  /** Whether the user wants summaries. */
  isEnabled(): boolean;
  cards: CardSource;
  personas: { findName(id: string): Promise<string | undefined> };
  /** The user's name without a persona. */
  getOwnerName(): string;
}

/** The messages to summarize in one call. */
interface Range {
  messages: Message[];
  /** Whether more messages follow that don't fit into one call. */
  isCut: boolean;
}

/** Messages without a chapter. */
interface Gap {
  /** Number of chapters before it. */
  at: number;
  after: string | undefined;
  before: string;
  range: Range;
}

/** A message to summarize. */
interface NamedText {
  name: string;
  text: string;
}

const TIMEOUT_MS = 5 * 60 * 1000;
/** Share of the prompt budget for the messages, whose size is only estimated. */
const BUDGET_SHARE = 0.6;
/** Number of failures after which no more summaries are requested for a conversation. */
const MAX_FAILURES = 2;
/** Maximum number of conversations whose failures are remembered. */
const MAX_REMEMBERED = 1_000;

const INSTRUCTION =
  "You keep the record of a long conversation. Write down what has happened so far, in at most {words} words, in the language of the conversation and in the past tense: who takes part, what they did, agreed, learned and feel, where they are, and what is still open. Names and facts stay exact. Write the record alone: no heading, no comment.";
/** Token limit: enough for the summary and the reasoning before it. */
const SUMMARY_TOKENS = 900;
/** Limits of a chapter's text, in words and tokens. A context of 500 tokens still gets the least. */
const SUMMARY_WORDS = 250;
const [MIN_CHAPTER_TOKENS, MAX_CHAPTER_TOKENS] = [64, 1_000];
const WORDS_PER_TOKEN = 0.6;
/** Share of the prompt budget for all chapters. Above it, the oldest are merged. No chapter may be longer. */
const CHAPTERS_SHARE = 0.15;
/** Text of a chapter whose messages are all hidden. */
const NOTHING = "…";

/** Summarizes conversations. */
export class Summaries {
  readonly #deps: SummariesDeps;
  /** Failures by conversation. */
  readonly #failures = new Map<string, number>();

  constructor(deps: SummariesDeps) {
    this.#deps = deps;
  }

  /** Queues a summary for the conversation of a reply if its prompt was trimmed. */
  replyCompleted(reply: CompletedReply): void {
    const { idle, isEnabled, log } = this.#deps;
    const { conversationId: id, prompt, target } = reply;
    if (prompt?.isTrimmed !== true || target.kind === "demo" || !isEnabled()) return;
    const oldest = prompt.parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (oldest === undefined || (this.#failures.get(id) ?? 0) >= MAX_FAILURES) return;
    idle.add(`summary ${id}`, {
      run: (signal) => this.#write(reply, oldest, prompt.budget, signal),
      onError: (error) => {
        this.#recordFailure(id);
        log("debug", "Couldn't write a summary", { error: getErrorTrace(error) });
      },
    });
  }

  async #write(reply: CompletedReply, oldest: string, budget: number, stop: AbortSignal): Promise<void> {
    const { store, isEnabled } = this.#deps;
    const head = store.find(reply.conversationId)?.head;
    const written = parseStoredSummary(head?.summary);
    // A summary without messages was written by the user and stays.
    if (head === undefined || !isEnabled() || (written !== undefined && written.upTo === undefined)) return;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
    const chapters = parseChapters(head);
    const gap = this.#findGap(reply.conversationId, chapters, oldest, budget);
    if (gap !== undefined) await this.#addChapter(reply, head, { chapters, gap, oldest, budget }, signal);
    else await this.#mergeChapters(reply, head, { chapters, budget }, signal);
  }

  /** Finds the first messages without a chapter: those of a dropped chapter, or those after the last. */
  #findGap(id: string, chapters: readonly Chapter[], oldest: string, budget: number): Gap | undefined {
    for (let at = 0; at <= chapters.length; at++) {
      const after = chapters[at - 1]?.up_to_message_id;
      const next = chapters[at];
      // A summary without chapters starts with the conversation.
      if (next !== undefined && next.from_message_id === undefined) continue;
      const before = next?.from_message_id ?? oldest;
      const range = this.#readRange(id, after, before, budget);
      if (range.messages.length > 0) return { at, after, before, range };
    }
    return undefined;
  }

  async #addChapter(
    reply: CompletedReply,
    { summary, chapters: stored }: ConversationHead,
    { chapters, gap, oldest, budget }: { chapters: Chapter[]; gap: Gap; oldest: string; budget: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { conversationId: id, target, call: { model } } = reply;
    const { messages } = gap.range;
    const names = new Map<string, string>();
    const texts: NamedText[] = [];
    for (const message of messages.filter(isSummarized)) {
      texts.push({ name: await this.#findName(message, names), text: getContentText(message.content) });
    }
    const maxTokens = getChapterLimit(budget);
    const earlier = chapters.slice(0, gap.at).map(({ text }) => text).join("\n\n");
    const call: ChatCall = {
      ...createChapterCall(model, earlier, texts, maxTokens),
      origin: { kind: "background", conversationId: id },
    };
    const text = texts.length === 0
      ? NOTHING
      : parseSummary(await this.#deps.client.completeChat(target, call, signal), maxTokens);
    if (text === undefined) return this.#recordFailure(id);
    let isWritten = false;
    await this.#deps.conversationWriter.updateHead(id, (head) => {
      const now = this.#readRange(id, gap.after, gap.before, budget).messages;
      // The messages may have changed while the model was writing.
      const isSame = isDeepStrictEqual([head.summary, head.chapters], [summary, stored]);
      if (!isSame || !isDeepStrictEqual(now, messages)) return undefined;
      isWritten = true;
      const chapter = {
        text,
        from_message_id: messages[0]!.id,
        up_to_message_id: messages.at(-1)!.id,
      } satisfies Chapter;
      // Hidden messages alone don't get a chapter: the previous one is extended.
      const previous = texts.length === 0 ? chapters[gap.at - 1] : undefined;
      return withChapters(
        head,
        previous === undefined
          ? chapters.toSpliced(gap.at, 0, chapter)
          : chapters.toSpliced(gap.at - 1, 1, { ...previous, up_to_message_id: chapter.up_to_message_id }),
      );
    });
    // There may be other gaps, or the chapters may be too long in total.
    const isLong = sumChapterTokens(chapters) > budget * CHAPTERS_SHARE;
    const hasMore = gap.range.isCut ||
      this.#findGap(id, parseChapters(this.#getHead(id)), oldest, budget) !== undefined;
    if (isWritten && (hasMore || isLong)) this.replyCompleted(reply);
  }

  /** Merges the two oldest adjacent chapters that weren't edited, if all chapters together are too long. */
  async #mergeChapters(
    reply: CompletedReply,
    { summary, chapters: stored }: ConversationHead,
    { chapters, budget }: { chapters: Chapter[]; budget: number },
    signal: AbortSignal,
  ): Promise<void> {
    if (sumChapterTokens(chapters) <= budget * CHAPTERS_SHARE) return;
    const at = chapters.findIndex((chapter, n) => !chapter.edited && chapters[n + 1] && !chapters[n + 1]!.edited);
    if (at < 0) return;
    const { conversationId: id, target, call: { model } } = reply;
    const [first, second] = [chapters[at]!, chapters[at + 1]!];
    const maxTokens = getChapterLimit(budget);
    const call: ChatCall = {
      ...mergeCall(model, `${first.text}\n\n${second.text}`, maxTokens),
      origin: { kind: "background", conversationId: id },
    };
    const text = parseSummary(await this.#deps.client.completeChat(target, call, signal), maxTokens);
    // A chapter that isn't shorter would be merged again and again.
    if (text === undefined || text.length >= first.text.length + second.text.length) return this.#recordFailure(id);
    let isWritten = false;
    await this.#deps.conversationWriter.updateHead(id, (head) => {
      if (!isDeepStrictEqual([head.summary, head.chapters], [summary, stored])) return undefined;
      isWritten = true;
      return withChapters(
        head,
        chapters.toSpliced(at, 2, { ...first, text, up_to_message_id: second.up_to_message_id }),
      );
    });
    if (isWritten) this.replyCompleted(reply);
  }

  #getHead(id: string): ConversationHead {
    return this.#deps.store.find(id)?.head ?? { title: "", participants: [] };
  }

  async #findName({ role, character_id, persona_id }: Message, known: Map<string, string>): Promise<string> {
    const { cards, personas, getOwnerName } = this.#deps;
    const id = role === "user" ? persona_id : character_id;
    if (typeof id !== "string") return role === "user" ? getOwnerName() : "Assistant";
    const key = `${role} ${id}`;
    const name = known.get(key) ??
      (role === "user"
        ? await personas.findName(id) ?? getOwnerName()
        : (await loadParticipants(cards, [{ character_id: id }]))[0]?.name ?? "Assistant");
    known.set(key, name);
    return name;
  }

  /** Reads the messages between two others, as many as fit into one call. By default from the first. */
  #readRange(id: string, after: string | undefined, before: string, budget: number): Range {
    const { blocks } = this.#deps;
    const messages: Message[] = [];
    let tokens = 0;
    let row = after === undefined ? blocks.next(id) : blocks.findRow(id, after);
    for (; row !== undefined; row = blocks.next(id, row)) {
      const all = blocks.openMessages(id, row);
      for (const message of all.slice(all.findIndex((candidate) => candidate.id === after) + 1)) {
        if (message.id === before) return { messages, isCut: false };
        if (isSummarized(message)) tokens += estimateTokens(getContentText(message.content));
        if (messages.length > 0 && tokens > budget * BUDGET_SHARE) return { messages, isCut: true };
        messages.push(message);
      }
    }
    // The message `before` is gone, or the summary extends beyond it.
    return { messages: [], isCut: false };
  }

  #recordFailure(id: string): void {
    if (this.#failures.size >= MAX_REMEMBERED) this.#failures.clear();
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
  }
}

function isSummarized({ hidden, status, content }: Message): boolean {
  return hidden !== true && status !== "streaming" && content.length > 0;
}

/** @param earlier The text of earlier chapters. */
function createChapterCall(
  model: string,
  earlier: string,
  messages: readonly NamedText[],
  maxTokens: number,
): ChatCall {
  const parts = [
    ...(earlier === "" ? [] : [`The record up to now:\n${earlier}`]),
    `What happened then:\n${messages.map(({ name, text }) => `${name}: ${text}`).join("\n\n")}`,
    earlier === "" ? "Write the record." : "Write what happened then. Don't repeat the record up to now.",
  ];
  return createSummaryCall(model, parts.join("\n\n"), maxTokens);
}

function mergeCall(model: string, record: string, maxTokens: number): ChatCall {
  const content = `The record up to now:\n${record}\n\nWrite the whole record anew, shorter.`;
  return createSummaryCall(model, content, maxTokens);
}

function createSummaryCall(model: string, content: string, maxTokens: number): ChatCall {
  const words = Math.min(SUMMARY_WORDS, Math.floor(maxTokens * WORDS_PER_TOKEN / 10) * 10);
  return {
    model,
    messages: [{ role: "system", content: INSTRUCTION.replace("{words}", String(words)) }, { role: "user", content }],
    params: { max_tokens: SUMMARY_TOKENS },
  };
}

function sumChapterTokens(chapters: readonly Chapter[]): number {
  return chapters.reduce((sum, { text }) => sum + estimateTokens(text), 0);
}

/** Returns the most tokens of one chapter. */
function getChapterLimit(budget: number): number {
  return Math.max(MIN_CHAPTER_TOKENS, Math.min(MAX_CHAPTER_TOKENS, Math.floor(budget * CHAPTERS_SHARE)));
}

/** Returns the summary in a model's reply, cut after a sentence; `undefined` if there is none. */
function parseSummary(completion: OpenAiCompletion, maxTokens: number): string | undefined {
  const text = stripReasoning(completion.choices[0]?.message.content ?? "").trim();
  const tokens = estimateTokens(text);
  if (tokens <= maxTokens) return text || undefined;
  let cut = text.slice(0, Math.floor(text.length * maxTokens / tokens));
  while (estimateTokens(cut) > maxTokens) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  const end = cut.search(/[.!?…。！？][^.!?…。！？]*$/u) + 1;
  return end > cut.length / 2 ? cut.slice(0, end) : `${cut.trimEnd()}…`;
}
