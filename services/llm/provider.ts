/** The interface of a model server, implemented per protocol in openai/, anthropic/, ollama/ and demo/. */
import type { HttpTarget } from "../http/http_client.ts";
import type { ChatCall, ChatEvent, ChatNotice, OpenAiCompletion } from "./chat_event.ts";
import type { ModelFacts } from "./connections/connection_test.ts";
import type { Dialect, DialectName } from "./dialects/dialect.ts";
import { chooseDialect } from "./dialects/dialects.ts";
import type { RefusalMemory } from "./refused_fields.ts";
import { toHeaderKey } from "../http/base_url.ts";

/** The protocols. `demo` needs no server. */
export const PROVIDER_KINDS = ["openai", "anthropic", "ollama", "demo"] as const;

/** One of the protocols. */
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** A failed call in the form that `last_call` shows. */
export interface CallFailure {
  code: string;
  message: string;
  /** `UpstreamErrorKind`, or the code of an error that isn't the server's. */
  kind: string;
}

/** What the owner should know of a server that works. */
export interface ServerNotice {
  code: "model_spills";
  message: string;
}

/** Whether a model thinks; `"adaptive"` if it also chooses its budget for that. */
export type ModelThinking = boolean | "adaptive";

/** The connection that a call belongs to. */
export interface CallConnection {
  id: string;
  name: string;
  /** What was learned of this connection. Absent where nothing is to be remembered. */
  memory?: RefusalMemory & {
    /** Records how a call ended. */
    reportCall(failure: CallFailure | undefined): void;
    /** Records what the owner should know of the server, or that there is nothing. */
    reportNotice(notice: ServerNotice | undefined): void;
    /** Records what the server is. */
    reportDialect(detected: DialectName): void;
    /** Records whether a model thinks; `"adaptive"` if it refuses a budget, because it chooses that itself. */
    reportThinking(model: string, thinking: ModelThinking): void;
    /** Records the models that the server lists, in its order. */
    reportModels(models: readonly ModelFacts[]): void;
  };
}

/** A model server and how to reach it. `baseUrl` is empty for `demo`, and has no query. */
export interface UpstreamTarget extends HttpTarget {
  kind: ProviderKind;
  /** Sent with every request: `"api-version=2024-10-21"`. */
  query?: string;
  /** What is different at this server. Default: what `kind` and the address say. */
  dialect?: Dialect;
  /** Additional headers, which win over Parlor's own. Masked in errors. */
  headers?: Record<string, string>;
  /** Additional fields of chat requests. What the request sets itself wins. */
  extraBody?: Record<string, unknown>;
  /** Absent for servers that aren't saved. */
  connection?: CallConnection;
  /** Context size of the model in tokens, if known. It limits the default of `max_tokens`. */
  contextSize?: number;
}

/** A field that was left out of a request because the server refuses it. */
export interface LeftOutField {
  field: string;
  /** HTTP status of the refusal. */
  status: number;
  /** What the server said. */
  reason: string;
}

/** What a chat request was sent with. */
export interface SentFacts {
  leftOut: LeftOutField[];
  /** The limit of the reply in tokens, if one was sent. */
  outputLimit?: number;
}

/** A reply that is being streamed. */
export interface ChatStream {
  /** Absent if the provider sends no request. */
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

/** Receives what a server does before it answers. */
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
  /** Returns a complete reply. @throws as `openChatStream` */
  completeChat(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<OpenAiCompletion>;
  /** Lists the server's models. @throws as `openChatStream` */
  listModels(target: UpstreamTarget, signal: AbortSignal): Promise<ModelList>;
  /** Returns a model's context size in tokens, or undefined if the server doesn't say. Throws only the abort reason. */
  readContextSize(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<number | undefined>;
  /**
   * Returns the context size that the server would be asked for, in tokens. Only protocols have it whose calls set the size;
   * for them `readContextSize` returns the most that it can be. Returns undefined on failure. Throws only the abort reason.
   *
   * @param needed Tokens of prompt and answer.
   */
  chooseContextSize?(
    target: UpstreamTarget,
    model: string,
    needed: number,
    signal: AbortSignal,
  ): Promise<number | undefined>;
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

// Some servers stop at 400 or 512 tokens by default. A long chat reply fits in this.
const DEFAULT_MAX_TOKENS = 2048;

/**
 * Returns the tokens to reserve for a reply that has no limit, and the limit to send to a server that needs one: at most half
 * of a known context.
 */
export function getDefaultMaxTokens(target: Pick<UpstreamTarget, "contextSize">): number {
  if (target.contextSize === undefined || target.contextSize < 2) return DEFAULT_MAX_TOKENS;
  return Math.min(DEFAULT_MAX_TOKENS, Math.floor(target.contextSize / 2));
}

/** Returns the dialect of a target. */
export function getTargetDialect({ kind, baseUrl, dialect }: UpstreamTarget): Dialect {
  return dialect ?? chooseDialect({ kind, baseUrl });
}

/** Returns the header in the dialect of the server, or no header without a key. @throws {AppError} `invalid_request` */
export function createAuthHeaders(target: UpstreamTarget): Record<string, string> {
  const key = toHeaderKey(target.apiKey);
  if (key === undefined) return {};
  const { keyHeader } = getTargetDialect(target);
  return keyHeader === "authorization" ? { authorization: `Bearer ${key}` } : { [keyHeader]: key };
}
