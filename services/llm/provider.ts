/** The interface of a model server, implemented per protocol in openai/, anthropic/ and demo/. */
import type { HttpTarget } from "../http/http_client.ts";
import type { ChatCall, ChatEvent, OpenAiCompletion } from "./chat_event.ts";

/** The protocols. `demo` needs no server. */
export const PROVIDER_KINDS = ["openai", "anthropic", "demo"] as const;

/** One of the protocols. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** A model server and how to reach it. `baseUrl` is empty for `demo`. */
export interface UpstreamTarget extends HttpTarget {
  kind: ProviderKind;
  /** Context size of the model in tokens, if known. It limits the default of `max_tokens`. */
  contextSize?: number;
}

/** A reply that is being streamed. */
export interface ChatStream {
  /**
   * Yields one array of events per network read. Can be iterated once.
   *
   * Returns after the regular end of the reply and after `cancel()`. Everything received before a failure is yielded first.
   *
   * @throws {AppError} `upstream_error` for an error event, a reply that ends without finishing, an empty reply and an exceeded
   *   size limit; `upstream_timeout` if the server was silent for too long
   * @throws The caller's abort reason.
   */
  batches(): AsyncIterable<ChatEvent[]>;
  /** Ends the call at once. Does nothing after the end. */
  cancel(): void;
}

/** One model as its server lists it. */
export interface ListedModel {
  id: string;
  [more: string]: unknown;
}

/** The models of a server in OpenAI's form. */
export interface ModelList {
  object: "list";
  data: ListedModel[];
}

/** One protocol. Every call checks the target's address first, and no error contains the target's key. */
export interface Provider {
  /**
   * Starts a streamed reply. Resolves once the server has accepted the call.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`, `invalid_request` (unusable URL or key)
   * @throws The caller's abort reason.
   */
  openChatStream(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<ChatStream>;
  /** Returns a complete reply. @throws as `openChatStream` */
  completeChat(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<OpenAiCompletion>;
  /** Lists the server's models. @throws as `openChatStream` */
  listModels(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList>;
  /** Returns a model's context size in tokens, or undefined if the server doesn't say. Throws only the abort reason. */
  readContextSize(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<number | undefined>;
  /**
   * Counts the tokens of each text with the model's own tokenizer. Returns undefined if the server has none, or failed.
   * Throws only the abort reason.
   */
  countTokens(
    target: UpstreamTarget,
    model: string,
    texts: string[],
    signal: AbortSignal,
  ): Promise<number[] | undefined>;
}

// Some servers stop at 400 or 512 tokens by default, others never. A long chat reply fits in this.
const DEFAULT_MAX_TOKENS = 2048;

/** Returns the token limit for a call that sets none: at most half of a known context. */
export function getDefaultMaxTokens(target: UpstreamTarget): number {
  if (target.contextSize === undefined || target.contextSize < 2) return DEFAULT_MAX_TOKENS;
  return Math.min(DEFAULT_MAX_TOKENS, Math.floor(target.contextSize / 2));
}
