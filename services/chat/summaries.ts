/**
 * Summarizes messages that no longer fit into the prompt, while no reply is being written. The summary is extended with each
 * cut of the history, and dropped when a message that it covers changes.
 */
import { isDeepStrictEqual } from "node:util";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { type Message, textOfContent } from "../conversations/message.ts";
import { updateHead, type UpdateHeadDeps } from "../conversations/system_update.ts";
import { traceOf } from "../errors.ts";
import type { ChatCall, OpenAiCompletion } from "../llm/chat_event.ts";
import { stripReasoning } from "../llm/reasoning.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import { type CardSource, loadParticipants } from "../prompts/participants.ts";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import { estimateTokens } from "../prompts/tokens/token_estimate.ts";
import type { IdleQueue } from "./idle_queue.ts";
import type { CompletedReply } from "./reply_runner.ts";

/** Dependencies of Summaries. */
export interface SummariesDeps extends UpdateHeadDeps {
  blocks: BlockStore;
  client: UpstreamClient;
  idle: IdleQueue;
  log: Log;
  /** Whether the user wants summaries. */
  isWanted(): boolean;
  cards: CardSource;
  personas: { findName(id: string): Promise<string | undefined> };
  /** The user's name without a persona. */
  ownerName(): string;
}

/** The messages of one summary. */
interface Range {
  messages: Message[];
  /** Whether more messages follow that don't fit into one call. */
  isCut: boolean;
}

/** A message to summarize. */
interface NamedText {
  name: string;
  text: string;
}

const TIMEOUT_MS = 5 * 60 * 1000;
/** Share of the prompt budget for the messages. Their size is only estimated. */
const BUDGET_SHARE = 0.6;
/** Failures after which a conversation's model isn't asked again. */
const MAX_FAILURES = 2;
/** Conversations whose failures are remembered. */
const MAX_REMEMBERED = 1_000;

const INSTRUCTION =
  "You keep the record of a long conversation. Write down what has happened so far, in at most 250 words, in the language of the conversation and in the past tense: who takes part, what they did, agreed, learned and feel, where they are, and what is still open. Names and facts stay exact. Write the record alone: no heading, no comment.";
/** Enough for the summary and for the reasoning before it. */
const SUMMARY_TOKENS = 900;
const MAX_SUMMARY_CHARS = 4_000;

/** Summarizes conversations. */
export class Summaries {
  readonly #deps: SummariesDeps;
  /** Failures by conversation. */
  readonly #failures = new Map<string, number>();

  constructor(deps: SummariesDeps) {
    this.#deps = deps;
  }

  /** Queues a summary for the conversation of a reply, if its prompt was cut. */
  replyCompleted(reply: CompletedReply): void {
    const { idle, isWanted, log } = this.#deps;
    const { conversationId: id, prompt, target } = reply;
    if (prompt?.isTrimmed !== true || target.kind === "demo" || !isWanted()) return;
    const oldest = prompt.parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (oldest === undefined || (this.#failures.get(id) ?? 0) >= MAX_FAILURES) return;
    idle.add(`summary ${id}`, {
      run: (signal) => this.#write(reply, oldest, prompt.budget, signal),
      onError: (error) => {
        this.#recordFailure(id);
        log("debug", "Couldn't write a summary", { error: traceOf(error) });
      },
    });
  }

  async #write(reply: CompletedReply, oldest: string, budget: number, stop: AbortSignal): Promise<void> {
    const { store, isWanted, client } = this.#deps;
    const { conversationId: id, target, call: { model } } = reply;
    const stored = store.find(id)?.head.summary;
    const before = parseStoredSummary(stored);
    // A summary that names no message was written by the user and stays.
    if (!isWanted() || (before !== undefined && before.upTo === undefined)) return;
    const { messages, isCut } = this.#readRange(id, before?.upTo, oldest, budget);
    if (messages.length === 0) return;
    const names = new Map<string, string>();
    const texts: NamedText[] = [];
    for (const message of messages.filter(isSummarized)) {
      texts.push({ name: await this.#findName(message, names), text: textOfContent(message.content) });
    }
    const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
    const text = texts.length === 0
      ? before?.text
      : parseSummary(await client.completeChat(target, summaryCall(model, before?.text, texts), signal));
    if (text === undefined) return this.#recordFailure(id);
    let isWritten = false;
    await updateHead(this.#deps, id, (head) => {
      const current = this.#readRange(id, before?.upTo, oldest, budget).messages;
      // The messages may have changed while the model was writing.
      if (!isDeepStrictEqual(head.summary, stored) || !isDeepStrictEqual(current, messages)) return undefined;
      isWritten = true;
      return { ...head, summary: { text, up_to_message_id: messages.at(-1)!.id } };
    });
    if (isWritten && isCut) this.replyCompleted(reply);
  }

  async #findName({ role, character_id, persona_id }: Message, known: Map<string, string>): Promise<string> {
    const { cards, personas, ownerName } = this.#deps;
    const id = role === "user" ? persona_id : character_id;
    if (typeof id !== "string") return role === "user" ? ownerName() : "Assistant";
    const key = `${role} ${id}`;
    const name = known.get(key) ??
      (role === "user"
        ? await personas.findName(id) ?? ownerName()
        : (await loadParticipants(cards, [{ character_id: id }]))[0]?.name ?? "Assistant");
    known.set(key, name);
    return name;
  }

  /** Reads the messages between two others, as many as fit into one call. Without `after` it starts with the first. */
  #readRange(id: string, after: string | undefined, before: string, budget: number): Range {
    const { blocks } = this.#deps;
    const messages: Message[] = [];
    let tokens = 0;
    let row = after === undefined ? blocks.next(id) : blocks.rowOf(id, after);
    for (; row !== undefined; row = blocks.next(id, row)) {
      const all = blocks.messagesOf(id, row);
      for (const message of all.slice(all.findIndex((candidate) => candidate.id === after) + 1)) {
        if (message.id === before) return { messages, isCut: false };
        if (isSummarized(message)) tokens += estimateTokens(textOfContent(message.content));
        if (messages.length > 0 && tokens > budget * BUDGET_SHARE) return { messages, isCut: true };
        messages.push(message);
      }
    }
    // The message `before` is gone, or the summary goes beyond it.
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

/** @param before The summary of what came earlier. */
function summaryCall(model: string, before: string | undefined, messages: readonly NamedText[]): ChatCall {
  const parts = [
    ...(before === undefined ? [] : [`The record up to now:\n${before}`]),
    `What happened then:\n${messages.map(({ name, text }) => `${name}: ${text}`).join("\n\n")}`,
    "Write the whole record anew, with both.",
  ];
  return {
    model,
    messages: [{ role: "system", content: INSTRUCTION }, { role: "user", content: parts.join("\n\n") }],
    params: { max_tokens: SUMMARY_TOKENS },
  };
}

/** Returns the summary in a model's answer, `undefined` if there is none. */
function parseSummary(completion: OpenAiCompletion): string | undefined {
  const text = stripReasoning(completion.choices[0]?.message.content ?? "").trim();
  if (text.length <= MAX_SUMMARY_CHARS) return text || undefined;
  const cut = text.slice(0, MAX_SUMMARY_CHARS);
  return cut.slice(0, Math.max(cut.lastIndexOf(". ") + 1, MAX_SUMMARY_CHARS / 2));
}
