import { expect, test } from "vitest";
import { classifyError, parseErrorReport } from "../../../services/llm/model_call.ts";

// Texts of the servers, see docs/protocols/llm.md.
test.each([
  [
    "llama.cpp",
    {
      error: {
        code: 400,
        message: "request (2506 tokens) exceeds the available context size (2048 tokens), try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 2506,
        n_ctx: 2048,
      },
    },
    { contextSize: 2048, promptTokens: 2506 },
  ],
  [
    "OpenAI",
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 5,105 tokens.",
    { contextSize: 4097, promptTokens: 5105 },
  ],
  [
    "vLLM",
    "'max_tokens' is too large: 2048. This model's maximum context length is 4096 tokens and your request has 3000 input tokens",
    { contextSize: 4096, promptTokens: 3000 },
  ],
  [
    "Anthropic",
    "prompt is too long: 208310 tokens > 200000 maximum",
    { contextSize: 200_000, promptTokens: 208_310 },
  ],
  [
    "Mistral",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    { contextSize: 32_768, promptTokens: 40_000 },
  ],
  [
    "LM Studio",
    "The model is loaded with context length of only 4096 tokens, which is not enough",
    { contextSize: 4096 },
  ],
  [
    "Gemini",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    { contextSize: 1_048_576, promptTokens: 1_200_000 },
  ],
  [
    "OpenRouter",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (38000 of text input, 2000 in the output).",
    { contextSize: 32_768, promptTokens: 38_000 },
  ],
  [
    "xAI",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    { contextSize: 131_072, promptTokens: 537_812 },
  ],
  ["Ollama", "the input length exceeds the context length", undefined],
])("reads the sizes in the error of %s", (_, error, expected) => {
  const report = parseErrorReport(typeof error === "string" ? { error: { message: error } } : error);
  expect(classifyError(400, report)).toBe("overflow");
  expect(report?.overflow).toEqual(expected);
});
