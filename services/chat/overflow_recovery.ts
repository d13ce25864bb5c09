/** Shortens prompts that a server refuses as too long: learns the context size, and leaves out older messages. */
import { UpstreamError } from "../http/upstream_error.ts";
import type { ChatNotice } from "../llm/chat_event.ts";
import type { ContextSizes } from "../llm/context_sizes.ts";
import type { LeftOutField } from "../llm/provider.ts";
import type { TokenRatios } from "../prompts/token_counter.ts";
import type { UpstreamCall } from "./call_builder.ts";

/** A shorter call, and what to say about it. */
export interface ShorterCall {
  sent: UpstreamCall;
  notice: ChatNotice;
  leftOut: LeftOutField;
}

/** Share of the refused prompt to send if the server doesn't say how long it was, or how long it may be. */
const GUESSED_SHARE = 0.7;
/** Share of the exact size to use, because the rest of the prompt may be miscounted as well. */
const COUNTED_SHARE = 0.97;

/** Shortens refused prompts. */
export class OverflowRecovery {
  readonly #sizes: ContextSizes;
  readonly #ratios: TokenRatios;

  constructor({ sizes, ratios }: { sizes: ContextSizes; ratios: TokenRatios }) {
    this.#sizes = sizes;
    this.#ratios = ratios;
  }

  /**
   * Builds a shorter call after a server refused one as too long.
   *
   * @param build Builds the call anew, with at most so many tokens for prompt and reply.
   * @returns `undefined` if it failed for another reason, the client assembled the prompt, or nothing can be left out.
   */
  async shorten(
    sent: UpstreamCall,
    error: unknown,
    build: (contextLimit: number) => Promise<UpstreamCall>,
  ): Promise<ShorterCall | undefined> {
    const { target, call, prompt } = sent;
    if (!(error instanceof UpstreamError) || error.kind !== "overflow" || prompt === undefined) return undefined;
    const { contextSize, promptTokens } = error.overflow ?? {};
    this.#sizes.reportOverflow(target, call.model, contextSize);
    // The target of a call has the size that was assumed for it.
    const found = await this.#sizes.lookUp({ ...target, contextSize: undefined }, call.model);
    const before = prompt.contextSize.tokens;
    const size = contextSize ?? (found.isAssumed ? before : Math.min(found.tokens, before));
    const reserved = Math.max(0, prompt.neededTokens - prompt.tokens);
    const guess = Math.floor(prompt.tokens * GUESSED_SHARE) + Math.min(reserved, prompt.replyTokens);
    const miscount = (promptTokens ?? 0) / Math.max(1, prompt.tokens);
    const isExplained = size < before || miscount > 1;
    const limit = isExplained ? Math.floor(size / Math.max(1, miscount / COUNTED_SHARE)) : guess;
    const shorter = await build(limit);
    // Only now: the limit already corrects the count.
    if (promptTokens !== undefined && call.params.tools === undefined) {
      this.#ratios.learn(call.model, call.messages, { prompt_tokens: promptTokens });
    }
    if (shorter.prompt === undefined || shorter.prompt.tokens >= prompt.tokens) return undefined;
    const message = isExplained
      ? `The model's context has ${size} tokens. Older messages were left out, and the request was sent again`
      : "The prompt was longer than the model's context. Older messages were left out, and the request was sent again";
    return {
      sent: shorter,
      notice: { code: "prompt_shortened", message, contextSize: isExplained ? size : limit },
      leftOut: { field: "messages", status: error.status ?? 0, reason: message },
    };
  }
}
