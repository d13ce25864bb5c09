/** The demo connection of a new installation: streams a fixed text, without a language model or a network. */
import { delay } from "../async/delay.ts";
import type { ChatCall, ChatEvent, ContentPart } from "./chat_event.ts";
import { CompletionBuilder } from "./streaming/completion.ts";
import type { ChatStream, Provider } from "./provider.ts";

/** The only model of the demo. */
const DEMO_MODEL = "demo";

/** Delay between words: about 25 words per second. */
const DELAY_MS = 40;
const ECHO_CHARS = 60;
const CONTEXT_SIZE = 8192;

/**
 * Creates the demo provider.
 *
 * @param options.pauseMs Delay between words.
 */
export function createDemoProvider(options: { delayMs?: number } = {}): Provider {
  const delayMs = options.delayMs ?? DELAY_MS;
  return {
    openChatStream(_target, call, signal): Promise<ChatStream> {
      if (signal.aborted) return Promise.reject(signal.reason);
      const own = new AbortController();
      return Promise.resolve({
        batches: () => streamReply(call, delayMs, signal, own.signal),
        cancel: () => own.abort(),
      });
    },
    completeChat(_target, call, signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const builder = new CompletionBuilder();
      for (const event of createEvents(call)) builder.add(event);
      return Promise.resolve(builder.build(DEMO_MODEL));
    },
    listModels: () =>
      Promise.resolve({ object: "list", data: [{ id: DEMO_MODEL, object: "model", owned_by: "parlor" }] }),
    readContextSize: () => Promise.resolve(CONTEXT_SIZE),
    countTokens: () => Promise.resolve(undefined),
  };
}

/** Returns the reply to a call. It's the same for the same call. */
function createReply(call: ChatCall): string {
  const last = call.messages.findLast((message) => message.role === "user");
  const text = joinText(last?.content).replace(/\s+/g, " ").trim();
  const echo = text === "" ? "Your message has no text." : `You wrote: “${shorten(text)}”.`;
  return `${echo} This is Parlor's demo connection. It is not a language model: it only repeats part of your message. ` +
    "To chat with a real model, start a model server such as llama.cpp, Ollama or LM Studio, then open the connection settings and choose Find servers.";
}

async function* streamReply(
  call: ChatCall,
  delayMs: number,
  signal: AbortSignal,
  own: AbortSignal,
): AsyncGenerator<ChatEvent[]> {
  const anySignal = AbortSignal.any([signal, own]);
  for (const event of createEvents(call)) {
    if (event.type === "text") await delay(delayMs, anySignal).catch(() => {});
    signal.throwIfAborted();
    if (own.aborted) return;
    yield [event];
  }
}

function* createEvents(call: ChatCall): Generator<ChatEvent> {
  const words = createReply(call).match(/\s*\S+/g) ?? [];
  const limit = typeof call.params.max_tokens === "number" ? Math.max(1, call.params.max_tokens) : Infinity;
  const sent = words.slice(0, limit);
  for (const text of sent) yield { type: "text", text };
  yield { type: "finish", reason: sent.length < words.length ? "length" : "stop" };
}

function joinText(content: string | ContentPart[] | null | undefined): string {
  if (content === undefined || content === null || typeof content === "string") return content ?? "";
  return content.map((part) => (typeof part.text === "string" ? part.text : "")).join(" ");
}

function shorten(text: string): string {
  const characters = [...text];
  return characters.length <= ECHO_CHARS ? text : `${characters.slice(0, ECHO_CHARS).join("")}…`;
}
