import { expect, test } from "vitest";
import { findRefusedFields } from "../../../services/llm/refused_fields.ts";

const SENT = [
  ...["model", "messages", "stream", "tools", "stream_options", "max_tokens", "temperature", "top_p", "top_k", "min_p"],
  ...["stop", "user", "seed", "store"],
];

/** The sent fields that an error body names. */
function namesIn(body: unknown): string[] {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return findRefusedFields(text, SENT).map(({ field }) => field).sort();
}

const openAi = (message: string, param: string | null = null) => ({
  error: { message, type: "invalid_request_error", param, code: null },
});
const forbidden = (...fields: (string | number)[]) => ({
  type: "extra_forbidden",
  loc: ["body", ...fields],
  msg: "Extra inputs are not permitted",
});
const google = (...messages: string[]) => [{
  error: {
    code: 400,
    message: messages.join("\n"),
    status: "INVALID_ARGUMENT",
    details: [{
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: messages.map((description) => ({ description })),
    }],
  },
}];
const unknownName = (field: string) => `Invalid JSON payload received. Unknown name "${field}": Cannot find field.`;

test.each<[string, unknown, string[]]>([
  ["OpenAI's param", openAi("Unsupported value: 'temperature' does not support 0.7", "temperature"), ["temperature"]],
  ["OpenAI's text", openAi("Unrecognized request argument supplied: top_k"), ["top_k"]],
  ["OpenAI's text with several", openAi("Unrecognized request arguments supplied: min_p, top_k"), ["min_p", "top_k"]],
  ["a field inside of another", openAi("Unknown parameter.", "stream_options.include_usage"), ["stream_options"]],
  // https://github.com/editor-code-assistant/eca/issues/231
  ["Mistral's nested details", {
    object: "error",
    message: { detail: [forbidden("stream_options"), forbidden("top_k")] },
    type: "invalid_request_error",
  }, ["stream_options", "top_k"]],
  // https://github.com/partITech/php-mistral/issues/76
  ["Mistral's details twice", { object: "Error", detail: [forbidden("top_k")], message: [forbidden("top_k")] }, [
    "top_k",
  ]],
  // https://github.com/mistralai/platform-docs-public/issues/7
  [
    "JSON inside of the text",
    { object: "error", message: JSON.stringify({ detail: [forbidden("min_p")] }), type: "internal_error_proxy" },
    ["min_p"],
  ],
  ["FastAPI's details", { detail: [{ loc: ["body", "top_p"], msg: "Input should be less than 1" }] }, ["top_p"]],
  // https://github.com/gpustack/gpustack/issues/429
  [
    "Python's text of details",
    { object: "error", message: "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'no'}]", code: 400 },
    ["top_k"],
  ],
  // https://github.com/Alishahryar1/free-claude-code/issues/542
  ["Gemini's array", google(unknownName("top_k")), ["top_k"]],
  ["Gemini's array with several", google(unknownName("top_k"), unknownName("min_p")), ["min_p", "top_k"]],
  // https://github.com/fanenr/chatbot/issues/21
  [
    "Groq's text, without what it suggests",
    openAi("property 'store' is unsupported, did you mean 'stop'?"),
    ["store"],
  ],
  ["Anthropic's text", { type: "error", error: { type: "invalid_request_error", message: "top_k: Extra inputs" } }, [
    "top_k",
  ]],
  ["LiteLLM's text", openAi("litellm.UnsupportedParamsError: openai does not support parameters: {'top_k': 5}"), [
    "top_k",
  ]],
  [
    "OpenRouter's provider",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: JSON.stringify(openAi("no", "min_p")) },
      },
    },
    ["min_p"],
  ],
  ["plain text", "unknown field `seed`", ["seed"]],
  ["a message that names nothing", openAi("Invalid request"), []],
  ["an ordinary word", openAi("The user must not stop before the seed is planted"), []],
  ["a longer name", openAi("top_k_extra is unknown"), []],
  ["a field that wasn't sent", openAi("Unknown parameter: 'logprobs'", "logprobs"), []],
  ["the messages", openAi("Invalid value in messages[1]: max_tokens left", "messages[1].content"), []],
  ["a field of a message", { detail: [forbidden("messages", 3, "assistant", "reasoning_content")] }, []],
  ["the tools", { detail: [forbidden("tools")] }, []],
  [
    "a field inside of a tool",
    google(`Unknown name "top_k" at 'tools[0].function_declarations[0]': Cannot find field.`),
    [],
  ],
  ["the model", openAi("The model `x` does not exist", "model"), []],
])("finds the rejected fields in %s", (_, body, fields) => {
  expect(namesIn(body)).toEqual(fields);
});

test.each([
  [
    "max_tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_completion_tokens",
  ],
  // https://github.com/AnswerDotAI/shell_sage/issues/9
  [
    "max_completion_tokens",
    "property 'max_completion_tokens' is unsupported, did you mean 'max_tokens'?",
    "max_tokens",
  ],
  ["max_tokens", "max_tokens is too large: 100000", undefined],
])("a rejected %s is sent under the name that the server asks for", (field, message, replacement) => {
  const found = findRefusedFields(JSON.stringify(openAi(message)), ["model", field]);
  expect(found).toEqual([{ field, ...(replacement !== undefined && { replacement }) }]);
});
