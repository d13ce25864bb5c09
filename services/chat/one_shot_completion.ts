/** One question to the active connection that belongs to no conversation. */
import { AppError } from "../errors.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ChatUpstream } from "./chat_request.ts";
import { withoutThoughts } from "../llm/reasoning.ts";

/** Asks a model. */
export type AskModel = (messages: ChatMessage[], signal: AbortSignal) => Promise<string | undefined>;

/** Enough for a paragraph, and for what a model that thinks first needs before it. */
const MAX_TOKENS = 1_000;

/**
 * Makes the asking.
 *
 * @returns Gives the answer's text; `undefined` where the active connection is the demo, which understands no question.
 *   It throws as a chat does: `not_available` without a connection, `upstream_error` for one that fails or says nothing.
 */
export function createAskModel(upstream: Pick<ChatUpstream, "route" | "complete">): AskModel {
  return async (messages, signal) => {
    const { target, model } = await upstream.route({}, signal);
    if (target.kind === "demo") return undefined;
    const completion = await upstream.complete(target, { model, messages, params: { max_tokens: MAX_TOKENS } }, signal);
    const text = withoutThoughts(completion.choices[0]?.message.content ?? "").trim();
    if (text === "") throw new AppError("upstream_error", `The model "${model}" gave no answer`);
    return text;
  };
}
