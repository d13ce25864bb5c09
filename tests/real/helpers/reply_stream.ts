/** Reads a chat stream like a client, and records it. */
import { createParser } from "eventsource-parser";

/** The recorded stream. */
export interface SeenReply {
  text: string;
  /** The text deltas with their event ids; without ids in a stateless stream. */
  steps: { id?: string; delta: string; wireBytes: number }[];
  finishReason?: string;
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  /** Code of the error that ended the stream, if any. */
  error?: { code: string; message: string };
  /** True if `[DONE]` was the last event. */
  isDone: boolean;
}

interface Chunk {
  error?: { code: string; message: string };
  usage?: SeenReply["usage"];
  choices?: { delta?: { content?: string }; finish_reason?: string | null }[];
}

/**
 * Reads a stream to its end, or until the reader has seen enough and leaves, whatever else has arrived with that.
 *
 * A connection that is cut, as by the death of the server, is an end like others: `isDone` stays false.
 */
export async function readReply(answer: Response, isEnough?: (seen: SeenReply) => boolean): Promise<SeenReply> {
  const type = answer.headers.get("content-type") ?? "";
  if (!answer.ok || !type.startsWith("text/event-stream")) {
    throw new Error(`No stream but ${answer.status} ${type}: ${await answer.text()}`);
  }
  const seen: SeenReply = { text: "", steps: [], isDone: false };
  let hasEnough = false;
  const parser = createParser({
    onEvent({ id, data }) {
      if (hasEnough) return;
      if (seen.isDone) throw new Error(`An event behind [DONE]: ${data}`);
      if (data === "[DONE]") seen.isDone = true;
      else take(seen, JSON.parse(data), data, id);
      hasEnough = isEnough?.(seen) ?? false;
    },
  });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parser.feed(value);
      if (hasEnough) break;
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // The error of `fetch` for a broken connection.
  }
  await reader.cancel().catch(() => {});
  return seen;
}

function take(seen: SeenReply, chunk: Chunk, data: string, id: string | undefined): void {
  if (chunk.error !== undefined) seen.error = chunk.error;
  if (chunk.usage !== undefined) seen.usage = chunk.usage;
  const choice = chunk.choices?.[0];
  if (choice?.finish_reason) seen.finishReason = choice.finish_reason;
  const delta = choice?.delta?.content ?? "";
  if (delta === "") return;
  seen.text += delta;
  seen.steps.push({ id, delta, wireBytes: new TextEncoder().encode(`id: ${id}\ndata: ${data}\n\n`).length });
}
