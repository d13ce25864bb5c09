/** Shared helpers: a target for a fake server, and a reply that is read completely. */
import type { ChatCall, ChatEvent } from "../../../services/llm/chat_event.ts";
import type { ChatStream, UpstreamTarget } from "../../../services/llm/provider.ts";
import { UpstreamError, type UpstreamErrorKind } from "../../../services/http/upstream_error.ts";

/** Limits that no test reaches by accident. */
export const TIMEOUTS = { connectMs: 10_000, firstByteMs: 20_000, idleMs: 20_000 };

/** A target with generous limits. */
export function target(baseUrl: string, more: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return { kind: "openai", baseUrl, timeouts: TIMEOUTS, ...more };
}

/** A call with one user message. */
export function ask(text = "hi", params: Record<string, unknown> = {}, model = "fake-model"): ChatCall {
  return { model, messages: [{ role: "user", content: text }], params };
}

/** A signal that never fires. */
export function never(): AbortSignal {
  return new AbortController().signal;
}

/** The result of a response. */
export interface Gathered {
  text: string;
  reasoning: string;
  events: ChatEvent[];
  batches: number;
  error: unknown;
}

/** Reads a reply to its end and keeps what arrived before a failure; `onBatch` receives the text so far after each batch. */
export async function gather(stream: ChatStream, onBatch?: (text: string) => void): Promise<Gathered> {
  const gathered: Gathered = { text: "", reasoning: "", events: [], batches: 0, error: undefined };
  const text: string[] = [];
  try {
    for await (const batch of stream.batches()) {
      gathered.batches++;
      for (const event of batch) {
        gathered.events.push(event);
        if (event.type === "text") text.push(event.text);
        if (event.type === "reasoning") gathered.reasoning += event.text;
      }
      onBatch?.(text.join(""));
    }
  } catch (error) {
    gathered.error = error;
  }
  gathered.text = text.join("");
  return gathered;
}

/** The finish reason of an answer. */
export function finishOf(gathered: Gathered): string | undefined {
  return gathered.events.find((event) => event.type === "finish")?.reason;
}

/** Waits for a failure and returns it. */
export async function failureOf(promise: Promise<unknown>): Promise<UpstreamError> {
  const thrown = await promise.then(() => undefined, (error) => error);
  if (!(thrown instanceof UpstreamError)) throw new Error(`Expected an UpstreamError, found ${thrown}`);
  return thrown;
}

/** The kind of an error if it comes from a model server. */
export function kindOf(error: unknown): UpstreamErrorKind | undefined {
  return error instanceof UpstreamError ? error.kind : undefined;
}
