/** Creates the services that assemble prompts. */
import type { UpstreamClient } from "../llm/upstream_client.ts";
import { ContextSizes } from "./tokens/context_sizes.ts";
import type { DocumentReader } from "./document_choice.ts";
import { Prompts } from "./prompts.ts";
import { type PromptContextDeps, PromptContexts } from "./prompt_context.ts";
import { TokenCounter } from "./tokens/token_counter.ts";
import type { TokenRatios } from "./tokens/token_ratios.ts";

/** Dependencies of prompt assembly. */
export interface PromptRoomOptions extends PromptContextDeps {
  upstream: UpstreamClient;
  ratios: TokenRatios;
  openDocuments(): Promise<DocumentReader>;
}

/** The services that assemble prompts. */
export interface PromptRoom {
  prompts: Prompts;
  scenes: PromptContexts;
}

/** Creates the services. */
export function openPrompts({ upstream, ratios, openDocuments, ...parts }: PromptRoomOptions): PromptRoom {
  return {
    prompts: new Prompts(new TokenCounter(upstream, ratios), new ContextSizes(upstream), openDocuments),
    scenes: new PromptContexts(parts),
  };
}
