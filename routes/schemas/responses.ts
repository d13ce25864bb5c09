/** The Responses API, as described at https://platform.openai.com/docs/api-reference/responses. */
import { createRoute, z } from "@hono/zod-openapi";
import type { TokenAllowance } from "../../services/auth/credential_stores.ts";
import type { AnyChatRequest } from "../../services/chat/chat_service.ts";
import type { OpenedResponse } from "../../services/openai_api/responses.ts";
import type { ResponseEvent, ResponseObject } from "../../services/openai_api/response_output.ts";
import type { ResolvedModel } from "../../services/openai_api/openai_models.ts";
import { eventStream, json, jsonBody } from "./common.ts";
import { ModelName, OPENAI_ERRORS, OPENAI_TAGS, toWithheld } from "./openai_api.ts";

/** Fields whose absence would change the meaning of a request. */
const unsupported = (field: string) => z.null(`${field} isn't supported`).optional();

const ResponseBody = z.looseObject({
  model: ModelName,
  input: z.union([z.string(), z.array(z.looseObject({}))]).nullish().openapi({
    description: "Text, or items: messages, tool calls and their outputs, reasoning, references to earlier items",
  }),
  instructions: z.string().nullish(),
  previous_response_id: z.string().min(1).max(200).nullish().openapi({
    description: "An earlier response whose items come before the input",
  }),
  store: z.boolean().nullish().openapi({
    description: "Whether the response and its items are kept for 24 hours; true if absent",
  }),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish().refine((value) => value !== true, "background responses aren't supported"),
  conversation: unsupported("conversation"),
  prompt: unsupported("prompt"),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  max_output_tokens: z.number().int().min(1).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  metadata: z.looseObject({}).nullish(),
}).openapi("OpenAiResponseRequest");

const Response = z.looseObject({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number().int(),
  status: z.enum(["in_progress", "completed", "incomplete", "failed", "cancelled"]),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  output: z.array(z.looseObject({ type: z.string(), id: z.string().optional() })),
  usage: z.object({
    input_tokens: z.number(),
    input_tokens_details: z.object({ cached_tokens: z.number() }),
    output_tokens: z.number(),
    output_tokens_details: z.object({ reasoning_tokens: z.number() }),
    total_tokens: z.number(),
    estimated: z.literal(true).optional().openapi({ description: "The model's server sent no counts" }),
  }).nullable(),
  unsupported: z.array(z.string()).openapi({
    description: "Types of tools and items that were left out, because Parlor doesn't run them",
  }),
}).openapi("OpenAiResponse");

/** `POST /api/v1/responses` */
export const createResponseRoute = createRoute({
  method: "post",
  path: "/api/v1/responses",
  tags: OPENAI_TAGS,
  summary: "Send items to a model; for a character, the server assembles the prompt around them",
  request: { body: jsonBody(ResponseBody) },
  responses: {
    200: {
      description: "The response; with stream, its events",
      content: {
        "application/json": { schema: Response },
        ...eventStream("JSON of response.created to response.completed, response.incomplete or response.failed"),
      },
    },
    ...OPENAI_ERRORS,
  },
});

const ResponseParams = z.object({ id: z.string().min(1).max(200) });

/** `GET /api/v1/responses/{id}` */
export const getResponseRoute = createRoute({
  method: "get",
  path: "/api/v1/responses/{id}",
  tags: OPENAI_TAGS,
  summary: "Get a stored response",
  request: { params: ResponseParams },
  responses: { 200: json(Response, "The response"), ...OPENAI_ERRORS },
});

/** `DELETE /api/v1/responses/{id}` */
export const deleteResponseRoute = createRoute({
  method: "delete",
  path: "/api/v1/responses/{id}",
  tags: OPENAI_TAGS,
  summary: "Delete a stored response and the items of its output",
  request: { params: ResponseParams },
  responses: {
    200: json(
      z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }).openapi(
        "OpenAiDeletedResponse",
      ),
      "It is deleted",
    ),
    ...OPENAI_ERRORS,
  },
});

/** Converts an opened request to the type of the chat service. */
export function toResponseChatRequest(
  { messages, params }: Pick<OpenedResponse, "messages" | "params">,
  { model, connectionId, characterId }: ResolvedModel,
  allow: TokenAllowance | undefined,
): AnyChatRequest {
  return {
    model,
    connectionId,
    messages,
    params,
    context: characterId === undefined ? "client" : "character",
    characterId,
    withheld: toWithheld(allow),
    use: "api",
  };
}

/** Converts a response to its JSON form. */
export function toResponseJson(response: ResponseObject): z.infer<typeof Response> {
  return response as z.infer<typeof Response>;
}

/** Creates the frames of events. */
export function toResponseFrames(events: readonly ResponseEvent[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
