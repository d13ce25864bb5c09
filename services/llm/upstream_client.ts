/**
 * The entry point to model servers: selects the provider, owns the HTTP connections, and records for each call which
 * connection it belongs to and how it ended.
 */
import { type HttpClientOptions, openHttpClient } from "../http/http_client.ts";
import type { Log } from "../log.ts";
import { createAnthropicProvider } from "./anthropic/anthropic_provider.ts";
import { identifyTarget, readModelFacts, type ServerIdentity } from "./connections/connection_test.ts";
import type { ServerContract } from "./contract/contract.ts";
import { type ProbeOptions, probeServer, readFingerprint } from "./contract/server_probe.ts";
import { createDemoProvider } from "./demo_provider.ts";
import { withQuickTimeouts } from "./model_call.ts";
import { OllamaModels, pullModel, type PullProgress } from "./ollama/ollama_models.ts";
import { createOllamaProvider } from "./ollama/ollama_provider.ts";
import { type CreateEmbeddings, createEmbeddingsClient, createOpenAiProvider } from "./openai/openai_provider.ts";
import { createResponsesProvider } from "./openai_responses/responses_provider.ts";
import type { ChatStream, Provider, ProviderKind, UpstreamTarget } from "./provider.ts";
import { splitCompletion, splitStream } from "./reasoning.ts";
import { AppError, type UpstreamFailure } from "../errors.ts";
import { isJsonObject } from "../json/type_guards.ts";
import { getErrorFields, UpstreamError } from "../http/upstream_error.ts";
import type { CallOrigin, ChatCall, ChatEvent, OpenAiCompletion, Usage } from "./chat_event.ts";

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
  /** Asks what a server does with a model. A chat with the same server ends it early. @throws The caller's abort reason. */
  probe(
    target: UpstreamTarget,
    model: string,
    options: Omit<ProbeOptions, "yielding">,
    signal: AbortSignal,
  ): Promise<ServerContract>;
  /** Returns a text that changes when the server was started with another version, context or other options. */
  readFingerprint(target: UpstreamTarget, model: string, signal: AbortSignal): Promise<string>;
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
  /** Called at the end of each call that was answered. Must not throw. */
  record?(sample: CallSample): void;
  log: Log;
}

/** Why a call is aborted whose reply goes on after a restart. */
export const SUSPENDED = new DOMException("The reply goes on after a restart", "AbortError");

/** Measurements of a call that was answered, also in part. */
export interface CallSample {
  connection: { id: string; name: string } | undefined;
  model: string;
  origin: CallOrigin | undefined;
  /** As the server reported it. */
  usage?: Usage;
  /** llama.cpp's measurements. */
  timings?: Record<string, unknown>;
  /** Time from the request to the first output of the model, in milliseconds; absent without streaming. */
  firstWordMs?: number;
  /** Time from then to the end, in milliseconds; absent without streaming and if all came at once. */
  writingMs?: number;
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
  /** Running probes, by address of their server. */
  const probes = new Map<string, Set<AbortController>>();
  const endProbes = ({ baseUrl }: UpstreamTarget) => probes.get(baseUrl)?.forEach((one) => one.abort());
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
        endProbes(target);
        callLog.noteStart(target, call.model, call.messages.length);
        const startedAtMs = performance.now();
        const stream = await providers[target.kind].openChatStream(target, call, signal, onNotice);
        reportSuccess(target);
        const { meter, record } = options;
        const split = hasReasoningTags(target) ? splitStream(stream) : stream;
        return {
          ...split,
          batches: () => observeBatches(split, target, call, { meter, record, callLog, startedAtMs, signal }),
        };
      }),
    reopenChatStream: (target, call, signal) =>
      run(target, call.model, async () => {
        const startedAtMs = performance.now();
        const stream = await providers[target.kind].reopenChatStream?.(target, call, signal);
        if (stream === undefined) return undefined;
        const { meter, record } = options;
        const split = hasReasoningTags(target) ? splitStream(stream) : stream;
        return {
          ...split,
          batches: () =>
            observeBatches(split, target, call, { meter, record, callLog, startedAtMs, signal, isReopened: true }),
        };
      }),
    async releaseChatStream(target, streamId, signal) {
      await providers[target.kind].releaseChatStream?.(target, streamId, signal);
    },
    completeChat: (target, call, signal) =>
      run(target, call.model, async () => {
        endProbes(target);
        callLog.noteStart(target, call.model, call.messages.length);
        const completion = await providers[target.kind].completeChat(target, call, signal);
        reportSuccess(target);
        callLog.noteEnd(target, call.model, completion.usage);
        meterUsage(options.meter, completion.usage);
        const { connection } = target;
        options.record?.({ connection, model: call.model, origin: call.origin, ...readMeasurements(completion) });
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
    async probe(target, model, probeOptions, signal) {
      const yielding = new AbortController();
      const running = probes.get(target.baseUrl) ?? new Set();
      probes.set(target.baseUrl, running.add(yielding));
      try {
        const deps = { http, provider: providers[target.kind] };
        return await probeServer(deps, target, model, { ...probeOptions, yielding: yielding.signal }, signal);
      } finally {
        running.delete(yielding);
        if (running.size === 0) probes.delete(target.baseUrl);
      }
    },
    readFingerprint: (target, model, signal) =>
      readFingerprint({ http, provider: providers[target.kind] }, target, model, signal),
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

/** Returns what a server reported about a whole reply. */
function readMeasurements({ usage, timings }: OpenAiCompletion): Pick<CallSample, "usage" | "timings"> {
  return { usage, ...(isJsonObject(timings) && { timings }) };
}

/** Yields the batches of a stream. Failures are reported and logged, tokens and times are counted. */
async function* observeBatches(
  stream: ChatStream,
  target: UpstreamTarget,
  { model, origin }: Pick<ChatCall, "model" | "origin">,
  { meter, record, callLog, startedAtMs, signal, isReopened }: Pick<UpstreamClientOptions, "meter" | "record"> & {
    callLog: CallLog;
    startedAtMs: number;
    signal: AbortSignal;
    /** Its times are those of the reading, not of the model. */
    isReopened?: boolean;
  },
): AsyncGenerator<ChatEvent[]> {
  const end = meter?.startStream();
  let usage: Usage | undefined;
  let timings: Record<string, unknown> | undefined;
  let firstAtMs: number | undefined;
  let lastAtMs: number | undefined;
  try {
    for await (const batch of stream.batches()) {
      for (const event of batch) {
        // Running totals: the last one is final.
        if (event.type === "usage") [usage, timings] = [event.usage, event.timings ?? timings];
        else if (event.type !== "progress" && event.type !== "kept" && event.type !== "finish") {
          lastAtMs = performance.now();
          firstAtMs ??= lastAtMs;
        }
      }
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
    // A suspended reply is counted when it has gone on.
    if (firstAtMs !== undefined && signal.reason !== SUSPENDED) {
      const writingMs = lastAtMs! - firstAtMs;
      record?.({
        ...{ connection: target.connection, model, origin, usage, timings },
        ...(!isReopened && { firstWordMs: firstAtMs - startedAtMs, ...(writingMs > 0 && { writingMs }) }),
      });
    }
  }
}
