/**
 * Fakes of hosted services that refuse what they don't know: what each accepts is from its documentation, how it refuses from
 * responses that people have reported.
 */
import type { FakeAnswer, RecordedRequest } from "./fake_llm_http.ts";
import type { FakePersonality } from "./fake_llm_servers.ts";

/** A message of a request. */
type FakeMessage = Record<string, unknown> & { role: string; content?: unknown };

/** How a service refuses fields. */
interface Strictness {
  /** Fields that it documents. */
  accepts: string[];
  /** Returns why it refuses a value, or undefined. */
  refusesValue?(field: string, value: unknown): string | undefined;
  /** Returns why it refuses the messages, or undefined. */
  refusesMessages?(messages: FakeMessage[], body: Record<string, unknown>): string | undefined;
  /** The response to fields that it doesn't know. */
  refusal(fields: string[]): { status: number; body: unknown };
}

/** Fields of every chat request. */
const REQUIRED = ["model", "messages", "stream", "tools", "tool_choice"];

function openAiError(message: string, param: string | null, code: string | null) {
  return { status: 400, body: { error: { message, type: "invalid_request_error", param, code } } };
}

/** @see https://platform.openai.com/docs/api-reference/chat/create */
const OPENAI_FIELDS = [
  ...["temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop", "logit_bias", "n", "user"],
  ...["max_tokens", "max_completion_tokens", "stream_options", "response_format", "reasoning_effort", "metadata"],
];

const openAi: Strictness = {
  accepts: OPENAI_FIELDS,
  // One at a time.
  refusal: ([field]) => openAiError(`Unrecognized request argument supplied: ${field}`, null, null),
};

/**
 * Thinking models: a limit under another name, and no temperature.
 *
 * @see https://github.com/microsoft/vscode-copilot-release/issues/8065
 */
const openAiThinking: Strictness = {
  ...openAi,
  refusesValue: (field, value) => {
    if (field === "max_tokens") {
      return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    }
    if (field !== "temperature" || value === 1) return undefined;
    return `Unsupported value: 'temperature' does not support ${value} with this model. Only the default (1) value is supported.`;
  },
};

/**
 * @see https://docs.mistral.ai/api/endpoint/chat
 * @see https://github.com/editor-code-assistant/eca/issues/231
 */
const mistral: Strictness = {
  accepts: [
    ...["temperature", "top_p", "max_tokens", "stop", "random_seed", "frequency_penalty", "presence_penalty", "n"],
    ...["response_format", "safe_prompt", "prompt_mode", "reasoning_effort", "parallel_tool_calls", "prediction"],
  ],
  refusal: (fields) => ({
    status: 422,
    body: {
      object: "error",
      message: {
        detail: fields.map((field) => ({
          type: "extra_forbidden",
          loc: ["body", field],
          msg: "Extra inputs are not permitted",
        })),
      },
      type: "invalid_request_error",
      param: null,
      code: null,
    },
  }),
};

/**
 * @see https://ai.google.dev/gemini-api/docs/openai
 * @see https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77
 */
const gemini: Strictness = {
  accepts: [
    ...["temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "stream_options"],
    ...["response_format", "reasoning_effort", "extra_body"],
  ],
  refusal: (fields) => {
    const descriptions = fields.map((field) =>
      `Invalid JSON payload received. Unknown name "${field}": Cannot find field.`
    );
    const fieldViolations = descriptions.map((description) => ({ description }));
    const details = [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations }];
    const error = { code: 400, message: descriptions.join("\n"), status: "INVALID_ARGUMENT", details };
    return { status: 400, body: [{ error }] };
  },
};

/**
 * @see https://console.groq.com/docs/api-reference#chat-create
 * @see https://github.com/immersive-translate/immersive-translate/issues/3016
 */
const groq: Strictness = {
  accepts: [
    ...["temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "stream_options", "user", "n"],
    ...["response_format", "reasoning_effort", "reasoning_format", "service_tier"],
  ],
  refusal: ([field]) => ({
    status: 400,
    body: { error: { message: `property '${field}' is unsupported`, type: "invalid_request_error" } },
  }),
};

/**
 * DeepSeek documents these fields; the fake refuses all others, so that a test notices them. Reasoning has to come back in turns
 * that call tools, and images are refused.
 *
 * @see https://api-docs.deepseek.com/api/create-chat-completion
 * @see https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
 * @see https://github.com/anomalyco/opencode/issues/24083
 */
const deepseek: Strictness = {
  accepts: [
    ...["temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens", "stop", "stream_options"],
    ...["thinking", "reasoning_effort", "response_format", "logprobs", "top_logprobs"],
  ],
  refusesValue: (field, value) => {
    if (field !== "thinking") return undefined;
    const type = (value as { type?: unknown } | null)?.type;
    if (type === "enabled" || type === "disabled") return undefined;
    return `Failed to deserialize the JSON body into the target type: thinking.type: unknown variant \`${type}\``;
  },
  refusesMessages: (messages, { thinking }) => {
    const types = messages.flatMap(({ content }) => Array.isArray(content) ? content.map(({ type }) => type) : []);
    const unknown = types.find((type) => type !== "text");
    if (unknown !== undefined) {
      return `Failed to deserialize the JSON body into the target type: messages: unknown variant \`${unknown}\`, expected \`text\``;
    }
    const thinks = (thinking as { type?: unknown } | undefined)?.type !== "disabled";
    const isMissing = messages.some((message) =>
      message.tool_calls !== undefined && typeof message.reasoning_content !== "string"
    );
    return thinks && isMissing
      ? "The `reasoning_content` in the thinking mode must be passed back to the API."
      : undefined;
  },
  refusal: (fields) => openAiError(`Invalid parameters: ${fields.join(", ")}`, null, "invalid_request_error"),
};

/**
 * OpenRouter documents these fields; the fake refuses all others, so that a test notices them. Signed blocks of reasoning have to
 * come back unchanged with tool calls.
 *
 * @see https://openrouter.ai/docs/api-reference/parameters
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens
 */
const openrouter: Strictness = {
  accepts: [
    ...["temperature", "top_p", "top_k", "min_p", "top_a", "frequency_penalty", "presence_penalty", "seed", "stop"],
    ...["repetition_penalty", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs", "top_logprobs"],
    ...["response_format", "structured_outputs", "parallel_tool_calls", "reasoning", "stream_options", "usage", "user"],
    ...["models", "provider", "plugins", "transforms", "verbosity"],
  ],
  refusesValue: (field, value) => {
    if (field !== "reasoning") return undefined;
    const { effort, max_tokens: budget, enabled } = (value ?? {}) as Record<string, unknown>;
    if (effort !== undefined && budget !== undefined) {
      return 'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified';
    }
    const efforts: unknown[] = [undefined, "xhigh", "high", "medium", "low", "minimal", "none"];
    const isKnown = efforts.includes(effort) && (enabled === undefined || typeof enabled === "boolean");
    return isKnown ? undefined : "Invalid input: reasoning";
  },
  refusesMessages: (messages) => {
    const isSigned = ({ reasoning_details: details }: FakeMessage) =>
      Array.isArray(details) && details.every(({ signature, data }) => Boolean(signature ?? data));
    const isMissing = messages.some((message) => message.tool_calls !== undefined && !isSigned(message));
    return isMissing ? "Function call is missing a thought_signature in functionCall parts" : undefined;
  },
  refusal: ([field]) => ({ status: 400, body: { error: { code: 400, message: `Invalid input: ${field}` } } }),
};

/** Refuses a chat request like the service. Returns true if it did. */
async function refuse(strictness: Strictness, request: RecordedRequest, answer: FakeAnswer): Promise<boolean> {
  const { accepts, refusesValue, refusesMessages, refusal } = strictness;
  const body = request.json ?? {};
  const sent = Object.keys(body);
  const unknown = sent.filter((field) => !REQUIRED.includes(field) && !accepts.includes(field));
  if (unknown.length > 0) {
    const { status, body } = refusal(unknown);
    await answer.json(status, body);
    return true;
  }
  const wrongMessages = refusesMessages?.(body.messages as FakeMessage[], body);
  if (wrongMessages !== undefined) {
    await answer.json(400, openAiError(wrongMessages, null, "invalid_request_error").body);
    return true;
  }
  for (const field of sent) {
    const reason = refusesValue?.(field, request.json?.[field]);
    if (reason === undefined) continue;
    const code = reason.startsWith("Unsupported parameter") ? "unsupported_parameter" : "unsupported_value";
    await answer.json(400, openAiError(reason, field, code).body);
    return true;
  }
  return false;
}

const STRICTNESSES = {
  openai: openAi,
  "openai-thinking": openAiThinking,
  mistral,
  gemini,
  groq,
  deepseek,
};

/** Creates a fake refuse what OpenRouter refuses. */
export function withOpenRouterRefusals(personality: FakePersonality): FakePersonality {
  return {
    ...personality,
    refuse: async (request, answer, llm) =>
      await refuse(openrouter, request, answer) || await personality.refuse?.(request, answer, llm) === true,
  };
}

/** Creates the fakes of hosted services. @param generic The fake whose model list and errors they share. */
export function createHosted(generic: FakePersonality): Record<keyof typeof STRICTNESSES | "azure", FakePersonality> {
  const hosted = Object.fromEntries(
    Object.entries(STRICTNESSES).map(([name, strictness]) => [
      name,
      {
        ...generic,
        refuse: async (request, answer, llm) =>
          await refuse(strictness, request, answer) || await generic.refuse?.(request, answer, llm) === true,
      } satisfies FakePersonality,
    ]),
  ) as Record<keyof typeof STRICTNESSES, FakePersonality>;
  const isDeployment = (path: string, prefix: string) => path === `${prefix}/chat/completions`;
  return {
    ...hosted,
    // Every call needs the version of the API, and the key in a header of its own. A deployment has no model list.
    // https://learn.microsoft.com/azure/ai-foundry/openai/reference
    azure: {
      ...generic,
      isChatPath: isDeployment,
      isModelsPath: () => false,
      isAuthorized: ({ headers }, key) => headers.get("api-key") === key,
      unauthorized: (_, answer) =>
        answer.json(401, { error: { code: "401", message: "Access denied due to invalid subscription key." } }),
      unknown: (_, answer) => answer.json(404, { error: { code: "404", message: "Resource not found" } }),
      refuse: async (request, answer, llm) => {
        const version = new URL(request.path, "http://h").searchParams.get("api-version");
        if (version !== null) return await generic.refuse?.(request, answer, llm) === true;
        await answer.json(404, { error: { code: "404", message: "Resource not found" } });
        return true;
      },
    },
  };
}
