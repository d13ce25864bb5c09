/** The entry point to model servers: picks the provider and owns the HTTP connections. */
import { type HttpClientOptions, openHttpClient } from "../http/http_client.ts";
import { consoleLog, type Log } from "../log.ts";
import { createAnthropicProvider } from "./anthropic/anthropic_provider.ts";
import { identifyTarget, readModelFacts, type ServerIdentity } from "./connections/dialect_detection.ts";
import { createDemoProvider } from "./demo/demo_provider.ts";
import { withQuickTimeouts } from "./model_call.ts";
import { OllamaModels } from "./ollama/ollama_models.ts";
import { pullModel, type PullProgress } from "./ollama/model_pulls.ts";
import { createOllamaProvider } from "./ollama/ollama_provider.ts";
import { type CreateEmbeddings, createEmbeddingsClient } from "./openai/embeddings.ts";
import { createOpenAiProvider } from "./openai/openai_provider.ts";
import { CallLog, type CallMeter, meterUsage, observeStream, reportFailure, reportSuccess } from "./call_report.ts";
import type { Provider, ProviderKind, UpstreamTarget } from "./provider.ts";
import { splitCompletion, splitStream } from "./streaming/reasoning_splitter.ts";

export type { ChatStream, ListenToNotices, UpstreamTarget } from "./provider.ts";

/** All protocols behind one interface. */
export interface UpstreamClient extends Required<Provider> {
  /** Requests embeddings. @throws {AppError} `invalid_request` if the protocol has none; as `openChatStream` */
  createEmbeddings: CreateEmbeddings;
  /**
   * Asks a server what it is. Returns undefined if it doesn't respond, or speaks a protocol of its own.
   *
   * @throws The caller's abort reason.
   */
  identify(target: UpstreamTarget, signal: AbortSignal): Promise<ServerIdentity | undefined>;
  /**
   * Has an Ollama server download a model.
   *
   * @throws {AppError} `upstream_error`, of kind `not_found` if there is no such model; as `openChatStream`
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
export interface UpstreamClientOptions extends Pick<HttpClientOptions, "resolve"> {
  /** Pause between two words of the demo, in milliseconds. */
  demoPauseMs?: number;
  meter?: CallMeter;
  log?: Log;
}

/** Opens the client. It connects with the first call. */
export function createUpstreamClient(options: UpstreamClientOptions = {}): UpstreamClient {
  const http = openHttpClient(options);
  const ollama = new OllamaModels(http);
  const providers: Record<ProviderKind, Provider> = {
    openai: createOpenAiProvider(http),
    anthropic: createAnthropicProvider(http),
    ollama: createOllamaProvider(http, ollama),
    demo: createDemoProvider({ pauseMs: options.demoPauseMs }),
  };
  const callLog = new CallLog(options.log ?? consoleLog);
  const run = async <T>(target: UpstreamTarget, model: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      const failure = reportFailure(thrown, target, model);
      callLog.failed(failure, target, model);
      throw failure;
    }
  };
  return {
    openChatStream: (target, call, signal, onNotice) =>
      run(target, call.model, async () => {
        callLog.started(target, call.model, call.messages.length);
        const stream = await providers[target.kind].openChatStream(target, call, signal, onNotice);
        reportSuccess(target);
        return observeStream(writesTags(target) ? splitStream(stream) : stream, target, call.model, {
          meter: options.meter,
          callLog,
        });
      }),
    completeChat: (target, call, signal) =>
      run(target, call.model, async () => {
        callLog.started(target, call.model, call.messages.length);
        const completion = await providers[target.kind].completeChat(target, call, signal);
        reportSuccess(target);
        callLog.ended(target, call.model, completion.usage);
        meterUsage(options.meter, completion.usage);
        return writesTags(target) ? splitCompletion(completion) : completion;
      }),
    async listModels(target, signal) {
      try {
        const list = await providers[target.kind].listModels(target, signal);
        target.connection?.memory?.reportModels(list.data.map((entry) => readModelFacts(entry)));
        callLog.listed(target, list.data.length);
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

/** Reports whether models of a server may write reasoning between tags into their text. */
function writesTags({ kind }: UpstreamTarget): boolean {
  return kind === "openai" || kind === "ollama";
}
