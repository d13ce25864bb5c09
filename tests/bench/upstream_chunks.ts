/** What the model server of the benchmarks says: texts that show any loss, doubling or mixing, as ready-made bytes. */

/** How one answer is to come; it travels in the name of the model, which every relay passes through. */
export type Answer =
  /** The first token at once, then so many a second. */
  | { mode: "paced"; perSecond: number; count: number; tag: string }
  /** The same, and each token says when it was sent. */
  | { mode: "stamped"; perSecond: number; count: number; tag: string }
  /** As fast as the reader takes it. */
  | { mode: "flood"; count: number; tag: string };

/** Gives the model's name for an answer: `paced-50-200-x7`. */
export function modelOf(answer: Answer): string {
  return answer.mode === "flood"
    ? `flood-${answer.count}-${answer.tag}`
    : `${answer.mode}-${answer.perSecond}-${answer.count}-${answer.tag}`;
}

/** Reads a model's name; `undefined` when it names no answer. */
export function answerOf(model: string): Answer | undefined {
  const match = /^(?:(paced|stamped)-(\d+)|flood)-(\d+)-([A-Za-z0-9]+)$/.exec(model);
  if (match === null) return undefined;
  const [count, tag] = [Number(match[3]), match[4]!];
  const mode = match[1] as "paced" | "stamped" | undefined;
  return mode === undefined ? { mode: "flood", count, tag } : { mode, perSecond: Number(match[2]), count, tag };
}

/** Gives the whole text of an answer. */
export function textOf({ count, tag }: { count: number; tag: string }): string {
  let text = "";
  for (let n = 0; n < count; n++) text += tokenOf(tag, n);
  return text;
}

/** The bytes of one answer. */
export interface AnswerBytes {
  /** The role and all tokens. */
  bytes: Uint8Array;
  /** Where each token's event ends; the first one's includes the role. */
  ends: number[];
  /** Finish reason, usage and `[DONE]`. */
  last: Uint8Array;
}

/** Makes the bytes of an answer. */
export function bytesOf({ count, tag }: { count: number; tag: string }): AnswerBytes {
  let text = event({ role: "assistant", content: null }, null);
  const ends: number[] = [];
  for (let n = 0; n < count; n++) {
    text += event({ content: tokenOf(tag, n) }, null);
    ends.push(text.length); // all ASCII: one unit a byte
  }
  const usage = { prompt_tokens: 20, completion_tokens: count, total_tokens: 20 + count };
  const last = `${event({}, "stop")}data: ${JSON.stringify({ ...HEAD, choices: [], usage })}\n\ndata: [DONE]\n\n`;
  return { bytes: encoder.encode(text), ends, last: encoder.encode(last) };
}

/** Gives one token that says when it was sent, in ms by the clock of whoever sends it. */
export function stampedToken(tag: string, n: number, sentAtMs: number): Uint8Array {
  return encoder.encode(event({ content: `${tokenOf(tag, n)}@${sentAtMs.toFixed(3)}` }, null));
}

const encoder = new TextEncoder();
const HEAD = {
  created: 1_767_225_600,
  id: "chatcmpl-5bJm0s8LkQ2vT9xYcR4wEh7uNd1aZg6p",
  model: "bench",
  system_fingerprint: "b11434-0123abcd",
  object: "chat.completion.chunk",
};

/** Every token names its answer and its number. */
function tokenOf(tag: string, n: number): string {
  return ` ${tag}.${n}`;
}

/** One event with the fields, and in the order, of llama-server. */
function event(delta: unknown, finishReason: string | null): string {
  return `data: ${JSON.stringify({ choices: [{ finish_reason: finishReason, index: 0, delta }], ...HEAD })}\n\n`;
}
