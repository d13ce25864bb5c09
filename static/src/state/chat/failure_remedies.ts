/** Remedies for a failed reply: a shorter prompt, without the oldest messages or with a summary, or waiting. */
import { getTimeZone } from "../../api/conversations.ts";
import type { Api } from "../../api/api.ts";
import type { ChatPreview, Message } from "../../api/types.ts";
import { getContentText, splitReasoning } from "./message_text.ts";
import type { OpenChat } from "./open_chat.ts";

/** Share of the present size that is left after one step; several steps are better than losing too much at once. */
const STEP = 0.75;
/** Below this, a prompt has no room for a history, in tokens. */
const SMALLEST = 512;

/** Share of the limit for the messages of one summary, and how few characters a token may have. */
const SUMMARY_SHARE = 0.5;
const CHARS_PER_TOKEN = 3;
/** Tokens of a summary, with the reasoning before it. */
const SUMMARY_TOKENS = 900;
/** Most calls for one summary. Of a longer history, the oldest part is left out. */
const MAX_CALLS = 10;
/** Messages of a page: the server's maximum. */
const PAGE = 500;

const INSTRUCTION =
  "You keep the record of a long conversation. Write down what has happened so far, in at most 250 words, in the language of the conversation and in the past tense: who takes part, what they did, agreed, learned and feel, where they are, and what is still open. Names and facts stay exact. Write the record alone: no heading, no comment.";

/** Returns the prompt of the failed reply's next attempt. @throws {ApiError} */
async function preview(
  api: Api,
  chat: OpenChat,
  messageId: string,
  signal: AbortSignal,
  limit?: number,
): Promise<ChatPreview> {
  const body = {
    conversation_id: chat.id,
    assistant_message_id: messageId,
    action: "regenerate",
    context: "server",
    messages: [],
    time_zone: getTimeZone(),
    context_size: limit,
  };
  return await (await api.client.send("POST", "/api/chat/preview", { body, signal })).json();
}

/**
 * Finds a limit with which the oldest messages are left out of the next attempt. Nothing remembers it: it's a guess.
 *
 * @returns The limit in tokens, and the prompt with it; undefined if nothing more can be left out.
 * @throws {ApiError}
 */
export async function findShorterPrompt(
  api: Api,
  chat: OpenChat,
  messageId: string,
  signal: AbortSignal,
): Promise<{ limit: number; shortened: ChatPreview } | undefined> {
  const complete = await preview(api, chat, messageId, signal);
  const size = Math.min(complete.context_size, complete.tokens + complete.answer_tokens);
  const limit = Math.max(SMALLEST, Math.floor(size * STEP / 256) * 256);
  if (limit >= size) return undefined;
  const shortened = await preview(api, chat, messageId, signal, limit);
  return shortened.tokens < complete.tokens ? { limit, shortened } : undefined;
}

/**
 * Summarizes the messages that a prompt leaves out. The server then sends the summary in their place.
 *
 * @param limit Tokens that one call may have.
 * @returns False if the model wrote nothing.
 * @throws {ApiError}
 */
export async function summarizeLeftOut(
  api: Api,
  chat: OpenChat,
  { limit, shortened }: { limit: number; shortened: ChatPreview },
  signal: AbortSignal,
): Promise<boolean> {
  const last = shortened.dropped.last_message_id;
  if (last === undefined) return true;
  const { summary } = chat.options.peek();
  const messages = await readMessages(api, chat.id, summary?.up_to_message_id ?? undefined, last, signal);
  const parts = splitIntoParts(messages, Math.floor(limit * SUMMARY_SHARE * CHARS_PER_TOKEN)).slice(-MAX_CALLS);
  let record = summary?.text ?? "";
  for (const part of parts) {
    const content = [
      ...(record === "" ? [] : [`The record up to now:\n${record}`]),
      `What happened then:\n${part}`,
      "Write the whole record anew, with both.",
    ].join("\n\n");
    const body = {
      connection_id: shortened.connection.id,
      model: shortened.model,
      stream: false,
      max_tokens: SUMMARY_TOKENS,
      messages: [{ role: "system", content: INSTRUCTION }, { role: "user", content }],
    };
    const response = await api.client.send("POST", "/api/chat", { body, signal });
    const completion: { choices?: { message?: { content?: string | null } }[] } = await response.json();
    record = splitReasoning(completion.choices?.[0]?.message?.content ?? "").text.trim();
    if (record === "") return false;
  }
  if (parts.length > 0) await chat.change({ summary: { text: record, up_to_message_id: last } });
  return true;
}

/** Reads the messages after one (or all from the start) up to another. */
async function readMessages(
  api: Api,
  id: string,
  after: string | undefined,
  last: string,
  signal: AbortSignal,
): Promise<Message[]> {
  const found: Message[] = [await api.getMessage(id, last)];
  for (let before: string | null = last; before !== null;) {
    const page: { items: Message[]; next_cursor: string | null } = await api.listMessages(id, PAGE, before, signal);
    const start = page.items.findIndex((message) => message.id === after);
    found.unshift(...page.items.slice(start + 1));
    before = start >= 0 ? null : page.next_cursor;
  }
  return found.filter(({ hidden, status }) => hidden !== true && status !== "streaming");
}

/** Splits messages into texts of at most this many characters. A longer message is cut. */
function splitIntoParts(messages: readonly Message[], maxChars: number): string[] {
  const parts: string[] = [];
  for (const { role, content } of messages) {
    const text = getContentText(content).trim();
    if (text === "") continue;
    const line = `${role === "user" ? "User" : "Assistant"}: ${text}`.slice(0, maxChars);
    const last = parts.at(-1);
    if (last !== undefined && last.length + line.length + 2 <= maxChars) parts[parts.length - 1] = `${last}\n\n${line}`;
    else parts.push(line);
  }
  return parts;
}

/** Delay before the first attempt and the longest one, in milliseconds. Each attempt waits half as long again. */
const FIRST_MS = 2_000;
const LONGEST_MS = 15_000;
const FACTOR = 1.5;

/**
 * Asks again and again, only while the page is visible, and at once when it becomes visible or the network returns.
 *
 * @param probe Resolves to true when the server works. Never rejects.
 * @param firstMs Delay before the first attempt.
 * @returns A function that stops waiting.
 */
export function waitForServer(probe: () => Promise<boolean>, onReady: () => void, firstMs = FIRST_MS): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delayMs = firstMs;
  let isOver = false;
  let isAsking = false;
  const stop = () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", askSoon);
    removeEventListener("online", askSoon);
  };
  const plan = () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(ask, delayMs);
  };
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    const works = await probe();
    isAsking = false;
    if (isOver) return;
    if (works) {
      stop();
      return onReady();
    }
    delayMs = Math.max(delayMs, Math.min(LONGEST_MS, delayMs * FACTOR));
    plan();
  };
  function askSoon(): void {
    if (document.visibilityState === "visible") void ask();
    else clearTimeout(timer);
  }
  document.addEventListener("visibilitychange", askSoon);
  addEventListener("online", askSoon);
  plan();
  return stop;
}
