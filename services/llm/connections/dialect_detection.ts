/** Asks the server of a connection what it is (docs/protocols/llm.md, "Discovery"). */
import { getServerRoot, listEndpointPrefixes } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { readField } from "../../json/type_guards.ts";
import { createAuthHeaders, type UpstreamTarget } from "../provider.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { findDialectOfAddress, getDialectOfSoftware } from "../dialects/dialects.ts";
import { runCall, sendRequest } from "../model_call.ts";
import { parseModelList } from "./model_list.ts";
import { type IdentifyingResponse, identifyServer } from "./server_detection.ts";

/** What a server says of itself. */
export interface ServerIdentity {
  /** Undefined if it doesn't say. */
  dialect?: DialectName;
  models: ModelFacts[];
}

/** What a server says of one model. */
export interface ModelFacts {
  id: string;
  /** It thinks, and that can be switched. */
  thinking?: boolean;
}

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Identifies the server of a target, and lists its models.
 *
 * @returns undefined if it didn't respond
 * @throws The caller's abort reason.
 */
export async function identifyTarget(
  http: HttpClient,
  target: UpstreamTarget,
  signal: AbortSignal,
): Promise<ServerIdentity | undefined> {
  const request = async (url: string): Promise<IdentifyingResponse | undefined> => {
    try {
      return await runCall(target, signal, async (call) => {
        const response = await sendRequest(http, call, { url, headers: createAuthHeaders(target) });
        const text = await readText(response, MAX_BYTES);
        return { status: response.status, headers: response.headers, text, json: parseJson(text) };
      });
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  };
  const root = getServerRoot(target.baseUrl);
  let listed: IdentifyingResponse | undefined;
  for (const prefix of listEndpointPrefixes(target.baseUrl)) {
    listed = await request(`${prefix}/models`);
    // No response to one path means none to the other.
    if (listed === undefined || parseModelList(listed.json) !== undefined) break;
  }
  if (listed === undefined) return undefined;
  const isKnown = findDialectOfAddress(target.baseUrl) !== undefined;
  const software = isKnown ? undefined : await identifyServer(listed, (path) => request(root + path));
  const dialect = software === undefined ? undefined : getDialectOfSoftware(software);
  const models = (parseModelList(listed.json)?.data ?? []).map((entry) => readModelFacts(entry));
  if (dialect === "llama.cpp" && models.length === 1) {
    const template = readField((await request(`${root}/props`))?.json, "chat_template");
    if (typeof template === "string") models[0]!.thinking = /enable_thinking|reasoning_effort/.test(template);
  }
  return { ...(dialect && dialect !== "generic" && { dialect }), models };
}

/** OpenRouter lists the parameters of each model. */
export function readModelFacts(entry: { id: string; supported_parameters?: unknown }): ModelFacts {
  const { id, supported_parameters: parameters } = entry;
  return Array.isArray(parameters) ? { id, thinking: parameters.includes("reasoning") } : { id };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
