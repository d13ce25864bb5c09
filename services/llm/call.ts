/** How long a call lives: to its answer, or on while its reply is read. */
import type { ChatStream, UpstreamTarget } from "./provider.ts";
import type { OpenAiCompletion } from "./chat_event.ts";
import { CompletionBuilder } from "./streaming/completion.ts";
import { UpstreamCall } from "./model_call.ts";

/**
 * Makes a call that is over with what `ask` gives.
 *
 * @throws What `UpstreamCall.translate` makes of a failure.
 */
export async function withCall<T>(
  target: UpstreamTarget,
  signal: AbortSignal,
  ask: (call: UpstreamCall) => Promise<T>,
): Promise<T> {
  const call = new UpstreamCall(target, signal);
  try {
    return await ask(call);
  } catch (thrown) {
    throw call.translate(thrown);
  } finally {
    call.watch.end();
  }
}

/**
 * Begins a call whose reply is read after this; the reply's end is the call's.
 *
 * @throws What `UpstreamCall.translate` makes of a failure.
 */
export async function openCall(
  target: UpstreamTarget,
  signal: AbortSignal,
  open: (call: UpstreamCall) => Promise<ChatStream>,
): Promise<ChatStream> {
  const call = new UpstreamCall(target, signal);
  try {
    return await open(call);
  } catch (thrown) {
    call.watch.end();
    throw call.translate(thrown);
  }
}

/** Reads a reply to its end and gives it as one answer. */
export async function gathered(reply: ChatStream, model: string): Promise<OpenAiCompletion> {
  const builder = new CompletionBuilder();
  for await (const batch of reply.batches()) {
    for (const event of batch) builder.add(event);
  }
  return builder.build(`chatcmpl-${crypto.randomUUID()}`, model, Date.now());
}
