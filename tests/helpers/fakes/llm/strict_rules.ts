/**
 * What model servers refuse in a chat with tools: IDs, roles, schemas, lengths and order. Each rule cites where the vendor
 * documents it, or where people report the refusal.
 */
import { asObject, isJsonObject, type JsonObject } from "../../../../services/json/type_guards.ts";

/** One rule of a server. */
export interface Rule {
  url: string;
  /** Yields the reasons to refuse a request. */
  check(body: JsonObject): Iterable<string>;
}

/** Signatures of reasoning, by the vendor that issued them. */
export type Signatures = ReadonlyMap<string, string>;

const list = (value: unknown): JsonObject[] => Array.isArray(value) ? value.map(asObject) : [];
const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
/** The text of a message; `undefined` if it has none. */
function textOf({ content }: JsonObject): string | undefined {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? list(content).map(({ text }) => text ?? "").join("") : undefined;
}

// Rules of messages in OpenAI's form.

/** @param more Fields besides those of every server. */
function* checkFields(messages: JsonObject[], more: string[]): Iterable<string> {
  const known = ["role", "content", "name", "tool_calls", "tool_call_id", ...more];
  for (const [n, message] of messages.entries()) {
    const other = Object.keys(message).find((name) => !known.includes(name));
    if (other !== undefined) yield `messages[${n}]: unknown field "${other}"`;
  }
}

function* checkRoles(messages: JsonObject[], roles: string[]): Iterable<string> {
  for (const [n, { role }] of messages.entries()) {
    if (!roles.includes(String(role))) yield `messages[${n}].role: unknown variant "${role}"`;
  }
}

/** Calls have an ID, a name, and arguments that are a JSON object as text. */
function* checkCalls(
  messages: JsonObject[],
  { id: validId, name: validName, fields = [] }: { id: RegExp; name: RegExp; fields?: string[] },
): Iterable<string> {
  for (const [n, message] of messages.entries()) {
    const where = `messages[${n}]`;
    if (message.role === "tool" && !validId.test(String(message.tool_call_id))) {
      yield `${where}.tool_call_id: "${message.tool_call_id}" doesn't match ${validId}`;
    }
    if (message.tool_calls === undefined) continue;
    if (message.role !== "assistant") yield `${where}: only the assistant calls tools`;
    if (list(message.tool_calls).length === 0) yield `${where}.tool_calls: [] is too short`;
    for (const call of list(message.tool_calls)) {
      const known = ["id", "type", "function", ...fields];
      const other = Object.keys(call).find((name) => !known.includes(name));
      if (other !== undefined) yield `${where}.tool_calls: unknown field "${other}"`;
      const { name, arguments: args } = asObject(call.function);
      if (!isText(call.id) || !validId.test(call.id)) yield `${where}.tool_calls: ID "${call.id}", not ${validId}`;
      if (call.type !== "function") yield `${where}.tool_calls: type "${call.type}"`;
      if (!validName.test(String(name))) yield `${where}.tool_calls: name "${name}"`;
      if (typeof args !== "string" || !isObjectText(args)) yield `${where}.tool_calls: arguments ${args}`;
    }
  }
}

function isObjectText(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Every call is followed by its result before anything else, and every result follows its call. */
function* checkResults(messages: JsonObject[]): Iterable<string> {
  let open = new Set<unknown>();
  for (const [n, message] of [...messages, { role: "end" } as JsonObject].entries()) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id)) {
        yield `messages[${n}]: a message with role 'tool' must be a response to a preceding message with 'tool_calls'`;
      }
      continue;
    }
    if (open.size > 0) yield `messages[${n}]: 'tool_calls' must be followed by tool messages: ${[...open]}`;
    const ids = list(message.tool_calls).map(({ id }) => id);
    open = new Set(ids);
    if (open.size < ids.length) yield `messages[${n}].tool_calls: duplicate IDs`;
  }
}

/** Content is text or parts of known types; an assistant message may only be empty next to calls. */
function* checkContent(messages: JsonObject[], userParts: string[]): Iterable<string> {
  for (const [n, message] of messages.entries()) {
    const { role, content, tool_calls: calls } = message;
    if (typeof content !== "string" && !Array.isArray(content) && (role !== "assistant" || calls === undefined)) {
      yield `messages[${n}]: Invalid value for 'content': expected a string, got ${content}`;
    }
    const types = role === "user" ? userParts : ["text"];
    for (const { type, text } of Array.isArray(content) ? list(content) : []) {
      if (!types.includes(String(type))) yield `messages[${n}].content: type "${type}" in a message of the ${role}`;
      if (type === "text" && typeof text !== "string") yield `messages[${n}].content: text is missing`;
    }
  }
}

function* checkKnown(body: JsonObject, fields: string[]): Iterable<string> {
  const other = Object.keys(body).find((name) => !fields.includes(name));
  if (other !== undefined) yield `unknown field "${other}"`;
}

const CHAT_FIELDS = ["model", "messages", "stream", "tools", "tool_choice"];
const messagesOf = ({ messages }: JsonObject) => list(messages);

// Rules of tool definitions.

interface Definition {
  name: unknown;
  parameters: unknown;
}

/** The functions of a request in OpenAI's form. */
const functionsOf = ({ tools }: JsonObject): Definition[] =>
  list(tools).map((tool) => asObject(tool.function)).map(({ name, parameters }) => ({ name, parameters }));

function* checkNames(definitions: Definition[], valid: RegExp, most = 128): Iterable<string> {
  if (definitions.length > most) yield `tools: more than ${most}`;
  for (const [n, { name }] of definitions.entries()) if (!valid.test(String(name))) yield `tools[${n}]: name "${name}"`;
  if (new Set(definitions.map(({ name }) => name)).size < definitions.length) yield "tools: names must be unique";
}

/** Yields all schemas inside of a schema, with their paths. */
function* walk(schema: unknown, path: string): Iterable<[unknown, string]> {
  yield [schema, path];
  if (!isJsonObject(schema)) return;
  for (const name of ["properties", "$defs", "definitions", "patternProperties"]) {
    for (const [key, inner] of Object.entries(asObject(schema[name]))) yield* walk(inner, `${path}.${name}.${key}`);
  }
  for (const name of ["items", "additionalProperties", "not"]) {
    if (schema[name] !== undefined) yield* walk(schema[name], `${path}.${name}`);
  }
  for (const name of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    for (const inner of Array.isArray(schema[name]) ? schema[name] : []) yield* walk(inner, `${path}.${name}`);
  }
}

const COMBINATORS = ["anyOf", "oneOf", "allOf", "enum", "not"];

/** The parameters are an object; some servers want its properties, and no alternatives. */
function* checkRoot(definitions: Definition[], { isFlat = true, needsProperties = true } = {}): Iterable<string> {
  for (const [n, { parameters }] of definitions.entries()) {
    const where = `tools[${n}]`;
    if (!isJsonObject(parameters)) yield `${where}: parameters are missing`;
    const { type, properties, ...rest } = asObject(parameters);
    if (type !== "object") yield `${where}: schema must be a JSON Schema of 'type: "object"', got ${type}`;
    if (needsProperties && !isJsonObject(properties)) yield `${where}: object schema missing properties`;
    const combinator = COMBINATORS.find((name) => rest[name] !== undefined);
    if (isFlat && combinator !== undefined) yield `${where}: schema must not have '${combinator}' at the top level`;
  }
}

/** Every part of a schema is valid JSON Schema. */
function* checkSchemas(definitions: Definition[], { needsItems = false } = {}): Iterable<string> {
  for (const [n, { parameters }] of definitions.entries()) {
    for (const [schema, path] of walk(parameters ?? {}, `tools[${n}]`)) {
      if (typeof schema === "boolean") continue;
      if (!isJsonObject(schema)) yield `${path}: not a schema`;
      const { type, required, enum: values, items, prefixItems } = asObject(schema);
      if (type !== undefined && ![type].flat().every(isText)) yield `${path}.type: not a type`;
      if (required !== undefined && !(Array.isArray(required) && required.every(isText))) yield `${path}.required`;
      if (values !== undefined && !Array.isArray(values)) yield `${path}.enum: not a list`;
      if (needsItems && type === "array" && items === undefined && prefixItems === undefined) {
        yield `${path}: array schema missing items`;
      }
    }
  }
}

// The servers.

const OPENAI_REFERENCE = "https://platform.openai.com/docs/api-reference/chat/create";
const OPENAI_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const OPENAI_FIELDS = [
  ...["temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop", "logit_bias", "n", "user"],
  ...["max_completion_tokens", "stream_options", "response_format", "reasoning_effort", "metadata", "modalities"],
  ...["audio", "parallel_tool_calls", "store", "service_tier", "verbosity", "prediction", "web_search_options"],
];

/** Definitions that OpenAI refuses. */
const OPENAI_TOOLS = (find: (body: JsonObject) => Definition[]): Rule[] => [
  { url: `${OPENAI_REFERENCE}#chat-create-tools`, check: (body) => checkNames(find(body), OPENAI_NAME) },
  {
    url: "https://github.com/openai/openai-agents-python/issues/449",
    check: (body) => checkRoot(find(body)),
  },
  {
    url: "https://github.com/streamnative/streamnative-mcp-server/issues/26",
    check: (body) => checkSchemas(find(body), { needsItems: true }),
  },
];

const OPENAI: Rule[] = [
  { url: OPENAI_REFERENCE, check: (body) => checkKnown(body, [...CHAT_FIELDS, ...OPENAI_FIELDS]) },
  { url: OPENAI_REFERENCE, check: (body) => checkFields(messagesOf(body), ["refusal", "audio"]) },
  {
    url: OPENAI_REFERENCE,
    check: (body) => checkRoles(messagesOf(body), ["developer", "system", "user", "assistant", "tool"]),
  },
  {
    url: "https://github.com/vercel/ai/pull/13744",
    check: (body) => checkContent(messagesOf(body), ["text", "image_url", "input_audio", "file"]),
  },
  {
    // IDs: https://github.com/earendil-works/pi/issues/198
    url: "https://platform.openai.com/docs/guides/function-calling",
    check: (body) => checkCalls(messagesOf(body), { id: /^[\x21-\x7e]{1,40}$/, name: OPENAI_NAME }),
  },
  {
    url: "https://github.com/BloomLabsInc/genkit-plugins/issues/225",
    check: (body) => checkResults(messagesOf(body)),
  },
  ...OPENAI_TOOLS(functionsOf),
];

const RESPONSES_REFERENCE = "https://platform.openai.com/docs/api-reference/responses/create";

function* checkItems(body: JsonObject, signatures: Signatures): Iterable<string> {
  const items = list(body.input);
  const open = new Set<unknown>();
  for (const [n, item] of items.entries()) {
    const { type, role, call_id: id } = item;
    const where = `input[${n}]`;
    if (type === "function_call") {
      // https://github.com/earendil-works/pi/issues/1022
      if (!isText(id) || id.length > 64) yield `${where}.call_id: string too long, maximum length 64`;
      if (open.has(id)) yield `${where}.call_id: duplicate`;
      if (item.id !== undefined && !String(item.id).startsWith("fc")) yield `${where}.id: must begin with 'fc'`;
      if (!OPENAI_NAME.test(String(item.name))) yield `${where}.name: "${item.name}"`;
      if (typeof item.arguments !== "string") yield `${where}.arguments: expected a string`;
      open.add(id);
    } else if (type === "function_call_output") {
      if (!open.delete(id)) yield `${where}: No tool call found for function call output with call_id ${id}`;
      if (typeof item.output !== "string") yield `${where}.output: expected a string`;
    } else if (type === "reasoning") {
      if (!signatures.get(String(item.encrypted_content))?.startsWith("openai")) {
        yield `${where}: The encrypted content could not be verified`;
      }
      if (!Array.isArray(item.summary)) yield `${where}.summary: Missing required parameter`;
      const next = items[n + 1]?.type;
      if (next !== "function_call" && next !== "message" && next !== "reasoning") {
        yield `${where}: 'reasoning' was provided without its required following item`;
      }
    } else if (type === "message") {
      if (!["user", "assistant", "system", "developer"].includes(String(role))) yield `${where}.role: "${role}"`;
      const types = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
      const parts = list(item.content);
      if (parts.length === 0) yield `${where}.content: is empty`;
      for (const { type: part } of parts) {
        if (!types.includes(String(part))) yield `${where}.content: Invalid value: '${part}'`;
      }
    } else yield `${where}.type: "${type}"`;
  }
  if (open.size > 0) yield `No tool output found for function call ${[...open]}`;
}

const flatDefinitions = ({ tools }: JsonObject): Definition[] =>
  list(tools).map(({ name, parameters }) => ({ name, parameters }));

const createResponsesRules = (signatures: Signatures): Rule[] => [
  {
    url: RESPONSES_REFERENCE,
    check: (body) =>
      checkKnown(body, [
        ...[
          "model",
          "input",
          "instructions",
          "stream",
          "store",
          "include",
          "tools",
          "tool_choice",
          "reasoning",
          "text",
        ],
        ...["max_output_tokens", "temperature", "top_p", "parallel_tool_calls", "metadata", "user", "service_tier"],
        ...["previous_response_id", "truncation", "background", "prompt_cache_key", "safety_identifier"],
      ]),
  },
  {
    url: "https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items",
    check: (body) => checkItems(body, signatures),
  },
  ...OPENAI_TOOLS(flatDefinitions),
];

const ANTHROPIC_TOOLS = "https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use";

/** The order of roles and blocks, and their contents. */
function* checkBlocks(body: JsonObject, signatures: Signatures): Iterable<string> {
  const messages = messagesOf(body);
  let open = new Set<unknown>();
  const used = new Set<unknown>();
  if (messages[0]?.role !== "user") yield 'messages: first message must use the "user" role';
  for (const [n, { role, content }] of messages.entries()) {
    const where = `messages.${n}`;
    if (role !== "user" && role !== "assistant") yield `${where}.role: Unexpected role "${role}"`;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
    const isLast = n === messages.length - 1;
    if (blocks.length === 0 && !(isLast && role === "assistant")) yield `${where}: all messages must have content`;
    const results = blocks.filter(({ type }) => type === "tool_result");
    if (blocks.slice(0, results.length).some(({ type }) => type !== "tool_result")) {
      yield `${where}: tool_result blocks must come first`;
    }
    for (const { tool_use_id: id } of results) {
      if (!open.delete(id)) yield `${where}: unexpected tool_use_id found in tool_result blocks: ${id}`;
    }
    if (open.size > 0) {
      yield `${where}: tool_use ids were found without tool_result blocks immediately after: ${[...open]}`;
    }
    open = new Set(blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id));
    for (const [at, block] of blocks.entries()) {
      yield* checkBlock(block, `${where}.content.${at}`, { role, used, signatures });
    }
    const firstThought = blocks.findIndex(({ type }) => /thinking$/.test(String(type)));
    if (firstThought > 0) yield `${where}: the first block must be thinking`;
    if (/thinking$/.test(String(blocks.at(-1)?.type))) yield `${where}: the final block can't be thinking`;
    if (isLast && role === "assistant" && /\s$/.test(textOf({ content: blocks }) ?? "")) {
      yield "messages: final assistant content cannot end with trailing whitespace";
    }
  }
  if (open.size > 0) yield `messages: tool_use ids were found without tool_result blocks: ${[...open]}`;
}

function* checkBlock(
  block: JsonObject,
  where: string,
  { role, used, signatures }: { role: unknown; used: Set<unknown>; signatures: Signatures },
): Iterable<string> {
  const { type, text, id, name, input } = block;
  const types = role === "user" ? ["text", "image", "document", "tool_result"] : [
    ...["text", "thinking", "redacted_thinking", "tool_use"],
  ];
  if (!types.includes(String(type))) yield `${where}: Input tag '${type}' in a message of the ${role}`;
  if (type === "text" && String(text ?? "").trim() === "") yield `${where}: text content blocks must be non-empty`;
  if (type === "tool_use") {
    if (!/^[a-zA-Z0-9_-]+$/.test(String(id))) yield `${where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
    if (used.has(id)) yield `${where}: tool_use ids must be unique`;
    used.add(id);
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(String(name))) yield `${where}.name: "${name}"`;
    if (!isJsonObject(input)) yield `${where}.input: Input should be a valid dictionary`;
  }
  if (type === "thinking" && !signatures.get(String(block.signature))?.startsWith("anthropic")) {
    yield `${where}: Invalid signature in thinking block`;
  }
  if (type === "tool_result") { for (const inner of list(block.content)) yield* checkResultBlock(inner, where); }
}

function* checkResultBlock({ type, text }: JsonObject, where: string): Iterable<string> {
  if (type !== "text" && type !== "image") yield `${where}: Input tag '${type}' in a tool result`;
  if (type === "text" && !isText(text)) yield `${where}: text content blocks must be non-empty`;
}

/** A reply that called tools while the model thought has to begin with thinking, and the limit is above the budget. */
function* checkThinking(body: JsonObject): Iterable<string> {
  const { type, budget_tokens: budget } = asObject(body.thinking);
  if (type !== "enabled") return;
  if (Number(budget) < 1024) yield "thinking.budget_tokens: Input should be greater than or equal to 1024";
  if (Number(body.max_tokens) <= Number(budget)) yield "max_tokens must be greater than thinking.budget_tokens";
  if (body.temperature !== undefined && body.temperature !== 1) yield "temperature may only be set to 1";
  if (body.top_k !== undefined) yield "top_k must be unset when thinking is enabled";
  const messages = messagesOf(body);
  const question = messages.findLastIndex(({ role, content }) =>
    role === "user" && list(content).some(({ type }) => type !== "tool_result")
  );
  for (const { role, content } of messages.slice(question + 1)) {
    const blocks = list(content);
    if (role !== "assistant" || !blocks.some(({ type }) => type === "tool_use")) continue;
    if (!/thinking$/.test(String(blocks[0]!.type))) yield `Expected thinking, but found ${blocks[0]!.type}`;
  }
}

const anthropicDefinitions = ({ tools }: JsonObject): Definition[] =>
  list(tools).map(({ name, input_schema }) => ({ name, parameters: input_schema }));

const createAnthropicRules = (signatures: Signatures): Rule[] => [
  {
    url: "https://docs.claude.com/en/api/messages",
    check: function* (body) {
      yield* checkKnown(body, [
        ...["model", "messages", "max_tokens", "system", "stream", "temperature", "top_p", "top_k", "stop_sequences"],
        ...["tools", "tool_choice", "thinking", "metadata", "service_tier", "output_config", "cache_control"],
      ]);
      if (typeof body.max_tokens !== "number") yield "max_tokens: Field required";
      for (const { text } of list(body.system)) {
        if (!isText(text)) yield "system: text content blocks must be non-empty";
      }
      const marks = JSON.stringify([body.system, body.messages]).split('"cache_control"').length - 1;
      if (marks > 4) yield "A maximum of 4 blocks with cache_control may be provided";
    },
  },
  { url: ANTHROPIC_TOOLS, check: (body) => checkBlocks(body, signatures) },
  { url: "https://docs.claude.com/en/docs/build-with-claude/extended-thinking", check: checkThinking },
  {
    url: ANTHROPIC_TOOLS,
    check: (body) => checkNames(anthropicDefinitions(body), /^[a-zA-Z0-9_-]{1,128}$/, Infinity),
  },
  {
    url: "https://github.com/anthropics/claude-code/issues/27337",
    check: (body) => checkRoot(anthropicDefinitions(body), { needsProperties: false }),
  },
  { url: ANTHROPIC_TOOLS, check: (body) => checkSchemas(anthropicDefinitions(body)) },
];

const GEMINI_SCHEMA = "https://ai.google.dev/api/caching#Schema";
const GEMINI_KEYWORDS = [
  ...["type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required"],
  ...["minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering"],
  ...["default", "items", "minimum", "maximum"],
];

function* checkGeminiSchemas(definitions: Definition[]): Iterable<string> {
  for (const [n, { parameters }] of definitions.entries()) {
    if (parameters === undefined) continue;
    const root = `tools[0].function_declarations[${n}].parameters`;
    for (const [schema, path] of walk(parameters, root)) {
      if (!isJsonObject(schema)) yield `Invalid value at '${path}'`;
      const { type, format, enum: values, items, required, properties, anyOf } = asObject(schema);
      const unknown = Object.keys(asObject(schema)).find((name) => !GEMINI_KEYWORDS.includes(name));
      if (unknown !== undefined) yield `Invalid JSON payload received. Unknown name "${unknown}" at '${path}'`;
      if (typeof type !== "string" && anyOf === undefined) yield `Invalid value at '${path}.type'`;
      if (values !== undefined && !(type === "string" && Array.isArray(values) && values.every(isText))) {
        yield `${path}.enum: only allowed for STRING type, without empty values`;
      }
      if (type === "string" && format !== undefined && format !== "enum" && format !== "date-time") {
        yield `${path}.format: only 'enum' and 'date-time' are supported for STRING type`;
      }
      if (type === "array" && items === undefined) yield `${path}.items: missing field`;
      if (path === root && Object.keys(asObject(properties)).length === 0) {
        yield `${path}.properties: should be non-empty for OBJECT type`;
      }
      const missing = (Array.isArray(required) ? required : []).find((name) =>
        asObject(properties)[name] === undefined
      );
      if (missing !== undefined) yield `${path}.required: property is not defined: ${missing}`;
    }
  }
}

/** The first call of each step of the current turn has the signature that came with it. */
function* checkThoughtSignatures(messages: JsonObject[], signatures: Signatures): Iterable<string> {
  const question = messages.findLastIndex(({ role }) => role === "user");
  for (const [n, { tool_calls: calls }] of messages.entries()) {
    for (const [at, call] of list(calls).entries()) {
      const signature = asObject(asObject(call.extra_content).google).thought_signature;
      if (signature === undefined) {
        if (n > question && at === 0) yield `Function call is missing a thought_signature, position ${n}`;
      } else if (
        signature !== "skip_thought_signature_validator" && !signatures.get(String(signature))?.startsWith("gemini")
      ) yield `Thought signature is not valid, position ${n}`;
    }
  }
}

function* checkGeminiOrder(messages: JsonObject[]): Iterable<string> {
  for (const [n, message] of messages.entries()) {
    const before = messages[n - 1]?.role;
    if (message.tool_calls !== undefined && before !== "user" && before !== "tool") {
      yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    }
    const isEmpty = textOf(message)?.trim() === "";
    if (message.tool_calls === undefined && message.role !== "tool" && isEmpty) yield `contents[${n}].parts: empty`;
  }
  if (messages.at(-1)?.role === "assistant") yield "Please ensure that a request ends with a user turn.";
}

const createGeminiRules = (signatures: Signatures): Rule[] => [
  {
    url: "https://ai.google.dev/gemini-api/docs/openai",
    check: (body) =>
      checkKnown(body, [
        ...CHAT_FIELDS,
        ...["temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "stream_options"],
        ...["response_format", "reasoning_effort", "extra_body", "modalities", "parallel_tool_calls"],
      ]),
  },
  { url: "https://ai.google.dev/gemini-api/docs/openai", check: (body) => checkFields(messagesOf(body), []) },
  {
    url: "https://ai.google.dev/gemini-api/docs/openai",
    check: (body) => checkRoles(messagesOf(body), ["system", "user", "assistant", "tool"]),
  },
  {
    url: "https://ai.google.dev/gemini-api/docs/openai#image-understanding",
    check: (body) => checkContent(messagesOf(body), ["text", "image_url", "input_audio"]),
  },
  {
    url: "https://ai.google.dev/api/caching#FunctionDeclaration",
    check: (body) =>
      checkCalls(messagesOf(body), { id: /^.+$/, name: /^[a-zA-Z_][\w.:-]{0,62}$/, fields: ["extra_content"] }),
  },
  { url: "https://github.com/google-gemini/gemini-cli/issues/3814", check: (body) => checkResults(messagesOf(body)) },
  {
    url: "https://github.com/google-gemini/gemini-cli/issues/26486",
    check: (body) => checkGeminiOrder(messagesOf(body)),
  },
  {
    url: "https://ai.google.dev/gemini-api/docs/thought-signatures",
    check: (body) => checkThoughtSignatures(messagesOf(body), signatures),
  },
  {
    url: "https://ai.google.dev/api/caching#FunctionDeclaration",
    check: (body) => checkNames(functionsOf(body), /^[a-zA-Z_][\w.:-]{0,62}$/),
  },
  { url: GEMINI_SCHEMA, check: (body) => checkGeminiSchemas(functionsOf(body)) },
];

/** Mistral's own validator of requests. */
const MISTRAL_VALIDATOR =
  "https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py";
const MISTRAL_FOLLOWERS: Record<string, string[]> = {
  system: ["user", "assistant", "system"],
  user: ["assistant", "system", "user"],
  assistant: ["assistant", "user", "tool"],
  tool: ["assistant", "tool"],
};

function* checkMistralOrder(messages: JsonObject[]): Iterable<string> {
  for (const [n, message] of messages.entries()) {
    const before = messages[n - 1]?.role;
    if (before !== undefined && !MISTRAL_FOLLOWERS[String(before)]?.includes(String(message.role))) {
      yield `Unexpected role '${message.role}' after role '${before}'`;
    }
    if (message.role === "assistant" && message.tool_calls === undefined && !isText(textOf(message)?.trim())) {
      yield "Assistant message must have either content or tool_calls, but not both.";
    }
  }
  const last = messages.at(-1);
  if (last?.role !== "user" && last?.role !== "tool" && last?.prefix !== true) {
    yield `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last?.role}`;
  }
}

const MISTRAL: Rule[] = [
  {
    url: "https://docs.mistral.ai/api/endpoint/chat",
    check: (body) =>
      checkKnown(body, [
        ...CHAT_FIELDS,
        ...["temperature", "top_p", "max_tokens", "stop", "random_seed", "frequency_penalty", "presence_penalty", "n"],
        ...["response_format", "safe_prompt", "prompt_mode", "reasoning_effort", "parallel_tool_calls", "prediction"],
      ]),
  },
  { url: "https://docs.mistral.ai/api/endpoint/chat", check: (body) => checkFields(messagesOf(body), ["prefix"]) },
  {
    url: "https://docs.mistral.ai/api/endpoint/chat",
    check: (body) => checkRoles(messagesOf(body), ["system", "user", "assistant", "tool"]),
  },
  {
    url: "https://docs.mistral.ai/capabilities/vision",
    check: (body) => checkContent(messagesOf(body), ["text", "image_url", "document_url", "input_audio"]),
  },
  {
    url: MISTRAL_VALIDATOR,
    check: (body) => checkCalls(messagesOf(body), { id: /^[a-zA-Z0-9]{9}$/, name: OPENAI_NAME }),
  },
  { url: MISTRAL_VALIDATOR, check: (body) => checkResults(messagesOf(body)) },
  { url: MISTRAL_VALIDATOR, check: (body) => checkMistralOrder(messagesOf(body)) },
  { url: MISTRAL_VALIDATOR, check: (body) => checkNames(functionsOf(body), OPENAI_NAME) },
  { url: MISTRAL_VALIDATOR, check: (body) => checkSchemas(functionsOf(body)) },
];

const DEEPSEEK_REFERENCE = "https://api-docs.deepseek.com/api/create-chat-completion";

/** While the model thinks, every reply of a turn with calls comes back with its reasoning. */
function* checkReasoningContent(body: JsonObject): Iterable<string> {
  if (asObject(body.thinking).type === "disabled") return;
  const messages = messagesOf(body);
  let start = 0;
  for (let end = 1; end <= messages.length; end++) {
    if (end < messages.length && messages[end]!.role !== "user") continue;
    const replies = messages.slice(start, end).filter(({ role }) => role === "assistant");
    const isMissing = replies.some(({ reasoning_content: text }) => typeof text !== "string");
    if (isMissing && replies.some(({ tool_calls: calls }) => calls !== undefined)) {
      yield "The `reasoning_content` in the thinking mode must be passed back to the API.";
    }
    start = end;
  }
}

const DEEPSEEK: Rule[] = [
  {
    url: DEEPSEEK_REFERENCE,
    check: (body) =>
      checkKnown(body, [
        ...CHAT_FIELDS,
        ...["temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens", "stop", "stream_options"],
        ...["thinking", "reasoning_effort", "response_format", "logprobs", "top_logprobs"],
      ]),
  },
  {
    url: DEEPSEEK_REFERENCE,
    check: (body) => checkFields(messagesOf(body), ["reasoning_content", "prefix"]),
  },
  { url: DEEPSEEK_REFERENCE, check: (body) => checkRoles(messagesOf(body), ["system", "user", "assistant", "tool"]) },
  { url: DEEPSEEK_REFERENCE, check: (body) => checkContent(messagesOf(body), ["text"]) },
  {
    url: DEEPSEEK_REFERENCE,
    check: (body) => checkCalls(messagesOf(body), { id: /^[\x21-\x7e]+$/, name: OPENAI_NAME }),
  },
  { url: "https://github.com/ThinkInAIXYZ/deepchat/issues/1078", check: (body) => checkResults(messagesOf(body)) },
  {
    // Final replies, too: https://github.com/MoonshotAI/kimi-cli/issues/2141
    url: "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    check: checkReasoningContent,
  },
  { url: DEEPSEEK_REFERENCE, check: (body) => checkNames(functionsOf(body), OPENAI_NAME) },
  { url: DEEPSEEK_REFERENCE, check: (body) => checkRoot(functionsOf(body), { isFlat: false, needsProperties: false }) },
];

/** Signed blocks of reasoning have to be of the model's vendor. */
function* checkDetails(messages: JsonObject[], signatures: Signatures): Iterable<string> {
  for (const [n, { reasoning_details: details }] of messages.entries()) {
    for (const { signature, data } of list(details)) {
      const issuer = signatures.get(String(signature ?? data));
      if ((signature ?? data) !== undefined && !issuer?.startsWith("anthropic")) {
        yield `messages.${n}: Invalid signature in thinking block`;
      }
    }
  }
}

/** With a model of Anthropic. What the provider refuses is an error of the request. */
const createOpenRouterRules = (signatures: Signatures): Rule[] => [
  {
    url: "https://openrouter.ai/docs/api-reference/parameters",
    check: (body) =>
      checkKnown(body, [
        ...CHAT_FIELDS,
        ...["temperature", "top_p", "top_k", "min_p", "top_a", "frequency_penalty", "presence_penalty", "seed", "stop"],
        ...["repetition_penalty", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs", "top_logprobs"],
        ...["response_format", "structured_outputs", "parallel_tool_calls", "reasoning", "stream_options", "usage"],
        ...["models", "provider", "plugins", "transforms", "verbosity", "user", "modalities", "audio"],
      ]),
  },
  {
    url: "https://openrouter.ai/docs/api-reference/overview",
    check: (body) =>
      checkFields(messagesOf(body), [
        ...["reasoning", "reasoning_content", "reasoning_details", "refusal", "images", "audio"],
      ]),
  },
  {
    url: "https://openrouter.ai/docs/api-reference/overview",
    check: (body) => checkRoles(messagesOf(body), ["system", "developer", "user", "assistant", "tool"]),
  },
  {
    url: "https://openrouter.ai/docs/features/multimodal/overview",
    check: (body) => checkContent(messagesOf(body), ["text", "image_url", "input_audio", "file"]),
  },
  {
    // OpenRouter returns the provider's error. The provider's rule: https://github.com/langchain-ai/langchain/pull/37756
    url: "https://github.com/editor-code-assistant/eca/issues/209",
    check: (body) =>
      checkCalls(messagesOf(body), { id: /^[a-zA-Z0-9_-]+$/, name: OPENAI_NAME, fields: ["index", "extra_content"] }),
  },
  { url: "https://openrouter.ai/docs/features/tool-calling", check: (body) => checkResults(messagesOf(body)) },
  {
    url: "https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks",
    check: (body) => checkDetails(messagesOf(body), signatures),
  },
  { url: ANTHROPIC_TOOLS, check: (body) => checkNames(functionsOf(body), /^[a-zA-Z0-9_-]{1,64}$/) },
  { url: ANTHROPIC_TOOLS, check: (body) => checkRoot(functionsOf(body), { needsProperties: false }) },
];

const OLLAMA_API = "https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion";
const OLLAMA_TYPES = "https://github.com/ollama/ollama/blob/main/api/types.go";

function* checkOllamaMessages(messages: JsonObject[]): Iterable<string> {
  let open: unknown[] = [];
  for (const [n, { role, content, tool_calls: calls, tool_name: name, images }] of messages.entries()) {
    const where = `messages[${n}]`;
    if (!["system", "user", "assistant", "tool"].includes(String(role))) yield `${where}.role: "${role}"`;
    if (typeof content !== "string") yield `json: cannot unmarshal ${where}.content of type string`;
    for (const image of Array.isArray(images) ? images : []) {
      if (!/^[A-Za-z0-9+/=]+$/.test(String(image))) yield `${where}.images: illegal base64 data`;
    }
    for (const { function: named } of list(calls)) {
      const { name, arguments: args } = asObject(named);
      if (!isText(name)) yield `${where}.tool_calls: name`;
      // https://github.com/neuron-core/neuron-ai/issues/219
      if (!isJsonObject(args)) yield `json: cannot unmarshal ${where}.tool_calls.function.arguments`;
      open.push(name);
    }
    if (role !== "tool") {
      if (calls === undefined) open = [];
      continue;
    }
    // Templates name the tool of a result.
    if (!open.includes(name)) yield `${where}.tool_name: no call of "${name}" before it`;
  }
}

function* checkOllamaTools(definitions: Definition[]): Iterable<string> {
  for (const [n, { name, parameters }] of definitions.entries()) {
    if (!isText(name)) yield `tools[${n}]: name`;
    for (const [schema, path] of walk(parameters, `tools[${n}]`)) {
      if (!/\.properties\.[^.]*$/.test(path)) continue;
      if (!isJsonObject(schema)) yield `json: cannot unmarshal ${typeof schema} into ${path} of type api.ToolProperty`;
      const { type, description, enum: values } = asObject(schema);
      if (type !== undefined && ![type].flat().every(isText)) yield `json: cannot unmarshal ${path}.type`;
      if (description !== undefined && typeof description !== "string") {
        yield `json: cannot unmarshal ${path}.description`;
      }
      if (values !== undefined && !Array.isArray(values)) yield `json: cannot unmarshal ${path}.enum`;
    }
  }
}

const OLLAMA: Rule[] = [
  {
    url: OLLAMA_API,
    check: (body) =>
      checkKnown(body, [
        ...["model", "messages", "stream", "format", "options", "keep_alive", "tools", "think", "truncate", "shift"],
        ...["logprobs", "top_logprobs"],
      ]),
  },
  { url: OLLAMA_TYPES, check: (body) => checkOllamaMessages(messagesOf(body)) },
  { url: "https://github.com/ollama/ollama/issues/14256", check: (body) => checkOllamaTools(functionsOf(body)) },
];

const LLAMA_SERVER = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md";
const LLAMA_CHAT = "https://github.com/ggml-org/llama.cpp/blob/master/common/chat.cpp";
const LLAMA_GRAMMAR = "https://github.com/ggml-org/llama.cpp/blob/master/common/json-schema-to-grammar.cpp";

function* checkGrammars(definitions: Definition[]): Iterable<string> {
  for (const [n, { parameters }] of definitions.entries()) {
    for (const [schema, path] of walk(parameters, `tools[${n}]`)) {
      const { pattern, $ref } = asObject(schema);
      if (isText(pattern) && !/^\^[^]*\$$/.test(pattern)) yield `${path}: Pattern must start with '^' and end with '$'`;
      if (isText($ref) && findReference(parameters, $ref) === undefined) yield `${path}: Error resolving ref ${$ref}`;
    }
  }
}

function findReference(root: unknown, ref: string): unknown {
  return ref.slice(2).split("/").reduce<unknown>((found, key) => asObject(found)[key], root);
}

const LLAMA: Rule[] = [
  { url: LLAMA_CHAT, check: (body) => checkContent(messagesOf(body), ["text", "image_url", "input_audio"]) },
  {
    url: LLAMA_SERVER,
    check: (body) => checkRoles(messagesOf(body), ["system", "developer", "user", "assistant", "tool"]),
  },
  {
    url: LLAMA_CHAT,
    check: (body) => checkCalls(messagesOf(body), { id: /^.+$/, name: /^.+$/, fields: ["extra_content"] }),
  },
  // Templates raise an exception for a result without its call.
  { url: LLAMA_CHAT, check: (body) => checkResults(messagesOf(body)) },
  {
    url: LLAMA_CHAT,
    check: function* ({ messages, chat_template_kwargs: options }) {
      if (list(messages).at(-1)?.role === "assistant" && asObject(options).enable_thinking === true) {
        yield "Assistant response prefill is incompatible with enable_thinking.";
      }
    },
  },
  { url: LLAMA_GRAMMAR, check: (body) => checkGrammars(functionsOf(body)) },
];

/** The servers whose rules are known. */
export const STRICT_NAMES = [
  ...["openai", "openai-responses", "anthropic", "gemini", "mistral", "deepseek", "openrouter", "ollama"] as const,
  "llama.cpp",
] as const;

/** One of the servers. */
export type StrictName = (typeof STRICT_NAMES)[number];

/** Returns the rules of all servers. @param signatures Those that servers have issued so far. */
export function createStrictRules(signatures: Signatures): Record<StrictName, Rule[]> {
  return {
    openai: OPENAI,
    "openai-responses": createResponsesRules(signatures),
    anthropic: createAnthropicRules(signatures),
    gemini: createGeminiRules(signatures),
    mistral: MISTRAL,
    deepseek: DEEPSEEK,
    openrouter: createOpenRouterRules(signatures),
    ollama: OLLAMA,
    "llama.cpp": LLAMA,
  };
}
