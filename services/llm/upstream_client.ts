/**
 * The entry point to model servers: selects the provider, owns the HTTP connections, and records for each call which
 * connection it belongs to and how it ended.
 */
import { type HttpClientOptions, openHttpClient } from "../http/http_client.ts";
import type { Log } from "../log.ts";
import { createAnthropicProvider } from "./anthropic/anthropic_provider.ts";
import { identifyTarget, readModelFacts, type ServerIdentity } from "./connections/connection_test.ts";
import { createDemoProvider } from "./demo_provider.ts";
import { withQuickTimeouts } from "./model_call.ts";
import { OllamaModels, pullModel, type PullProgress } from "./ollama/ollama_models.ts";
import { createOllamaProvider } from "./ollama/ollama_provider.ts";
import { type CreateEmbeddings, createEmbeddingsClient, createOpenAiProvider } from "./openai/openai_provider.ts";
import { createResponsesProvider } from "./openai_responses/responses_provider.ts";
import type { ChatStream, Provider, ProviderKind, UpstreamTarget } from "./provider.ts";
import { splitCompletion, splitStream } from "./reasoning.ts";
import { AppError, type UpstreamFailure } from "../errors.ts";
import { getErrorFields, UpstreamError } from "../http/upstream_error.ts";
import type { ChatEvent, Usage } from "./chat_event.ts";

export type { ChatStream, ListenToNotices, UpstreamTarget } from "./provider.ts";

/** All protocols behind one interface. */
export interface UpstreamClient extends Required<Provider> {
  /** Requests embeddings. @throws {AppError} `invalid_request` if the protocol has none; like `openChatStream` */
  createEmbeddings: CreateEmbeddings;
  /**
   * Identifies a server. Returns `undefined` if it doesn't respond or uses an unknown protocol.
   *
   * @throws The caller's abort reason.
   */
  identify(target: UpstreamTarget, signal: AbortSignal): Promise<ServerIdentity | undefined>;
  /**
   * Makes an Ollama server download a model.
   *
   * @throws {AppError} `upstream_error`, of kind `not_found` if the model doesn't exist; like `openChatStream`
   */
  pullModel(
    target: UpstreamTarget,
    model: string,
    onProgress: (progress: PullProgress) => void,
    signal: AbortSignal,
  ): Promise<void>;
  /** Closes all connections. Calls that are still running fail. */
  close(): void;
}

/** Options of the client. */
export interface UpstreamClientOptions extends Pick<HttpClientOptions, "resolve" | "ownListeners"> {
  /** Delay between words of the demo, in milliseconds. */
  demoDelayMs?: number;
  meter?: CallMeter;
  log: Log;
}

/** Opens the client. It connects with the first call. */
export function createUpstreamClient(options: UpstreamClientOptions): UpstreamClient {
  const http = openHttpClient(options);
  const ollama = new OllamaModels(http);
  const openai = createOpenAiProvider(http);
  const providers: Record<ProviderKind, Provider> = {
    openai,
    "openai-responses": createResponsesProvider(http, openai),
    anthropic: createAnthropicProvider(http),
    ollama: createOllamaProvider(http, ollama),
    demo: createDemoProvider({ delayMs: options.demoDelayMs }),
  };
  const callLog = new CallLog(options.log);
  const run = async <T>(target: UpstreamTarget, model: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      const failure = reportFailure(thrown, target, model);
      callLog.noteFailure(failure, target, model);
      throw failure;
    }
  };
  return {
    openChatStream: (target, call, signal, onNotice) =>
      run(target, call.model, async () => {
        callLog.noteStart(target, call.model, call.messages.length);
        const stream = await providers[target.kind].openChatStream(target, call, signal, onNotice);
        reportSuccess(target);
        return observeStream(hasReasoningTags(target) ? splitStream(stream) : stream, target, call.model, {
          meter: options.meter,
          callLog,
        });
      }),
    completeChat: (target, call, signal) =>
      run(target, call.model, async () => {
        callLog.noteStart(target, call.model, call.messages.length);
        const completion = await providers[target.kind].completeChat(target, call, signal);
        reportSuccess(target);
        callLog.noteEnd(target, call.model, completion.usage);
        meterUsage(options.meter, completion.usage);
        return hasReasoningTags(target) ? splitCompletion(completion) : completion;
      }),
    async listModels(target, signal) {
      try {
        const list = await providers[target.kind].listModels(target, signal);
        target.connection?.memory?.reportModels(list.data.map((entry) => readModelFacts(entry)));
        callLog.noteList(target, list.data.length);
        return list;
      } catch (thrown) {
        const failure = reportFailure(thrown, target, "");
        callLog.listFailed(failure, target);
        throw failure;
      }
    },
    async identify(target, signal) {
      if (target.kind === "ollama") return await ollama.identify(target, signal);
      return target.kind === "openai" ? await identifyTarget(http, withQuickTimeouts(target), signal) : undefined;
    },
    readContextSize: (target, model, signal) => providers[target.kind].readContextSize(target, model, signal),
    chooseContextSize: (target, model, needed, signal) =>
      providers[target.kind].chooseContextSize?.(target, model, needed, signal) ?? Promise.resolve(undefined),
    countTokens: (target, model, texts, signal) => providers[target.kind].countTokens(target, model, texts, signal),
    createEmbeddings: createEmbeddingsClient(http),
    pullModel: (target, model, onProgress, signal) => pullModel(http, target, model, onProgress, signal),
    close: () => http.close(),
  };
}

/** Reports whether models of a server may include reasoning between tags in their text. */
function hasReasoningTags({ kind }: UpstreamTarget): boolean {
  return kind === "openai" || kind === "ollama";
}

/** Records that a server accepted a chat request. */
function reportSuccess({ connection }: UpstreamTarget): void {
  connection?.memory?.reportCall(undefined);
}

/**
 * Records a failed call of a connection, and adds the connection to its error. An aborted call hasn't failed.
 *
 * @returns The thrown value.
 */
export function reportFailure(thrown: unknown, { connection }: UpstreamTarget, model: string): unknown {
  if (connection === undefined || !(thrown instanceof AppError)) return thrown;
  const { code, message } = thrown;
  const kind = thrown instanceof UpstreamError ? thrown.kind : code;
  if (thrown instanceof UpstreamError) {
    const { status, retryAfterSeconds } = thrown;
    thrown.upstream = {
      kind: thrown.kind,
      ...(status !== undefined && { status }),
      connection_id: connection.id,
      connection_name: connection.name,
      model,
      ...(retryAfterSeconds !== undefined && { retry_after_s: Math.ceil(retryAfterSeconds) }),
    } satisfies UpstreamFailure;
  }
  connection.memory?.reportCall({ code, message, kind });
  return thrown;
}

/** Logs calls of connections: failures, and at level debug all calls. Lines have no content, keys or addresses. */
class CallLog {
  readonly #log: Log;
  /** Last failure to list models, by connection. An open page requests lists again and again. */
  readonly #listFailures = new Map<string, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Logs a failed call. An aborted one hasn't failed. */
  noteFailure(thrown: unknown, { connection }: UpstreamTarget, model: string): void {
    if (!(thrown instanceof AppError)) return;
    this.#log("warn", "A call to a model failed", { connection_id: connection?.id, model, ...getErrorFields(thrown) });
  }

  /** Logs a failure to list models. Each reason is logged once until a list succeeds. */
  listFailed(thrown: unknown, { connection }: UpstreamTarget): void {
    if (!(thrown instanceof AppError)) return;
    const fields = { connection_id: connection?.id, ...getErrorFields(thrown) };
    const reason = JSON.stringify(fields);
    const isKnown = connection !== undefined && this.#listFailures.get(connection.id) === reason;
    if (connection !== undefined) this.#listFailures.set(connection.id, reason);
    this.#log(isKnown ? "debug" : "warn", "Can't list the models of a connection", fields);
  }

  /** Logs a list of models. */
  noteList({ connection }: UpstreamTarget, count: number): void {
    if (connection !== undefined) this.#listFailures.delete(connection.id);
    this.#log("debug", "Listed the models of a connection", { connection_id: connection?.id, count });
  }

  /** Logs the end of a call. */
  noteEnd({ connection }: UpstreamTarget, model: string, usage: Usage | undefined): void {
    this.#log("debug", "A call to a model ended", {
      connection_id: connection?.id,
      model,
      prompt_tokens: usage?.prompt_tokens,
      completion_tokens: usage?.completion_tokens,
    });
  }

  /** Logs the start of a call. */
  noteStart({ connection, kind }: UpstreamTarget, model: string, messageCount: number): void {
    this.#log("debug", "Calling a model", { connection_id: connection?.id, kind, model, messages: messageCount });
  }
}

/** Counts streams and tokens. */
export interface CallMeter {
  /** Counts a stream. Returns a function to call at its end. */
  startStream(): () => void;
  addTokens(kind: "prompt" | "completion", count: number): void;
}

/** Counts the tokens of a call. */
function meterUsage(meter: CallMeter | undefined, usage: Usage | undefined): void {
  meter?.addTokens("prompt", usage?.prompt_tokens ?? 0);
  meter?.addTokens("completion", usage?.completion_tokens ?? 0);
}

/** Returns a stream whose failures are reported and logged, and whose tokens are counted. */
function observeStream(
  stream: ChatStream,
  target: UpstreamTarget,
  model: string,
  { meter, callLog }: { meter?: CallMeter; callLog: CallLog },
): ChatStream {
  return { ...stream, batches: () => observeBatches(stream, target, model, { meter, callLog }) };
}

async function* observeBatches(
  stream: ChatStream,
  target: UpstreamTarget,
  model: string,
  { meter, callLog }: { meter?: CallMeter; callLog: CallLog },
): AsyncGenerator<ChatEvent[]> {
  const end = meter?.startStream();
  let usage: Usage | undefined;
  try {
    for await (const batch of stream.batches()) {
      // Running totals: the last one is final.
      for (const event of batch) if (event.type === "usage") usage = event.usage;
      yield batch;
    }
    callLog.noteEnd(target, model, usage);
  } catch (thrown) {
    const failure = reportFailure(thrown, target, model);
    callLog.noteFailure(failure, target, model);
    throw failure;
  } finally {
    end?.();
    meterUsage(meter, usage);
  }
}
