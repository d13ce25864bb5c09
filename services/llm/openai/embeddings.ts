/** Embeddings of OpenAI-compatible servers, Ollama among them (docs/protocols/llm.md#embeddings). */
import { Buffer } from "node:buffer";
import type { HttpClient } from "../../http/http_client.ts";
import { readBytes } from "../../http/read_body.ts";
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { parseJsonInTurns } from "../../json/incremental_parse.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import { EndpointSearch } from "../../http/base_url.ts";
import { type ModelCall, runCall, sendRequest } from "../model_call.ts";
import { createAuthHeaders, type ProviderKind, type UpstreamTarget } from "../provider.ts";

/** A request for embeddings; other fields pass through to the server. */
export interface EmbeddingsRequest {
  model: string;
  input: unknown;
  /** `base64` is what OpenAI's own clients ask for: little-endian 32-bit floats. */
  encoding_format?: unknown;
  [more: string]: unknown;
}

/** Requests embeddings and returns the response as JSON. */
export type CreateEmbeddings = (
  target: UpstreamTarget,
  request: EmbeddingsRequest,
  signal: AbortSignal,
) => Promise<Uint8Array<ArrayBuffer>>;

/** Kinds of servers without this endpoint. */
const WITHOUT: readonly ProviderKind[] = ["anthropic", "demo"];
/** Two thousand embeddings of a thousand numbers each. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_DEPTH = 50;
/** Where the first embedding begins, if the server sends its numbers before anything else that is long. */
const HEAD_BYTES = 4 * 1024;

/** Creates the function that requests embeddings. */
export function createEmbeddingsClient(http: HttpClient): CreateEmbeddings {
  const endpoints = new EndpointSearch();
  return async (target, request, signal) => {
    if (WITHOUT.includes(target.kind)) {
      const message = "this connection's server has no embeddings";
      throw new AppError("invalid_request", `Can't create embeddings: ${message}`, {
        issues: [{ path: "model", message }],
      });
    }
    return await runCall(target, signal, (call) =>
      endpoints.find(target.baseUrl, async (prefix) => {
        const headers = createAuthHeaders(target);
        const response = await sendRequest(http, call, { url: `${prefix}/embeddings`, headers, body: request });
        if (!response.ok) throw await call.readError(response);
        return await readEmbeddings(call, response, request.encoding_format === "base64");
      }));
  };
}

async function readEmbeddings(
  call: ModelCall,
  response: Response,
  isBase64: boolean,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readBytes(response, MAX_BYTES);
  if (bytes === undefined) throw call.createError("bad_answer", `returned more than ${MAX_BYTES} bytes of embeddings`);
  const head = new TextDecoder().decode(bytes.subarray(0, HEAD_BYTES)).trimStart();
  if (head.startsWith("<")) throw call.createError("web_page", "returned a web page. Is the address right?");
  // Passed on unread, because numbers take long to parse.
  if (/"embedding"\s*:\s*("|\[)/.exec(head)?.[1] === (isBase64 ? '"' : "[")) return bytes;
  const value = await parseJsonInTurns(bytes, MAX_DEPTH).catch(() => undefined);
  if (!isJsonObject(value)) throw call.createError("bad_answer", "returned a response that isn't JSON");
  if (!Array.isArray(value.data)) {
    if ("error" in value) throw call.createReportedError(value);
    throw call.createError("bad_answer", "returned JSON without embeddings");
  }
  if (isBase64) await encodeEmbeddings(value.data);
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Encodes embeddings of a server that ignores `encoding_format`. */
async function encodeEmbeddings(data: unknown[]): Promise<void> {
  for (const item of data) {
    if (!isJsonObject(item) || !Array.isArray(item.embedding)) continue;
    item.embedding = Buffer.from(Float32Array.from(item.embedding, Number).buffer).toString("base64");
    await yieldIfTickUsedUp();
  }
}
