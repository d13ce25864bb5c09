/** Background calls to models while no reply is running: the queue, and titles of conversations. */
import type { LiveReplies } from "../conversations/live_replies.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { isGreetingTitle, toTitle } from "../conversations/conversation.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ConversationWriter } from "../conversations/conversation_writer.ts";
import { getContentText } from "../conversations/message.ts";
import { getErrorTrace } from "../errors.ts";
import type { ChatCall, ChatMessage, OpenAiCompletion } from "../llm/chat_event.ts";
import { stripReasoning } from "../llm/reasoning.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import type { CompletedReply } from "./reply_runner.ts";

/** A task for the time between replies. */
interface IdleTask {
  /** @param signal Fires when a reply starts or the server closes. */
  run(signal: AbortSignal): Promise<void>;
  /** Called with the error of `run`, unless the signal fired. */
  onError(error: unknown): void;
}

/** Dependencies of an IdleQueue. */
interface IdleQueueDeps {
  live: LiveReplies;
  events: EventHub;
  /** How long to wait after the last reply before a task starts. `Infinity` disables the queue. */
  idleMs?: number;
}

const IDLE_MS = 1_000;
/** Maximum number of waiting tasks. Each has its prompt in memory. */
const MAX_WAITING = 16;

/**
 * Runs tasks one at a time, the newest first, while no reply is running. When a reply starts, the task is cancelled.
 */
export class IdleQueue {
  readonly #deps: IdleQueueDeps;
  /** Waiting tasks by name, the newest last. */
  readonly #waiting = new Map<string, IdleTask>();
  readonly #unsubscribe: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #current: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: IdleQueueDeps) {
    this.#deps = deps;
    this.#unsubscribe = deps.events.subscribe(({ kind }) => {
      // Immediately, before the reply calls the model.
      if (kind === "reply_started") this.#current?.abort();
      if (kind === "reply_started" || kind === "reply_ended") this.#schedule();
    });
  }

  /** Adds a task. It replaces a waiting task of the same name. */
  add(name: string, task: IdleTask): void {
    if (this.#isClosed || this.#deps.idleMs === Infinity) return;
    this.#waiting.delete(name);
    this.#waiting.set(name, task);
    if (this.#waiting.size > MAX_WAITING) this.#waiting.delete(this.#waiting.keys().next().value!);
    this.#schedule();
  }

  /** Cancels the running task and drops the waiting ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    this.#current?.abort();
    await this.#running;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#waiting.size === 0 || this.#isBusy()) return;
    this.#timer = setTimeout(() => {
      if (!this.#isBusy()) this.#running = this.#runNext();
    }, this.#deps.idleMs ?? IDLE_MS);
  }

  #isBusy(): boolean {
    return this.#current !== undefined || this.#deps.live.all().length > 0;
  }

  async #runNext(): Promise<void> {
    const [name, task] = [...this.#waiting].at(-1)!;
    this.#waiting.delete(name);
    const controller = this.#current = new AbortController();
    try {
      await task.run(controller.signal);
    } catch (error) {
      // A task cancelled by a reply runs again later, unless a newer task has its name.
      if (!controller.signal.aborted) task.onError(error);
      else if (!this.#waiting.has(name)) this.#waiting.set(name, task);
    } finally {
      this.#current = undefined;
      this.#schedule();
    }
  }
}

/** Dependencies of Titles. */
interface TitlesDeps {
  store: ConversationStore;
  conversationWriter: ConversationWriter;
  blocks: BlockStore;
  client: UpstreamClient;
  idle: IdleQueue;
  log: Log;
  /** Whether the user wants titles. */
  isEnabled(): boolean;
}

const TIMEOUT_MS = 2 * 60 * 1000;
/** Maximum size of a call that is repeated for a title. Waiting calls are in memory, with their images. */
const MAX_CALL_CHARS = 2 * 1024 * 1024;
/** Number of failures after which no more titles are requested for a conversation. */
const MAX_FAILURES = 2;
/** Maximum number of conversations whose failures are remembered. */
const MAX_REMEMBERED = 1_000;

const INSTRUCTION =
  "Give this conversation a title of two to six words, in the language I write in. Answer with the title alone: no quotation marks, no explanation.";
/** Token limit. A title has about ten tokens; the rest is for reasoning. */
const TITLE_TOKENS = 400;
/**
 * Parameters that change the start of a chat template. They must be the same, or the server can't reuse its prompt
 * cache.
 */
const TEMPLATE_PARAMS = ["chat_template_kwargs", "reasoning_effort", "reasoning"];

/** Generates titles of conversations with their own model. Before that, the title is the first words. */
export class Titles {
  readonly #deps: TitlesDeps;
  /** Failures by conversation. */
  readonly #failures = new Map<string, number>();

  constructor(deps: TitlesDeps) {
    this.#deps = deps;
  }

  /** Queues a title for the conversation of a reply, if it needs one. */
  replyCompleted(reply: CompletedReply): void {
    const { isEnabled, idle } = this.#deps;
    const { conversationId: id, answer, target } = reply;
    if (answer === "" || target.kind === "demo" || !isEnabled()) return;
    if ((this.#failures.get(id) ?? 0) >= MAX_FAILURES || countChars(reply.call) > MAX_CALL_CHARS) return;
    idle.add(`title ${id}`, {
      run: (signal) => this.#write(reply, signal),
      onError: (error) => this.#recordFailure(id, getErrorTrace(error)),
    });
  }

  async #write(reply: CompletedReply, stop: AbortSignal): Promise<void> {
    const before = this.#deps.isEnabled() ? this.#findProvisionalTitle(reply) : undefined;
    if (before === undefined) return;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
    const call: ChatCall = {
      ...createTitleCall(reply.call, reply.answer),
      origin: { kind: "background", conversationId: reply.conversationId },
    };
    const title = parseTitle(await this.#deps.client.completeChat(reply.target, call, signal));
    if (title === undefined) return this.#recordFailure(reply.conversationId, "the reply contains no title");
    await this.#deps.conversationWriter.updateHead(
      reply.conversationId,
      (head) => head.title === before && title !== before ? { ...head, title } : undefined,
    );
  }

  #recordFailure(id: string, error: string): void {
    if (this.#failures.size >= MAX_REMEMBERED) this.#failures.clear();
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
    this.#deps.log("debug", "Couldn't write a title", { error });
  }

  /**
   * Returns the title of a conversation if it's provisional: the first words of its first message, or of the
   * character's greeting. Any other title was chosen by the user.
   */
  #findProvisionalTitle({ conversationId, call }: CompletedReply): string | undefined {
    const { store, blocks } = this.#deps;
    const head = store.find(conversationId)?.head;
    if (head === undefined) return undefined;
    const { title } = head;
    const block = blocks.next(conversationId);
    const first = block === undefined ? [] : blocks.openMessages(conversationId, block);
    if (isGreetingTitle(head, first[0])) return title;
    const userMessages = [
      ...first.filter(({ role }) => role === "user"),
      ...call.messages.filter(({ role }) => role === "user").slice(-1),
    ];
    return userMessages.some(({ content }) => toTitle(getContentText(content)) === title) ? title : undefined;
  }
}

/**
 * Returns the call that asks for a title: the reply's own call, the reply, and an instruction. A server with one slot
 * has everything except the instruction in its cache.
 *
 * @param answer Text of the reply. If it was continued, `call` ends with its start.
 */
export function createTitleCall({ model, messages, params }: ChatCall, answer: string): ChatCall {
  const history = messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages;
  const added: ChatMessage[] = [{ role: "assistant", content: answer }, { role: "user", content: INSTRUCTION }];
  const copied = TEMPLATE_PARAMS.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]);
  return {
    model,
    messages: [...history, ...added],
    params: { ...Object.fromEntries(copied), max_tokens: TITLE_TOKENS },
  };
}

/** Returns the title in a model's reply; `undefined` if there is none. */
export function parseTitle(completion: OpenAiCompletion): string | undefined {
  const text = stripReasoning(completion.choices[0]?.message.content ?? "");
  const lines = text.split(/\r?\n/).map(stripMarkup).filter((line) => line !== "");
  // Skips an introduction such as "Here is a title:".
  const line = lines.find((candidate) => !candidate.endsWith(":"));
  return line === undefined ? undefined : toTitle(line) || undefined;
}

function stripMarkup(line: string): string {
  return line.trim()
    .replace(/^[#>*_\-\s]+|[*_\s]+$/g, "")
    .replace(/^(title|titel|タイトル)\s*[:：]\s*/i, "")
    .replace(/^["'“”„«»「『*_\s]+|["'“”„«»」』*_\s]+$/g, "")
    .replace(/(?<=[^.])\.$/, "");
}

function countChars({ messages }: ChatCall): number {
  return messages.reduce((sum, { content }) => sum + JSON.stringify(content).length, 0);
}
