/** Sends calls to models, in the form that each model's chat template accepts. */
import { UpstreamError } from "../http/upstream_error.ts";
import type { ChatCall, ChatMessage, OpenAiCompletion, Usage } from "../llm/chat_event.ts";
import type { ChatStream, ListenToNotices, UpstreamClient } from "../llm/upstream_client.ts";
import { isTemplateRefusal, type RoleStrictness, toAlternatingRoles } from "../prompts/prompt_messages.ts";
import type { TokenRatios } from "../prompts/token_counter.ts";
import type { UpstreamCall } from "./call_builder.ts";

/** Models whose strictness is remembered. */
const MAX_MODELS = 200;

function hasTools({ role, tool_calls }: ChatMessage): boolean {
  return role === "tool" || tool_calls !== undefined;
}

/** Sends calls, and learns from their answers. */
export class CallSender {
  readonly #client: UpstreamClient;
  readonly #ratios: TokenRatios;
  readonly #strictness = new Map<string, RoleStrictness>();

  constructor({ client, ratios }: { client: UpstreamClient; ratios: TokenRatios }) {
    this.#client = client;
    this.#ratios = ratios;
  }

  /** Opens a stream. @throws {AppError} `upstream_error` and others, see `Provider`. */
  open(sent: UpstreamCall, signal: AbortSignal, onNotice?: ListenToNotices): Promise<ChatStream> {
    return this.#send(sent, (call) => this.#client.openChatStream(sent.target, call, signal, onNotice));
  }

  /** Returns the whole answer as one OpenAI-shaped object. @throws {AppError} `upstream_error` and others, see `Provider`. */
  async complete(sent: UpstreamCall, signal: AbortSignal): Promise<OpenAiCompletion> {
    const completion = await this.#send(sent, (call) => this.#client.completeChat(sent.target, call, signal));
    this.learnUsage(sent.call, completion.usage);
    return completion;
  }

  /** Improves later token estimates by the token count that the server reported for a call. */
  learnUsage({ model, messages, params }: ChatCall, usage: Usage | undefined): void {
    // The definitions of tools count, too, and no message has them.
    if (params.tools !== undefined) return;
    this.#ratios.learn(model, messages, usage);
  }

  /**
   * Sends a call. Messages that the client assembled go out unchanged. If a chat template refuses the order of messages
   * that the server assembled, they are sent again in a stricter form, and `sent.call` becomes the call as it was sent.
   */
  async #send<T>(sent: UpstreamCall, send: (call: ChatCall) => Promise<T>): Promise<T> {
    const { target, call, prompt } = sent;
    // Rewritten roles would separate tool calls from their results.
    if (prompt === undefined || call.messages.some(hasTools)) return await send(call);
    const key = `${target.baseUrl}\n${call.model}`;
    for (let strictness = this.#strictness.get(key) ?? 0;; strictness++) {
      const messages = toAlternatingRoles(call.messages, strictness as RoleStrictness);
      sent.call = { ...call, messages, ...(strictness > 0 && { stableMessages: undefined }) };
      try {
        const answer = await send(sent.call);
        if (strictness > 0) this.#remember(key, strictness as RoleStrictness);
        return answer;
      } catch (error) {
        const isRefusal = error instanceof UpstreamError && isTemplateRefusal(error.message);
        if (!isRefusal || strictness === 2) throw error;
      }
    }
  }

  #remember(key: string, strictness: RoleStrictness): void {
    if (this.#strictness.size >= MAX_MODELS) this.#strictness.clear();
    this.#strictness.set(key, strictness);
  }
}
