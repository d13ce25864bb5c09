/** Fakes of the known model servers: identification, model lists and errors (docs/protocols/llm.md#discovery). */
import type { FakeLlm } from "./fake_llm.ts";
import type { FakeAnswer, RecordedRequest } from "./fake_llm_http.ts";
import { createHosted, withOpenRouterRefusals } from "./fake_llm_hosted.ts";
import { FakeStream, type FakeSwitches, PLAIN_SWITCHES } from "./fake_llm_stream.ts";

/** The behavior of one server. */
export interface FakePersonality {
  headers: Record<string, string>;
  switches: Partial<FakeSwitches>;
  /** Returns whether a request has the key, if that isn't a bearer token. */
  isAuthorized?(request: RecordedRequest, key: string): boolean;
  /** Paths that need no key. */
  openPaths?: string[];
  isChatPath(path: string, prefix: string): boolean;
  isModelsPath(path: string, prefix: string): boolean;
  models(ids: string[]): unknown;
  unauthorized(request: RecordedRequest, answer: FakeAnswer): Promise<void>;
  unknown(request: RecordedRequest, answer: FakeAnswer): Promise<void>;
  /** Handles all paths while the model loads. */
  loading?(answer: FakeAnswer): Promise<void>;
  /** Handles a chat request while another one runs. */
  busy?(answer: FakeAnswer): Promise<void>;
  /** Handles the server's own paths. Returns true if it did. */
  extra?(request: RecordedRequest, answer: FakeAnswer, llm: FakeLlm): Promise<boolean>;
  /** Refuses a chat request. Returns true if it did. */
  refuse?(request: RecordedRequest, answer: FakeAnswer, llm: FakeLlm): Promise<boolean>;
  /** Comments before the first frame. */
  preamble?: string;
  /** Keeps streams whose request has an ID. */
  keepsStreams?: boolean;
  /** Reports the progress of the prompt if the request asks for it, as llama.cpp does. */
  hasProgress?: boolean;
  /**
   * A last message of the assistant is repeated before its continuation: without `continue_final_message`, or also with it if the
   * reply isn't streamed.
   */
  repeatsPrefill?: boolean;
}

const list = (entry: (id: string) => Record<string, unknown>) => (ids: string[]) => ({
  object: "list",
  data: ids.map((id) => ({ id, object: "model", ...entry(id) })),
});

/** Text of the last message, for the prompts that make a fake misbehave. */
function prompt(request: RecordedRequest): string {
  const messages = request.json?.messages as { content?: unknown }[] | undefined;
  return String(messages?.at(-1)?.content ?? "");
}

/** The fakes' tokenizer: each word and each punctuation mark is a token. */
function fakeTokens(text: string): number[] {
  return (text.match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? []).map((word) => word.length);
}

/** Counts the tokens of all messages, with five for the template around each. */
function countPrompt(request: RecordedRequest): number {
  const messages = (request.json?.messages ?? []) as { content?: unknown }[];
  return messages.reduce((sum, { content }) => sum + fakeTokens(String(content ?? "")).length + 5, 0);
}

const pathOf = (request: RecordedRequest) => request.path.split("?")[0]!;

const generic: FakePersonality = {
  headers: {},
  switches: {},
  isChatPath: (path, prefix) => path === `${prefix}/chat/completions`,
  isModelsPath: (path, prefix) => path === `${prefix}/models`,
  models: list(() => ({ created: 0, owned_by: "someone" })),
  unauthorized: (_, answer) =>
    answer.json(401, {
      error: { message: "Incorrect API key provided", type: "invalid_request_error", code: "invalid_api_key" },
    }),
  unknown: (_, answer) => answer.json(404, { error: { message: "Not found", type: "not_found_error" } }),
  refuse: async (request, answer) => {
    if (!prompt(request).includes("OVERFLOW")) return false;
    const message = "This model's maximum context length is 2048 tokens. However, you requested 9000 tokens";
    await answer.json(400, {
      error: { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
    });
    return true;
  },
};

/** A slot that was used keeps its prompt (b11434). */
function listSlots({ load = {}, running, slots }: FakeLlm): unknown[] {
  const { kept = 0, isBusy = false } = load;
  return Array.from({ length: slots }, (_, id) => ({
    id,
    is_processing: (isBusy && id === 0) || (running > 0 && id === slots - 1),
    ...(id < kept && { id_task: 7, n_prompt_tokens: 900 }),
  }));
}

const LLAMA_HEADERS = { server: "llama.cpp" };
const llamaCpp: FakePersonality = {
  ...generic,
  headers: LLAMA_HEADERS,
  switches: { content: "null", timings: "on" },
  preamble: ":\n\n:\n\n",
  hasProgress: true,
  keepsStreams: true,
  repeatsPrefill: true,
  openPaths: ["/health"],
  isChatPath: (path) => path === "/v1/chat/completions" || path === "/chat/completions",
  isModelsPath: (path) => path === "/v1/models" || path === "/models",
  models: (ids) => ({
    models: ids.map((name) => ({ name, model: name })),
    object: "list",
    data: ids.map((id) => ({ id, object: "model", owned_by: "llamacpp", meta: { n_ctx_train: 32768 } })),
  }),
  loading: (answer) =>
    answer.json(503, { error: { message: "Loading model", type: "unavailable_error", code: 503 } }, LLAMA_HEADERS),
  unauthorized: (_, answer) =>
    answer.json(401, { error: { message: "Invalid API Key", type: "authentication_error", code: 401 } }, LLAMA_HEADERS),
  unknown: (_, answer) =>
    answer.json(404, { error: { message: "File Not Found", type: "not_found_error", code: 404 } }, LLAMA_HEADERS),
  extra: async (request, answer, llm) => {
    const body = {
      "/health": { status: "ok" },
      "/props": {
        default_generation_settings: { n_ctx: llm.contextSize ?? 2048 },
        total_slots: llm.slots,
        build_info: "b11434",
      },
      "/tokenize": { tokens: fakeTokens(String(request.json?.content ?? "")) },
    }[pathOf(request)];
    if (body) return await answer.json(200, body, LLAMA_HEADERS), true;
    if (pathOf(request) !== "/slots" || llm.load === undefined) return false;
    await answer.json(200, listSlots(llm), LLAMA_HEADERS);
    return true;
  },
  refuse: async (request, answer, llm) => {
    const size = llm.contextSize ?? 2048;
    const count = llm.contextSize === undefined ? 0 : countPrompt(request);
    if (!prompt(request).includes("OVERFLOW") && count <= size) return false;
    const tokens = Math.max(2506, count);
    const message = `request (${tokens} tokens) exceeds the available context size (${size} tokens), try increasing it`;
    const error = { code: 400, message, type: "exceed_context_size_error", n_prompt_tokens: tokens, n_ctx: size };
    await answer.json(400, { error }, LLAMA_HEADERS);
    return true;
  },
};

const ollama: FakePersonality = {
  ...generic,
  switches: { content: "first", reasoning: "reasoning" },
  models: (ids) => (ids.length === 0 ? { object: "list", data: null } : list(() => ({ owned_by: "library" }))(ids)),
  unknown: (_, answer) => answer.send(404, "text/plain", "404 page not found"),
  extra: async (request, answer, llm) => {
    const path = pathOf(request);
    if (path === "/") return await answer.send(200, "text/plain", "Ollama is running"), true;
    const loaded = llm.models.slice(0, 1).map((name) => ({ name, model: name, context_length: 4096 }));
    const body: unknown = {
      "/api/version": { version: "0.12.0" },
      "/api/tags": { models: llm.models.map((name) => ({ name, model: name })) },
      "/api/ps": { models: loaded },
      "/api/show": { model_info: { "llama.context_length": 131072 }, capabilities: ["completion"] },
    }[path];
    if (body) await answer.json(200, body);
    return body !== undefined;
  },
  refuse: async (request, answer, llm) => {
    const model = String(request.json?.model);
    if (model.startsWith("fake:") || llm.models.includes(model)) return false;
    const error = {
      message: `model "${model}" not found, try pulling it first`,
      type: "not_found_error",
      param: null,
      code: null,
    };
    await answer.json(404, { error });
    return true;
  },
};

const oddEndpoint = (request: RecordedRequest, answer: FakeAnswer) =>
  answer.json(200, { error: `Unexpected endpoint or method. (${request.method} ${request.path})` }, {
    "x-powered-by": "Express",
  });
const lmStudioV0: FakePersonality = {
  ...generic,
  headers: { "x-powered-by": "Express" },
  unknown: oddEndpoint,
  unauthorized: oddEndpoint,
  extra: async (request, answer, llm) => {
    if (pathOf(request) !== "/api/v0/models") return false;
    const data = llm.models.map((id, index) => ({
      id,
      object: "model",
      type: "llm",
      state: index === 0 ? "loaded" : "not-loaded",
      max_context_length: 8192,
    }));
    await answer.json(200, { object: "list", data });
    return true;
  },
  refuse: async (request, answer) => {
    const text = prompt(request);
    const isSilent = text.includes("OVERFLOW-SILENT");
    if (!text.includes("OVERFLOW")) return false;
    const stream = new FakeStream(answer, { ...PLAIN_SWITCHES }, "m");
    await stream.open({});
    const message = "Input does not fit in context length of 4096";
    if (isSilent) await stream.write(stream.ending(false));
    else await stream.write(stream.frame(JSON.stringify({ error: { message }, message }), "error"));
    await answer.end();
    return true;
  },
};
const lmStudio: FakePersonality = {
  ...lmStudioV0,
  extra: async (request, answer, llm) => {
    if (pathOf(request) !== "/api/v1/models") return false;
    const models = llm.models.map((key, index) => ({
      type: "llm",
      key,
      loaded_instances: index === 0 ? [{ id: key, config: { context_length: 4096 } }] : [],
      max_context_length: 131072,
    }));
    await answer.json(200, { models });
    return true;
  },
};

const vllm: FakePersonality = {
  ...generic,
  switches: { reasoning: "reasoning+reasoning_content", finish: "last", end: "done" },
  models: list((id) => ({ owned_by: "vllm", max_model_len: 16384, root: id, parent: null, permission: [] })),
  unauthorized: (_, answer) => answer.json(401, { error: "Unauthorized" }),
  unknown: (_, answer) => answer.json(404, { detail: "Not Found" }),
  extra: async (request, answer) => {
    const path = pathOf(request);
    if (path === "/health") return await answer.send(200, "text/plain", ""), true;
    if (path !== "/version") return false;
    await answer.json(200, { version: "0.11.0" });
    return true;
  },
};

const MLX_HEADERS = { server: "BaseHTTP/0.6 Python/3.12" };
const mlxLm: FakePersonality = {
  ...generic,
  headers: MLX_HEADERS,
  switches: {
    role: "every",
    content: "first",
    reasoning: "reasoning",
    framing: "close",
    usage_object: "chat.completion",
  },
  preamble: ": keepalive 512/2048\n\n: keepalive 1024/2048\n\n",
  models: list(() => ({ created: 1_700_000_000 })),
  unknown: (_, answer) => answer.send(404, "application/json", "Not Found", MLX_HEADERS),
  extra: async (request, answer) => {
    if (pathOf(request) !== "/health") return false;
    await answer.json(200, { status: "ok" }, MLX_HEADERS);
    return true;
  },
  refuse: async (request, answer) => {
    if (request.headers.get("content-length") === null) {
      await answer.json(411, { error: "Content-Length header is required" }, MLX_HEADERS);
      return true;
    }
    if (!request.body.includes("image_url")) return false;
    await answer.json(404, { error: "Only 'text' content type is supported." }, MLX_HEADERS);
    return true;
  },
};

const KOBOLD_HEADERS = { server: "ConcedoLlamaForKoboldServer" };
const koboldCpp: FakePersonality = {
  ...generic,
  // It truncates prompts that are too long: https://github.com/LostRuins/koboldcpp/wiki
  refuse: undefined,
  headers: KOBOLD_HEADERS,
  switches: { role: "every", content: "first", finish: "last", usage: "none", end: "bare", framing: "close" },
  isChatPath: (path) => path.endsWith("/v1/chat/completions"),
  isModelsPath: (path) => path.endsWith("/v1/models"),
  models: (ids) => ({ object: "list", data: ids.map((id) => ({ id, owned_by: "koboldcpp", created: 1_700_000_000 })) }),
  busy: (answer) =>
    answer.json(
      503,
      { detail: { msg: "Server is busy; please try again later.", type: "service_unavailable" } },
      KOBOLD_HEADERS,
    ),
  unauthorized: (_, answer) =>
    answer.json(401, {
      detail: { error: "Unauthorized", msg: "Authentication key is missing or invalid.", type: "unauthorized" },
    }, KOBOLD_HEADERS),
  extra: async (request, answer, llm) => {
    const body = {
      "/api/extra/version": { result: "KoboldCpp", version: "1.76", protected: false, txt2img: false, vision: false },
      "/api/extra/true_max_context_length": { value: 6144 },
      ...(llm.load && {
        "/api/extra/perf": {
          idle: llm.load.isBusy || llm.running > 0 ? 0 : 1,
          queue: 0,
          total_gens: llm.load.kept ?? 0,
        },
      }),
      "/api/extra/tokencount": {
        value: fakeTokens(String(request.json?.prompt ?? "")).length,
        ids: fakeTokens(String(request.json?.prompt ?? "")),
      },
    }[pathOf(request)];
    if (body) await answer.json(200, body, KOBOLD_HEADERS);
    return body !== undefined;
  },
};

const textGenerationWebui: FakePersonality = {
  ...generic,
  switches: { end: "none" },
  preamble: ": ping - 2026-01-01 00:00:00\r\n\r\n",
  models: list(() => ({ created: 0, owned_by: "user" })),
  unauthorized: (_, answer) => answer.json(401, { detail: "Unauthorized" }),
  unknown: (_, answer) => answer.json(404, { detail: "Not Found" }),
  extra: async (request, answer, llm) => {
    if (pathOf(request) !== "/v1/internal/model/info") return false;
    await answer.json(200, { model_name: llm.models[0] ?? "None", lora_names: [], loader: "llama.cpp" });
    return true;
  },
};

const tabbyApi: FakePersonality = {
  ...generic,
  switches: { role: "never", content: "first", finish: "on_usage", eol: "crlf" },
  openPaths: ["/.well-known/serviceinfo", "/health"],
  models: list(() => ({ owned_by: "tabbyAPI" })),
  unauthorized: (_, answer) => answer.json(401, { detail: "Please provide an API key" }),
  unknown: (_, answer) => answer.json(404, { detail: "Not Found" }),
  extra: async (request, answer, llm) => {
    const body = {
      "/v1/model": { id: llm.models[0], object: "model", owned_by: "tabbyAPI", parameters: { max_seq_len: 12288 } },
      "/.well-known/serviceinfo": { version: 0.1, software: { name: "TabbyAPI", repository: "…" } },
      "/health": { status: "healthy", issues: [] },
      "/props": { total_slots: 1, default_generation_settings: { n_ctx: 12288 } },
    }[pathOf(request)];
    if (body) await answer.json(200, body);
    return body !== undefined;
  },
};

const jan: FakePersonality = {
  ...generic,
  unauthorized: (_, answer) => answer.send(401, "text/plain", "Missing authorization header"),
  unknown: (_, answer) => answer.send(404, "text/plain", "Not Found"),
};

const localAi: FakePersonality = {
  ...generic,
  models: (ids) => ({ object: "list", data: ids.map((id) => ({ id, object: "model" })) }),
  unknown: (_, answer) => answer.json(404, { error: { code: 404, message: "Resource not found", type: "" } }),
  extra: async (request, answer) => {
    if (pathOf(request) !== "/.well-known/localai.json") return false;
    await answer.json(200, { version: "v3", endpoints: {} });
    return true;
  },
};

const llamafile: FakePersonality = {
  ...generic,
  switches: { usage: "finish" },
  models: list(() => ({ owned_by: "llamafile" })),
};

const openRouter: FakePersonality = {
  ...withOpenRouterRefusals(generic),
  preamble: ": OPENROUTER PROCESSING\n\n",
  switches: { reasoning: "reasoning+reasoning_details", usage: "own" },
  models: (ids) => ({ data: ids.map((id) => ({ id, context_length: 65536 })), total_count: ids.length }),
};

/** The servers that the fake can imitate. */
export const PERSONALITIES = {
  generic,
  "llama.cpp": llamaCpp,
  ollama,
  "lm-studio": lmStudio,
  "lm-studio-v0": lmStudioV0,
  vllm,
  mlx_lm: mlxLm,
  koboldcpp: koboldCpp,
  "text-generation-webui": textGenerationWebui,
  tabbyapi: tabbyApi,
  jan,
  localai: localAi,
  llamafile,
  openrouter: openRouter,
  ...createHosted(generic),
} satisfies Record<string, FakePersonality>;

/** Name of a server that the fake can imitate. */
export type PersonalityName = keyof typeof PERSONALITIES;
