/** The tools of one request: their definitions, and calls and results of earlier rounds in the form that the model takes. */
import type { Message } from "../conversations/message.ts";
import type { JsonObject } from "../json/type_guards.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ModelRoute } from "../llm/model_router.ts";
import { estimateTokens } from "../llm/token_estimate.ts";
import type { Prompt } from "../prompts/prompt.ts";
import type { Counted, PromptEntry } from "../prompts/prompt_messages.ts";
import type { ChatRequest } from "./chat_request.ts";
import { toPlainMessages } from "./tools/tool_fallback.ts";
import { addToolNote, TOOL_NOTE, toRoundMessages } from "./tools/tool_history.ts";

/** The tools of one request of a reply. */
export interface ReplyTools {
  /** As in OpenAI's `tools`. */
  definitions?: readonly JsonObject[];
  /** The model has to answer now. */
  isLastRound: boolean;
  /** The model takes neither tools nor their results. */
  isWithoutTools: boolean;
  /** Messages of the rounds before. */
  rounds: readonly Message[];
}

/** A request without tools. */
export const NO_TOOLS: ReplyTools = { isLastRound: false, isWithoutTools: false, rounds: [] };

/** Replaces images in the results of tools where the server takes only text there. */
function withoutToolImages(messages: ChatMessage[], { target }: ModelRoute): ChatMessage[] {
  if (target.kind === "anthropic") return messages;
  return messages.map((message) => {
    const { role, content } = message;
    if (role !== "tool" || !Array.isArray(content)) return message;
    const texts = content.map((part) =>
      typeof part.text === "string" ? part.text : "[an image, shown to the user only]"
    );
    return { ...message, content: texts.join("\n") };
  });
}

/** Adds the definitions of tools to a request, and the rounds before. */
export function withTools<T extends ChatRequest>(request: T, { definitions, isLastRound, rounds }: ReplyTools): T {
  // A call that is forced is made once. Otherwise the model could never answer.
  const { tool_choice: choice, ...others } = request.params;
  const chosen = isLastRound ? "none" : rounds.length > 0 ? undefined : choice;
  const params = definitions === undefined || definitions.length === 0
    ? request.params
    : { ...others, tools: definitions, ...(chosen !== undefined && { tool_choice: chosen }) };
  // The server's own prompt has the rounds in its history.
  const messages = request.context === "server" ? request.messages : [...request.messages, ...toRoundMessages(rounds)];
  return { ...request, params, messages };
}

/** How the messages of a reply are finished. */
export interface MessageFinish {
  request: ChatRequest;
  route: ModelRoute;
  tools: ReplyTools;
}

/**
 * Whether a model gets calls and results as text. Ollama knows no `tool_choice`: a model that sees calls makes more of
 * them (docs/protocols/llm.md#tool-calls).
 */
function takesPlainText({ request, route, tools }: MessageFinish): boolean {
  return tools.isWithoutTools ||
    (tools.isLastRound && route.target.kind === "ollama" && request.params.tools === undefined);
}

/** Converts calls of tools and their results to what the model takes. Only a note can be added, at the start. */
export function finishMessages(messages: ChatMessage[], finish: MessageFinish): ChatMessage[] {
  const { request, route, tools } = finish;
  const shown = withoutToolImages(messages, route);
  if (takesPlainText(finish)) return toPlainMessages(shown);
  const hasTools = tools.definitions !== undefined || shown.some(({ role }) => role === "tool");
  return hasTools && request.params.tools === undefined ? addToolNote(shown) : shown;
}

/** Finishes a prompt for a preview: its messages, and what they are put together from. */
export function finishPrompt(prompt: Prompt, finish: MessageFinish): Prompt {
  const messages = finishMessages(prompt.messages, finish);
  const [first, ...others] = prompt.parts;
  const isAdded = messages.length > prompt.messages.length;
  const hasNote = isAdded || messages[0]?.content !== prompt.messages[0]?.content && messages[0]?.role === "system";
  if (!hasNote) return { ...prompt, messages };
  const tokens = Math.ceil(estimateTokens(TOOL_NOTE));
  const piece: Counted = { part: "tools", role: "system", text: TOOL_NOTE, tokens };
  const parts: PromptEntry[] = isAdded || first === undefined
    ? [{ part: "tools", message: messages[0]!, tokens, pieces: [piece] }, ...prompt.parts]
    : [
      { ...first, message: messages[0]!, tokens: first.tokens + tokens, pieces: [...first.pieces ?? [], piece] },
      ...others,
    ];
  return { ...prompt, messages, parts, tokens: prompt.tokens + tokens };
}
