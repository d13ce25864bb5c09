/**
 * Requests of the Responses API: their items as chat messages, their tools and settings as parameters of a chat request.
 *
 * @see https://platform.openai.com/docs/api-reference/responses/create
 */
import { AppError } from "../errors.ts";
import { asObject, asString, isJsonObject, isNonEmptyString } from "../json/type_guards.ts";
import type { ChatMessage, ContentPart } from "../llm/chat_event.ts";
import { REASONING_EFFORTS } from "../llm/dialects/dialect.ts";

/** An item of a response's input or output, in OpenAI's form. */
export interface ResponseItem {
  type: string;
  id?: string;
  [more: string]: unknown;
}

/** What a model server needs back with tool results, and the client doesn't see. */
export interface HiddenReasoning {
  /** The reasoning's text. */
  text: string;
  /** Blocks in OpenRouter's format (services/llm/reasoning.ts). */
  details?: unknown[];
  /** `extra_content` of tool calls, by `call_id`. */
  callExtras?: Record<string, Record<string, unknown>>;
}

/** An item with what the client doesn't see. */
export interface KeptItem {
  item: ResponseItem;
  hidden?: HiddenReasoning;
}

/** Settings of a request, as far as they change the reply. */
export interface ResponseSettings {
  tools?: unknown[] | null;
  tool_choice?: unknown;
  parallel_tool_calls?: boolean | null;
  text?: Record<string, unknown> | null;
  reasoning?: Record<string, unknown> | null;
  max_output_tokens?: number | null;
  [more: string]: unknown;
}

/** The tools of a request for the model. */
interface ToolsInput {
  /** Parameters of the chat request: `tools` and what belongs to them. */
  params: Record<string, unknown>;
  /** Names of tools that take text instead of JSON. The model sees functions with the parameter `input`. */
  customNames: Set<string>;
}

/** Fields that pass through to the model's server: OpenAI's, and the common ones of local servers. */
const SAMPLER_FIELDS = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "seed",
  "stop",
  "frequency_penalty",
  "presence_penalty",
  "repeat_penalty",
] as const;

/** The parameter of a function that stands for a custom tool. */
export const CUSTOM_INPUT = "input";

/** Returns the type of an item. A message may have none. */
export function getItemType(item: Record<string, unknown>): string {
  if (typeof item.type === "string") return item.type;
  if (item.role !== undefined) return "message";
  return item.id === undefined ? "" : "item_reference";
}

/**
 * Converts the items of a request to chat messages.
 *
 * @param unsupported Receives the types of items that are left out, because Parlor doesn't run their tools.
 * @throws {AppError} `invalid_request` with the path of the field.
 */
export function toChatMessages(
  items: readonly KeptItem[],
  instructions: string | undefined,
  unsupported: Set<string>,
): ChatMessage[] {
  const list = new MessageList();
  if (instructions) list.addText("system", instructions);
  for (const [index, { item, hidden }] of items.entries()) {
    const path = `input.${index}`;
    const type = getItemType(item);
    switch (type) {
      case "message":
        list.addMessage(item, path);
        break;
      case "function_call":
      case "custom_tool_call": {
        const args = type === "function_call"
          ? asString(item.arguments) ?? "{}"
          : JSON.stringify({ [CUSTOM_INPUT]: asString(item.input) ?? "" });
        list.addCall({
          id: requireText(item.call_id, `${path}.call_id`),
          name: requireText(item.name, `${path}.name`),
          arguments: args,
          extra: isJsonObject(item.extra_content) ? item.extra_content : undefined,
        });
        break;
      }
      case "function_call_output":
      case "custom_tool_call_output":
        list.addResult(requireText(item.call_id, `${path}.call_id`), item.output, path);
        break;
      case "reasoning":
        list.addReasoning(hidden ?? { text: readReasoning(item) });
        break;
      case "":
        throw createIssue(`${path}.type`, "an item has a type");
      default:
        unsupported.add(type);
    }
  }
  return list.finish();
}

function readReasoning({ summary, content }: ResponseItem): string {
  // The content is the reasoning itself; the summary may be shorter.
  for (const parts of [content, summary]) {
    const texts = (Array.isArray(parts) ? parts : []).flatMap((part) => asString(asObject(part).text) ?? []);
    if (texts.length > 0) return texts.join("\n\n");
  }
  return "";
}

/** Builds the messages. What one turn of the assistant consists of becomes one message. */
class MessageList {
  readonly #messages: ChatMessage[] = [];
  #reasoning: HiddenReasoning[] = [];
  /** Images in tool results, which chat completions only accept from the user. */
  #resultParts: ContentPart[] = [];

  addText(role: string, text: string): void {
    const last = this.#messages.at(-1);
    // Many chat templates accept only one system message, at the start.
    if (role === "system" && last?.role === "system") last.content = `${last.content}\n\n${text}`;
    else this.#messages.push({ role, content: text });
  }

  addMessage(item: ResponseItem, path: string): void {
    this.#endResults();
    const role = item.role === "developer" ? "system" : item.role;
    if (role !== "user" && role !== "assistant" && role !== "system") {
      throw createIssue(`${path}.role`, "a role is user, assistant, system or developer");
    }
    const content = readContent(item.content, `${path}.content`);
    // Reasoning without a reply belongs to nothing.
    if (role !== "assistant") this.#reasoning = [];
    if (role === "assistant") {
      const text = typeof content === "string" ? content : content.map(({ text }) => asString(text) ?? "").join("");
      this.#messages.push({ role, content: text });
      this.#addPendingReasoning();
    } else if (role === "system" && typeof content === "string") this.addText(role, content);
    else this.#messages.push({ role, content });
  }

  addCall(call: { id: string; name: string; arguments: string; extra?: Record<string, unknown> }): void {
    this.#endResults();
    let last = this.#messages.at(-1);
    if (last?.role !== "assistant") this.#messages.push(last = { role: "assistant", content: null });
    this.#addPendingReasoning();
    const extra = call.extra ?? asObject(last.call_extras)[call.id];
    const calls = (last.tool_calls ??= []) as unknown[];
    calls.push({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: call.arguments },
      ...(isJsonObject(extra) && { extra_content: extra }),
    });
    if (last.content === "") last.content = null;
  }

  addResult(callId: string, output: unknown, path: string): void {
    const content = typeof output === "string" || output === null || output === undefined
      ? output ?? ""
      : Array.isArray(output)
      ? readContent(output, `${path}.output`)
      : JSON.stringify(output);
    const parts = typeof content === "string" ? [] : content;
    const text = typeof content === "string"
      ? content
      : parts.flatMap((part) => part.type === "text" ? [String(part.text)] : []).join("\n");
    this.#resultParts.push(...parts.filter(({ type }) => type !== "text"));
    this.#messages.push({ role: "tool", tool_call_id: callId, content: text });
  }

  addReasoning(reasoning: HiddenReasoning): void {
    this.#endResults();
    this.#reasoning.push(reasoning);
  }

  finish(): ChatMessage[] {
    this.#endResults();
    return this.#messages.map(({ call_extras: _, ...message }) => message as ChatMessage);
  }

  #endResults(): void {
    if (this.#resultParts.length === 0) return;
    this.#messages.push({ role: "user", content: this.#resultParts });
    this.#resultParts = [];
  }

  #addPendingReasoning(): void {
    const message = this.#messages.at(-1)!;
    for (const { text, details, callExtras } of this.#reasoning) {
      if (text !== "") {
        const before = asString(message.reasoning_content);
        message.reasoning_content = before === undefined ? text : `${before}\n\n${text}`;
      }
      if (details !== undefined) {
        message.reasoning_details = [...(message.reasoning_details as unknown[] | undefined ?? []), ...details];
      }
      if (callExtras !== undefined) message.call_extras = { ...asObject(message.call_extras), ...callExtras };
    }
    this.#reasoning = [];
  }
}

/** Reads the content of a message or a tool result. Content without images is one text. */
function readContent(content: unknown, path: string): string | ContentPart[] {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) throw createIssue(path, "content is text or a list of parts");
  const parts = content.flatMap((part, index) => readPart(part, `${path}.${index}`));
  if (!parts.every(({ type }) => type === "text")) return parts;
  return parts.map(({ text }) => text).join("\n");
}

function readPart(part: unknown, path: string): ContentPart[] {
  if (!isJsonObject(part)) throw createIssue(path, "a part is an object with a type");
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
    case "summary_text":
    case "reasoning_text":
      return [{ type: "text", text: asString(part.text) ?? "" }];
    case "refusal":
      return [{ type: "text", text: asString(part.refusal) ?? "" }];
    case "input_image": {
      if (!isNonEmptyString(part.image_url)) throw createMissingFileError(part, `${path}.image_url`);
      const detail = isNonEmptyString(part.detail) && part.detail !== "auto" ? { detail: part.detail } : {};
      return [{ type: "image_url", image_url: { url: part.image_url, ...detail } }];
    }
    case "input_file": {
      if (!isNonEmptyString(part.file_data)) throw createMissingFileError(part, `${path}.file_data`);
      const filename = asString(part.filename);
      return [{ type: "file", file: { file_data: part.file_data, ...(filename !== undefined && { filename }) } }];
    }
    case "input_audio":
      return [{ type: "input_audio", input_audio: part.input_audio }];
    default:
      throw createIssue(`${path}.type`, `the type "${String(part.type).slice(0, 100)}" isn't supported`);
  }
}

function createMissingFileError(part: Record<string, unknown>, path: string): AppError {
  const other = ["file_id", "file_url"].find((name) => isNonEmptyString(part[name]));
  if (other === undefined) return createIssue(path, "it is required");
  return createIssue(path.replace(/[^.]+$/, other), "Parlor stores no files of this API. Send the content itself");
}

/**
 * Converts the tools of a request. Custom tools become functions.
 *
 * @param unsupported Receives the types of tools that Parlor doesn't run.
 * @throws {AppError} `invalid_request` with the path of the field.
 */
function toTools(
  { tools, tool_choice: choice, parallel_tool_calls: isParallel }: ResponseSettings,
  unsupported: Set<string>,
): ToolsInput {
  const customNames = new Set<string>();
  let functions = (tools ?? []).flatMap((tool, index) => {
    const path = `tools.${index}`;
    if (!isJsonObject(tool)) throw createIssue(path, "a tool is an object with a type");
    if (tool.type !== "function" && tool.type !== "custom") {
      unsupported.add(requireText(tool.type, `${path}.type`));
      return [];
    }
    const name = requireText(tool.name, `${path}.name`);
    if (tool.type === "custom") customNames.add(name);
    return [{ type: "function", function: tool.type === "custom" ? toFunction(tool) : readFunction(tool) }];
  });
  let mode: unknown;
  if (typeof choice === "string") mode = choice;
  else if (isJsonObject(choice) && choice.type === "allowed_tools") {
    const names = new Set((Array.isArray(choice.tools) ? choice.tools : []).map((tool) => asObject(tool).name));
    functions = functions.filter(({ function: { name } }) => names.has(name));
    mode = choice.mode;
  } else if (isJsonObject(choice)) {
    if (choice.type === "function" || choice.type === "custom") {
      mode = { type: "function", function: { name: requireText(choice.name, "tool_choice.name") } };
    } else unsupported.add(requireText(choice.type, "tool_choice.type"));
  }
  if (functions.length === 0) return { params: {}, customNames };
  return {
    params: {
      tools: functions,
      ...(mode !== undefined && mode !== null && { tool_choice: mode }),
      ...(isParallel === false && { parallel_tool_calls: false }),
    },
    customNames,
  };
}

function readFunction({ name, description, parameters, strict }: Record<string, unknown>): Record<string, unknown> {
  return {
    name,
    ...(isNonEmptyString(description) && { description }),
    parameters: isJsonObject(parameters) ? parameters : { type: "object", properties: {} },
    ...(strict === true && { strict }),
  };
}

/** Creates the function for a custom tool. Its grammar becomes part of the description. */
function toFunction({ name, description, format }: Record<string, unknown>): Record<string, unknown> {
  const { syntax, definition } = asObject(format);
  const grammar = isNonEmptyString(definition)
    ? `It follows this ${asString(syntax) ?? ""} grammar:\n${definition}`
    : "";
  return {
    name,
    ...(isNonEmptyString(description) && { description }),
    parameters: {
      type: "object",
      properties: {
        [CUSTOM_INPUT]: { type: "string", description: `The input of the tool, as plain text. ${grammar}`.trim() },
      },
      required: [CUSTOM_INPUT],
    },
  };
}

/** Converts the settings of a request to parameters of a chat request. @throws {AppError} Like `toTools` */
export function toChatParams(settings: ResponseSettings, unsupported: Set<string>): ToolsInput {
  const { params, customNames } = toTools(settings, unsupported);
  for (const field of SAMPLER_FIELDS) {
    const value = settings[field];
    if (value !== undefined && value !== null) params[field] = value;
  }
  if (typeof settings.max_output_tokens === "number") params.max_tokens = settings.max_output_tokens;
  const effort = asString(settings.reasoning?.effort);
  if (effort !== undefined) params.reasoning_effort = REASONING_EFFORTS.find((known) => known === effort) ?? "high";
  const format = asObject(settings.text?.format);
  if (format.type === "json_object") params.response_format = { type: "json_object" };
  if (format.type === "json_schema") {
    const { type, ...schema } = format;
    params.response_format = { type, json_schema: schema };
  }
  return { params, customNames };
}

function requireText(value: unknown, path: string): string {
  if (!isNonEmptyString(value)) throw createIssue(path, "it is required");
  return value;
}

/** Creates the error for a field of the request. @param path `"input.0.content"` */
export function createIssue(path: string, message: string): AppError {
  return new AppError("invalid_request", `Can't use "${path}": ${message}`, { issues: [{ path, message }] });
}
