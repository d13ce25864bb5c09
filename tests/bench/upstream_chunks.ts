/** Replies of the benchmarks' model server, as prepared bytes. Loss, duplication or mixing of text is detectable. */

/** The pace of a reply. It is sent in the model name, which all relays forward. */
export type Answer =
  /** The first token at once, then this many per second. */
  | { mode: "paced"; perSecond: number; count: number; tag: string }
  /** The same, and each token contains the time it was sent. */
  | { mode: "stamped"; perSecond: number; count: number; tag: string }
  /** As fast as the reader reads. */
  | { mode: "flood"; count: number; tag: string };

/** Returns the model name of a reply: `paced-50-200-x7`. */
export function modelOf(answer: Answer): string {
  return answer.mode === "flood"
    ? `flood-${answer.count}-${answer.tag}`
    : `${answer.mode}-${answer.perSecond}-${answer.count}-${answer.tag}`;
}

/** Parses a model name; `undefined` if it describes no reply. */
export function answerOf(model: string): Answer | undefined {
  const match = /^(?:(paced|stamped)-(\d+)|flood)-(\d+)-([A-Za-z0-9]+)$/.exec(model);
  if (match === null) return undefined;
  const [count, tag] = [Number(match[3]), match[4]!];
  const mode = match[1] as "paced" | "stamped" | undefined;
  return mode === undefined ? { mode: "flood", count, tag } : { mode, perSecond: Number(match[2]), count, tag };
}

/** Returns the text of a reply. */
export function textOf({ count, tag }: { count: number; tag: string }): string {
  let text = "";
  for (let n = 0; n < count; n++) text += tokenOf(tag, n);
  return text;
}

/** The bytes of a reply. */
export interface AnswerBytes {
  /** The role and all tokens. */
  bytes: Uint8Array;
  /** End offsets of the tokens' events. The first includes the role. */
  ends: number[];
  /** Finish reason, usage and `[DONE]`. */
  last: Uint8Array;
}

/** Creates the bytes of a reply. */
export function bytesOf({ count, tag }: { count: number; tag: string }): AnswerBytes {
  let text = event({ role: "assistant", content: null }, null);
  const ends: number[] = [];
  for (let n = 0; n < count; n++) {
    text += event({ content: tokenOf(tag, n) }, null);
    ends.push(text.length); // ASCII: one code unit per byte.
  }
  const usage = { prompt_tokens: 20, completion_tokens: count, total_tokens: 20 + count };
  const last = `${event({}, "stop")}data: ${JSON.stringify({ ...HEAD, choices: [], usage })}\n\ndata: [DONE]\n\n`;
  return { bytes: encoder.encode(text), ends, last: encoder.encode(last) };
}

/** Returns a token that contains the time it was sent, in ms of the sender's clock. */
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

/** Each token contains the id of its reply and its number. */
function tokenOf(tag: string, n: number): string {
  return ` ${tag}.${n}`;
}

/** An event with llama-server's fields in their order. */
function event(delta: unknown, finishReason: string | null): string {
  return `data: ${JSON.stringify({ choices: [{ finish_reason: finishReason, index: 0, delta }], ...HEAD })}\n\n`;
}
