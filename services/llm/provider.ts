/** What each kind of model server (openai, anthropic, demo) must be able to do; upstream.ts chooses among them. */
import type { ChatCall, ChatEvent, OpenAiCompletion } from "./chat_event.ts";

/** The kinds of model server. */
export const PROVIDER_KINDS = ["openai", "anthropic", "demo"] as const;

/** One of the kinds of model server. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** How long a model may be silent, in milliseconds. */
export interface UpstreamTimeouts {
  /** Until the machine takes the connection. */
  connectMs: number;
  /** Until the first byte of the answer's body; a long prompt on a slow machine takes minutes. */
  firstByteMs: number;
  /** Between two bytes of an answer; comments count as bytes. */
  idleMs: number;
}

/** A model server and how to talk to it. */
export interface UpstreamTarget {
  kind: ProviderKind;
  /** As normaliseBaseUrl leaves it; of no meaning for `demo`. */
  baseUrl: string;
  apiKey?: string;
  timeouts: UpstreamTimeouts;
  /** Tokens the model can hold, when known; bounds the default of `max_tokens`. */
  contextSize?: number;
}

/** An answer that is under way. */
export interface ChatStream {
  /**
   * Gives the answer as one array of events per network read; to be iterated once.
   *
   * Returns after the answer's regular end, and after `cancel()`. What came before a failure is always given first.
   *
   * @throws {AppError} `upstream_error` on an error frame, on a cut before the end ("ended without finishing"), on an empty
   *   answer and on a broken cap; `upstream_timeout` when the server was silent for too long.
   * @throws The reason of the caller's signal, when that fired.
   */
  batches(): AsyncIterable<ChatEvent[]>;
  /** Ends the call upstream at once; harmless after the end. */
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

/** One kind of model server. Every call checks the target's address first and masks its key in whatever it throws. */
export interface Provider {
  /**
   * Starts a streamed answer; resolves once the server has accepted the call.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`, `invalid_request` (unusable URL or key)
   * @throws The reason of `signal`, when that fired.
   */
  openChatStream(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<ChatStream>;
  /** Gives a whole answer; throws as openChatStream does. */
  completeChat(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<OpenAiCompletion>;
  /** Lists the server's models; throws as openChatStream does. */
  listModels(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList>;
  /** Asks how many tokens the model can hold; `undefined` where the server does not say. Never throws for that. */
  readContextSize(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<number | undefined>;
  /**
   * Counts the tokens of each text with the model's own tokeniser; `undefined` where the server has none to offer, or
   * failed. Throws only the reason of `signal`.
   */
  countTokens(
    target: UpstreamTarget,
    model: string,
    texts: string[],
    signal: AbortSignal,
  ): Promise<number[] | undefined>;
}
