/**
 * Builds requests of OpenAI's Responses API from chat calls.
 *
 * @see https://platform.openai.com/docs/api-reference/responses/create
 */
import { asObject, isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";
import type { ChatCall, ChatMessage, ContentPart } from "../chat_event.ts";
import { fitMessages } from "../dialects/portable_messages.ts";
import { fitToolDefinitions } from "../dialects/tool_definitions.ts";
import { getTargetDialect, keepsStreams, type LeftOutField, type UpstreamTarget } from "../provider.ts";
import { isLimitName } from "../refused_fields.ts";

/** Format of reasoning that this API returned, in OpenRouter's form. */
export const RESPONSES_FORMAT = "openai-responses-v1";

/** Fields that both APIs have. */
const SAME_FIELDS = new Set(["temperature", "top_p", "parallel_tool_calls", "user", "metadata", "service_tier"]);

/**
 * Builds the body. Reasoning is returned encrypted and sent back with results, because nothing is stored at the server: at
 * most a stream that has to outlive its connection, until it's released.
 */
export function createResponsesBody(
  target: UpstreamTarget,
  call: ChatCall,
  stream: boolean,
): { body: Record<string, unknown>; leftOut: LeftOutField[] } {
  const dialect = getTargetDialect(target);
  const fields: Record<string, unknown> = {};
  const leftOut: LeftOutField[] = [];
  for (const [name, value] of Object.entries(call.params)) {
    if (value === undefined || value === null || name === "stream_options") continue;
    if (isLimitName(name)) fields.max_output_tokens = value;
    else if (name === "reasoning_effort") fields.reasoning = { effort: value, summary: "auto" };
    else if (name === "tools") fields.tools = toTools(fitToolDefinitions(dialect.name, value));
    else if (name === "tool_choice") fields.tool_choice = isJsonObject(value) ? toChoice(value) : value;
    else if (name === "response_format") fields.text = { format: toFormat(value) };
    else if (SAME_FIELDS.has(name)) fields[name] = value;
    else leftOut.push({ field: name, status: 400, reason: "the Responses API doesn't have this field" });
  }
  const isKept = stream && call.streamId !== undefined && keepsStreams(target);
  return {
    body: {
      ...target.extraBody,
      ...call.extraBody,
      ...fields,
      model: call.model,
      input: toItems(fitMessages(dialect, call.messages, { model: call.model, takesNames: false })),
      include: ["reasoning.encrypted_content"],
      store: isKept,
      ...(isKept && { background: true }),
      stream,
    },
    leftOut,
  };
}

function toItems(messages: readonly ChatMessage[]): unknown[] {
  // Reasoning belongs to the calls of the present turn.
  const turn = messages.findLastIndex(({ role }) => role === "user");
  return messages.flatMap((message, index): unknown[] => {
    const { role, content } = message;
    if (role === "tool") {
      const { text } = splitParts(content);
      return [{ type: "function_call_output", call_id: message.tool_call_id, output: text }];
    }
    if (role !== "assistant") return [{ type: "message", role, content: toInputParts(content) }];
    const { text } = splitParts(content);
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
    return [
      ...(index > turn && calls.length > 0 ? toReasoning(message.reasoning_details) : []),
      ...(text === "" ? [] : [{ type: "message", role, content: [{ type: "output_text", text }] }]),
      ...calls.map((call) => {
        const { name, arguments: args } = asObject(asObject(call).function);
        return { type: "function_call", call_id: asObject(call).id, name, arguments: args };
      }),
    ];
  });
}

/** Returns the reasoning that this API returned. That of other servers can't be read by it. */
function toReasoning(details: unknown): unknown[] {
  return (Array.isArray(details) ? details : []).flatMap((detail) => {
    const { format, id, data } = asObject(detail);
    if (format !== RESPONSES_FORMAT || !isNonEmptyString(data)) return [];
    return [{ type: "reasoning", ...(isNonEmptyString(id) && { id }), summary: [], encrypted_content: data }];
  });
}

function splitParts(content: ChatMessage["content"]): { text: string } {
  if (typeof content === "string" || content === null) return { text: content ?? "" };
  return { text: content.map(({ text }) => typeof text === "string" ? text : "").join("") };
}

function toInputParts(content: ChatMessage["content"]): unknown[] {
  if (typeof content === "string" || content === null) return [{ type: "input_text", text: content ?? "" }];
  return content.map(toInputPart);
}

function toInputPart(part: ContentPart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image_url") {
    const { url, detail } = asObject(part.image_url);
    return { type: "input_image", image_url: url, detail: detail ?? "auto" };
  }
  if (part.type === "file") return { type: "input_file", ...asObject(part.file) };
  return part;
}

function toTools(tools: unknown): unknown {
  if (!Array.isArray(tools)) return tools;
  return tools.map((tool) => {
    const { function: definition, type } = asObject(tool);
    // Without the field, this API is strict, and chat completions aren't.
    return isJsonObject(definition) ? { type, strict: false, ...definition } : tool;
  });
}

function toChoice(choice: Record<string, unknown>): unknown {
  return isJsonObject(choice.function) ? { type: "function", name: choice.function.name } : choice;
}

function toFormat(format: unknown): unknown {
  const { type, json_schema: schema } = asObject(format);
  return type === "json_schema" ? { type, ...asObject(schema) } : format;
}
