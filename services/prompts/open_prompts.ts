/** Opens the room: what counts tokens, what knows context sizes, what assembles, and where scenes come from. */
import type { UpstreamClient } from "../llm/upstream_client.ts";
import { ContextSizes } from "./tokens/context_sizes.ts";
import { Prompts } from "./prompts.ts";
import { type SceneParts, Scenes } from "./prompt_context.ts";
import { TokenCounter } from "./tokens/token_counter.ts";
import type { TokenRatios } from "./tokens/token_ratios.ts";

/** What the room stands on. */
export interface PromptRoomOptions extends SceneParts {
  upstream: UpstreamClient;
  ratios: TokenRatios;
}

/** What assembles prompts. */
export interface PromptRoom {
  prompts: Prompts;
  scenes: Scenes;
}

/** Opens the room. */
export function openPrompts({ upstream, ratios, ...parts }: PromptRoomOptions): PromptRoom {
  return {
    prompts: new Prompts(new TokenCounter(upstream, ratios), new ContextSizes(upstream)),
    scenes: new Scenes(parts),
  };
}
