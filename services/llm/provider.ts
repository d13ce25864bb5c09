/** The interface of a model server, implemented per protocol in openai/, anthropic/, ollama/ and demo_provider.ts. */
import type { HttpTarget } from "../http/http_client.ts";
import type { ChatCall, ChatEvent, ChatNotice, OpenAiCompletion } from "./chat_event.ts";
import type { ServerContract } from "./contract/contract.ts";
import type { ModelFacts } from "./connections/connection_test.ts";
import type { Dialect, DialectName } from "./dialects/dialect.ts";
import { chooseDialect } from "./dialects/dialects.ts";
import type { RefusalMemory } from "./refused_fields.ts";
import { toHeaderKey } from "../http/base_url.ts";

/** The protocols. `demo` needs no server. */
export const PROVIDER_KINDS = ["openai", "openai-responses", "anthropic", "ollama", "demo"] as const;

/** One of the protocols. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** A failed call in the format of `last_call`. */
export interface CallFailure {
  code: string;
  message: string;
  /** `UpstreamErrorKind`, or the code of an error that isn't the server's. */
  kind: string;
}

/** Something that the owner should know about a working server. */
export interface ServerNotice {
  code: "model_spills";
  message: string;
}

/** Whether a model thinks; `"adaptive"` if it also chooses its own thinking budget. */
export type ModelThinking = boolean | "adaptive";

/** The connection that a call belongs to. */
export interface CallConnection {
  id: string;
  name: string;
  /** What was learned about this connection. Absent if nothing should be remembered. */
  memory?: RefusalMemory & {
    /** Records how a call ended. */
    reportCall(failure: CallFailure | undefined): void;
    /** Records a notice about the server, or that there is none. */
    reportNotice(notice: ServerNotice | undefined): void;
    /** Records the kind of the server. */
    reportDialect(detected: DialectName): void;
    /** Records whether a model thinks; `"adaptive"` if it rejects a budget, because it chooses its own. */
    reportThinking(model: string, thinking: ModelThinking): void;
    /** Records the models that the server lists, in its order. */
    reportModels(models: readonly ModelFacts[]): void;
    /** Records what the server was found to do with a model. */
    reportContract(model: string, contract: ServerContract): void;
  };
}

/** A model server and its access data. `baseUrl` is empty for `demo`, and has no query. */
export interface UpstreamTarget extends HttpTarget {
  kind: ProviderKind;
  /** Sent with every request: `"api-version=2024-10-21"`. */
  query?: string;
  /** The server's dialect. By default derived from `kind` and the address. */
  dialect?: Dialect;
  /** Additional headers, which override Parlor's own. Masked in errors. */
  headers?: Record<string, string>;
  /** Additional fields of chat requests. The fields of the request take precedence. */
  extraBody?: Record<string, unknown>;
  /** Absent for servers that aren't saved. */
  connection?: CallConnection;
  /** Context size of the model in tokens, if known. It limits the default of `max_tokens`. */
  contextSize?: number;
  /** Whether the owner lets the provider of the Responses API store replies while they're written. */
  background?: boolean;
}

/** A field that was left out of a request because the server rejects it. */
export interface LeftOutField {
  field: string;
  /** HTTP status of the rejection. */
  status: number;
  /** The server's explanation. */
  reason: string;
}

/** Facts about a sent chat request. */
export interface SentFacts {
  leftOut: LeftOutField[];
  /** The token limit of the reply, if one was sent. */
  outputLimit?: number;
}

/** A reply that is being streamed. */
export interface ChatStream {
  /** Absent if the provider doesn't send a request. */
  readonly sent?: SentFacts;
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
  /** Ends the call immediately. Does nothing after the end. */
  cancel(): void;
}

/** A model in a server's list. */
export interface ListedModel {
  id: string;
  [more: string]: unknown;
}

/** The models of a server in OpenAI's format. */
export interface ModelList {
  object: "list";
  data: ListedModel[];
}

/** Receives notices about what a server does before it answers. */
export type ListenToNotices = (notice: ChatNotice) => void;

/** One protocol. Every call checks the target's address first, and no error contains the target's key. */
export interface Provider {
  /**
   * Starts a streamed reply. Resolves once the server has accepted the call.
   *
   * @param onNotice Called before that.
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`, `invalid_request` (unusable URL or key)
   * @throws The caller's abort reason.
   */
  openChatStream(
    target: UpstreamTarget,
    call: ChatCall,
    signal: AbortSignal,
    onNotice?: ListenToNotices,
  ): Promise<ChatStream>;
  /**
   * Reads a stream that the server has kept under its ID, from its start and then live. Absent if the protocol has none.
   *
   * @param call.after Only reads what follows this event.
   * @returns `undefined` if the server doesn't have it, or not all of it.
   * @throws Like `openChatStream`
   */
  reopenChatStream?(
    target: UpstreamTarget,
    call: Pick<ChatCall, "model" | "origin"> & { streamId: string; after?: number },
    signal: AbortSignal,
  ): Promise<ChatStream | undefined>;
  /** Ends a kept stream and makes the server forget it. Does nothing if it has none. @throws Like `openChatStream` */
  releaseChatStream?(target: UpstreamTarget, streamId: string, signal: AbortSignal): Promise<void>;
  /** Returns a complete reply. @throws Like `openChatStream` */
  completeChat(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<OpenAiCompletion>;
  /** Lists the server's models. @throws Like `openChatStream` */
  listModels(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList>;
  /**
   * Returns a model's context size in tokens, or `undefined` if the server doesn't report it. Only throws the abort
   * reason.
   */
  readContextSize(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<number | undefined>;
  /**
   * Returns the context size in tokens that would be requested from the server. Only for protocols whose calls set the
   * size; `readContextSize` returns their maximum. Returns `undefined` on failure. Only throws the abort reason.
   *
   * @param needed Number of tokens of prompt and reply.
   */
  chooseContextSize?(
    target: UpstreamTarget,
    model: string,
    needed: number,
    signal: AbortSignal,
  ): Promise<number | undefined>;
  /**
   * Counts the tokens of each text with the model's own tokenizer. Returns `undefined` if the server has none, or on
   * failure. Only throws the abort reason.
   */
  countTokens(
    target: UpstreamTarget,
    model: string,
    texts: string[],
    signal: AbortSignal,
  ): Promise<number[] | undefined>;
}

// Some servers stop at 400 or 512 tokens by default. This is enough for a long chat reply.
const DEFAULT_MAX_TOKENS = 2048;

/**
 * Returns the number of tokens to reserve for a reply without a limit, which is also the limit for a server that
 * requires one: at most half of a known context.
 */
export function getDefaultMaxTokens(target: Pick<UpstreamTarget, "contextSize">): number {
  if (target.contextSize === undefined || target.contextSize < 2) return DEFAULT_MAX_TOKENS;
  return Math.min(DEFAULT_MAX_TOKENS, Math.floor(target.contextSize / 2));
}

/** Returns the dialect of a target. */
export function getTargetDialect({ kind, baseUrl, dialect }: UpstreamTarget): Dialect {
  return dialect ?? chooseDialect({ kind, baseUrl });
}

/** Returns whether the server keeps streams, so that a reply outlives the connection. */
export function keepsStreams(target: UpstreamTarget): boolean {
  if (namesStreams(target)) return target.background === true;
  return target.kind === "openai" && getTargetDialect(target).keepsStreams === true;
}

/** Returns whether a server that keeps streams chooses their IDs itself. */
export function namesStreams({ kind }: Pick<UpstreamTarget, "kind">): boolean {
  return kind === "openai-responses";
}

/**
 * Returns the authentication header in the server's dialect, or no header without a key.
 *
 * @throws {AppError} `invalid_request`
 */
export function createAuthHeaders(target: UpstreamTarget): Record<string, string> {
  const key = toHeaderKey(target.apiKey);
  if (key === undefined) return {};
  const { keyHeader } = getTargetDialect(target);
  return keyHeader === "authorization" ? { authorization: `Bearer ${key}` } : { [keyHeader]: key };
}
