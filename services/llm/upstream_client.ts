/** The one door to model servers: chooses the kind, owns the HTTP connections. */
import { createAnthropicProvider } from "./anthropic/anthropic_provider.ts";
import { createDemoProvider } from "./demo/demo_provider.ts";
import { createOpenAiProvider } from "./openai/openai_provider.ts";
import type { Provider, ProviderKind } from "./provider.ts";
import { openUpstreamHttp, type UpstreamHttpOptions } from "./model_call.ts";

export type { ChatStream, ModelList, Provider, ProviderKind, UpstreamTarget, UpstreamTimeouts } from "./provider.ts";

/** All kinds of model server behind one interface. */
export interface UpstreamClient extends Provider {
  /** Closes idle connections and fails the calls that still run. */
  close(): void;
}

/** How to make an upstream client. */
export interface UpstreamClientOptions extends UpstreamHttpOptions {
  /** Pause between two words of the demo connection, in milliseconds. */
  demoPauseMs?: number;
}

/**
 * Makes the client through which every model server is reached.
 *
 * Connections are kept alive per server; the first is opened by the first call.
 */
export function createUpstreamClient(options: UpstreamClientOptions = {}): UpstreamClient {
  const http = openUpstreamHttp(options);
  const providers: Record<ProviderKind, Provider> = {
    openai: createOpenAiProvider(http),
    anthropic: createAnthropicProvider(http),
    demo: createDemoProvider({ pauseMs: options.demoPauseMs }),
  };
  return {
    openChatStream: (target, call, signal) => providers[target.kind].openChatStream(target, call, signal),
    completeChat: (target, call, signal) => providers[target.kind].completeChat(target, call, signal),
    listModels: (target, signal) => providers[target.kind].listModels(target, signal),
    readContextSize: (target, model, signal) => providers[target.kind].readContextSize(target, model, signal),
    countTokens: (target, model, texts, signal) => providers[target.kind].countTokens(target, model, texts, signal),
    close: () => http.close(),
  };
}
