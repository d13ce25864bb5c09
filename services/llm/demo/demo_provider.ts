/** The connection of a fresh installation: no language model, no network, a fixed text word by word. */
import { delay } from "../../async/delay.ts";
import type { ChatCall, ChatEvent, ContentPart } from "../chat_event.ts";
import { CompletionBuilder } from "../streaming/completion.ts";
import type { ChatStream, Provider } from "../provider.ts";

/** The one model the demo lists. */
const DEMO_MODEL = "demo";

const PAUSE_MS = 40; // about 25 words a second, a fast reader's pace
const ECHO_CHARS = 60;
const CONTEXT_SIZE = 8192;

/** Makes the demo; `pauseMs` is the pause between two words. */
export function createDemoProvider(options: { pauseMs?: number } = {}): Provider {
  const pauseMs = options.pauseMs ?? PAUSE_MS;
  return {
    openChatStream(_target, call, signal): Promise<ChatStream> {
      if (signal.aborted) return Promise.reject(signal.reason);
      const own = new AbortController();
      return Promise.resolve({
        batches: () => speak(call, pauseMs, signal, own.signal),
        cancel: () => own.abort(),
      });
    },
    completeChat(_target, call, signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const builder = new CompletionBuilder();
      for (const event of eventsFor(call)) builder.add(event);
      return Promise.resolve(builder.build(`chatcmpl-${crypto.randomUUID()}`, DEMO_MODEL, Date.now()));
    },
    listModels: () =>
      Promise.resolve({ object: "list", data: [{ id: DEMO_MODEL, object: "model", owned_by: "parlor" }] }),
    readContextSize: () => Promise.resolve(CONTEXT_SIZE),
    countTokens: () => Promise.resolve(undefined),
  };
}

/** Gives what the demo answers to a call; the same call gets the same text. */
function demoAnswer(call: ChatCall): string {
  const last = call.messages.findLast((message) => message.role === "user");
  const said = textOf(last?.content).replace(/\s+/g, " ").trim();
  const echo = said === "" ? "You sent nothing that I could read." : `You wrote: “${shorten(said)}”.`;
  return `${echo} This is Parlor's demo connection. I am no language model: I only repeat a few of your words and this text. ` +
    "To talk to a real model, start a model server such as llama.cpp, Ollama or LM Studio, open the connection settings and choose Discover.";
}

async function* speak(
  call: ChatCall,
  pauseMs: number,
  signal: AbortSignal,
  own: AbortSignal,
): AsyncGenerator<ChatEvent[]> {
  const anySignal = AbortSignal.any([signal, own]);
  for (const event of eventsFor(call)) {
    if (event.type === "text") await delay(pauseMs, anySignal).catch(() => {});
    signal.throwIfAborted();
    if (own.aborted) return;
    yield [event];
  }
}

function* eventsFor(call: ChatCall): Generator<ChatEvent> {
  const words = demoAnswer(call).match(/\s*\S+/g) ?? [];
  const limit = typeof call.params.max_tokens === "number" ? Math.max(1, call.params.max_tokens) : Infinity;
  const spoken = words.slice(0, limit);
  for (const text of spoken) yield { type: "text", text };
  yield { type: "finish", reason: spoken.length < words.length ? "length" : "stop" };
}

function textOf(content: string | ContentPart[] | undefined): string {
  if (content === undefined || typeof content === "string") return content ?? "";
  return content.map((part) => (typeof part.text === "string" ? part.text : "")).join(" ");
}

function shorten(text: string): string {
  const characters = [...text];
  return characters.length <= ECHO_CHARS ? text : `${characters.slice(0, ECHO_CHARS).join("")}…`;
}
