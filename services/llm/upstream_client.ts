/** The entry point to model servers: picks the provider and owns the HTTP connections. */
import { type HttpClientOptions, openHttpClient } from "../http/http_client.ts";
import { createAnthropicProvider } from "./anthropic/anthropic_provider.ts";
import { createDemoProvider } from "./demo/demo_provider.ts";
import { createOpenAiProvider } from "./openai/openai_provider.ts";
import type { Provider, ProviderKind } from "./provider.ts";

export type { ChatStream, ModelList, Provider, ProviderKind, UpstreamTarget } from "./provider.ts";
export type { CallTimeouts } from "../http/timeouts.ts";

/** All protocols behind one interface. */
export interface UpstreamClient extends Provider {
  /** Closes all connections. Calls that are still running fail. */
  close(): void;
}

/** Options of the client. */
export interface UpstreamClientOptions extends Pick<HttpClientOptions, "resolve"> {
  /** Pause between two words of the demo, in milliseconds. */
  demoPauseMs?: number;
}

/** Opens the client. It connects with the first call. */
export function createUpstreamClient(options: UpstreamClientOptions = {}): UpstreamClient {
  const http = openHttpClient(options);
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
