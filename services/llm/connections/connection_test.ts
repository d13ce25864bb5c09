/**
 * Tests a connection and explains how to fix problems, and identifies its server (docs/protocols/llm.md, "Discovery").
 */
import { AppError } from "../../errors.ts";
import { UpstreamError, type UpstreamErrorKind } from "../../http/upstream_error.ts";
import { isSameOllamaModel } from "../ollama/ollama_models.ts";
import { createAuthHeaders, type Provider, type ProviderKind, type UpstreamTarget } from "../provider.ts";
import { getServerRoot, listEndpointPrefixes } from "../../http/base_url.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { readText } from "../../http/read_body.ts";
import { readField } from "../../json/type_guards.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { findDialectOfAddress, getDialectOfSoftware } from "../dialects/dialects.ts";
import { runCall, sendRequest } from "../model_call.ts";
import { parseModelList } from "../streaming/response_body.ts";
import { type IdentifyingResponse, identifyServer, isSpeech } from "./server_detection.ts";

/** The result of a connection test. */
export interface ConnectionTestResult {
  /** Whether an HTTP server responded. */
  isReachable: boolean;
  /** Whether it accepted the key, if any, and listed its models. */
  isAuthorized: boolean;
  models: string[];
  /** Number of tokens. */
  contextSize?: number;
  latencyMs: number;
  error?: string;
  /** How to fix the error. */
  advice?: string;
}

/** The result of a reachability check. */
export interface ReachabilityResult {
  isReachable: boolean;
  latencyMs: number;
  error?: string;
}

// A person is waiting for the test.
const CONNECT_MS = 5_000;
const RESPONSE_MS = 10_000;

const UNREACHABLE_KINDS = new Set<UpstreamErrorKind>([
  "refused",
  "unresolved",
  "unreachable",
  "timeout",
  "certificate",
  "protocol",
  "blocked",
  "failed",
]);

/**
 * Requests the models of a server and its context size.
 *
 * @param model The model to be used, if one is selected.
 * @throws {AppError} `address_not_allowed`, `invalid_request`: errors in the input, not of the server
 * @throws The caller's abort reason.
 */
export async function testConnection(
  client: Provider,
  target: UpstreamTarget,
  signal: AbortSignal,
  model?: string,
): Promise<ConnectionTestResult> {
  const { connectMs, firstByteMs, idleMs } = target.timeouts;
  const quickTarget: UpstreamTarget = {
    ...target,
    timeouts: {
      connectMs: Math.min(connectMs, CONNECT_MS),
      firstByteMs: Math.min(firstByteMs, RESPONSE_MS),
      idleMs: Math.min(idleMs, RESPONSE_MS),
    },
  };
  const startedAtMs = performance.now();
  const getLatencyMs = () => Math.round(performance.now() - startedAtMs);
  try {
    const models = (await client.listModels(quickTarget, signal)).data.map((entry) => entry.id);
    const result: ConnectionTestResult = { isReachable: true, isAuthorized: true, models, latencyMs: getLatencyMs() };
    const usedModel = model ?? models[0];
    if (usedModel !== undefined) result.contextSize = await client.readContextSize(quickTarget, usedModel, signal);
    result.advice = getModelAdvice(models, model, target.kind);
    return result;
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof UpstreamError)) throw thrown;
    return {
      isReachable: hasResponded(thrown),
      isAuthorized: false,
      models: [],
      latencyMs: getLatencyMs(),
      error: thrown.message,
      advice: getErrorAdvice(thrown, quickTarget),
    };
  }
}

/**
 * Checks whether a server responds within `limitMs`. A server that rejects the request is reachable; the result then
 * has an error.
 *
 * @throws The caller's abort reason.
 */
export async function checkReachable(
  client: Provider,
  target: UpstreamTarget,
  limitMs: number,
  signal: AbortSignal,
): Promise<ReachabilityResult> {
  const timeouts = { connectMs: limitMs, firstByteMs: limitMs, idleMs: limitMs };
  const startedAtMs = performance.now();
  const getLatencyMs = () => Math.round(performance.now() - startedAtMs);
  try {
    await client.listModels({ ...target, timeouts }, signal);
    return { isReachable: true, latencyMs: getLatencyMs() };
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof AppError)) throw thrown;
    return { isReachable: hasResponded(thrown), latencyMs: getLatencyMs(), error: thrown.message };
  }
}

function hasResponded(error: AppError): boolean {
  if (!(error instanceof UpstreamError)) return false;
  return error.status !== undefined || !UNREACHABLE_KINDS.has(error.kind);
}

function getModelAdvice(models: string[], model: string | undefined, kind: ProviderKind): string | undefined {
  if (models.length === 0) {
    return "The server has no models. Load one (with Ollama: ollama pull NAME), then test again.";
  }
  const isListed = (name: string) =>
    models.some((one) => kind === "ollama" ? isSameOllamaModel(one, name) : one === name);
  if (model !== undefined && !isListed(model)) {
    return `The server doesn't list "${model}". Choose one of its models.`;
  }
  return undefined;
}

/** Returns how to fix an error, for users who have never set up a model server. */
export function getErrorAdvice(error: UpstreamError, target: UpstreamTarget): string {
  const url = new URL(target.baseUrl);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(url.hostname);
  switch (error.kind) {
    case "refused":
      return isLoopback
        ? `Start the model server, or check that it uses port ${port}. ` +
          `If Parlor runs in a container, "${url.hostname}" is the container itself: use the host's name, such as host.docker.internal.`
        : `Check that the server is running on ${url.hostname} and uses port ${port}. ` +
          "Many model servers only accept connections from their own machine by default; start them with --host 0.0.0.0.";
    case "unresolved":
      return `The name "${url.hostname}" can't be resolved. Check the spelling, or enter the machine's IP address.`;
    case "unreachable":
    case "timeout":
      if (error.kind === "timeout" && url.protocol === "https:") {
        return "The server accepts connections but doesn't respond. If it doesn't use TLS, enter the address with http://.";
      }
      return error.kind === "timeout" && isLoopback
        ? "The server accepts connections but doesn't respond. It may be busy with another reply. Wait, or restart it."
        : `${url.hostname} doesn't respond. Check that the machine is on, the address is right, and no firewall blocks it.`;
    case "certificate":
      return "This machine doesn't trust the server's certificate. Use http:// for a server on your own network, or install its certificate.";
    case "protocol":
      return url.protocol === "https:"
        ? "The server doesn't use TLS at this address. Try http://."
        : "This isn't an HTTP server, or it only accepts TLS. Try https://, or check the port.";
    case "blocked":
      return `HTTP clients block port ${port} because another protocol uses it. Run the server on another port.`;
    case "redirect":
      return "The server redirects to another address. Enter that address as the base URL.";
    case "web_page":
      return "This address is a web page, not an API. Check the port. The API is often at /v1 or on another port.";
    case "bad_answer":
    case "not_found":
      return "The server doesn't have this path. Enter the base URL from its documentation. Most end in /v1.";
    case "auth":
      return getKeyAdvice(error, target, url);
    case "credit":
      return "The key is valid, but the account has no credit left.";
    case "rate":
      return "The server limits the number of requests. Wait a moment, then test again.";
    case "starting":
      return "The server is still loading its model. Wait a moment, then test again.";
    case "overloaded":
      return "The server is busy. Wait a moment, then test again.";
    default:
      if (url.protocol === "http:" && /http request.*https/i.test(error.message)) {
        return "This port uses TLS. Try https://.";
      }
      return "The server returned an error. Its log may have details.";
  }
}

function getKeyAdvice(error: UpstreamError, target: UpstreamTarget, url: URL): string {
  if (target.kind === "openai" && url.hostname === "api.anthropic.com") {
    return "Anthropic uses its own protocol. Choose the kind anthropic for this connection.";
  }
  const hasKey = target.apiKey !== undefined && target.apiKey.trim() !== "";
  if (error.status === 403 && !hasKey) {
    return "The server rejects the request. It may need an API key, or accept only certain host names: " +
      "for Ollama set OLLAMA_HOST, for text-generation-webui start it with --listen.";
  }
  return hasKey
    ? "The server rejects this key. Check that it's complete, still valid, and for this server."
    : "The server needs an API key. Enter the one it was started with, or one from your account.";
}

/** What a server reports about itself. */
export interface ServerIdentity {
  /** Product name: `"vLLM"`. Absent if the server doesn't report it, and for services known by their address. */
  software?: string;
  /** Absent if the server doesn't report it. */
  dialect?: DialectName;
  /** True if all its models speak or transcribe. */
  isSpeech?: boolean;
  models: ModelFacts[];
}

/** What a server reports about one model. */
export interface ModelFacts {
  id: string;
  /** True if it thinks, and thinking can be turned on and off. */
  thinking?: boolean;
}

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Identifies the server of a target, and lists its models.
 *
 * @returns `undefined` if it didn't respond
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
    // If there is no response to one path, there is none to the other.
    if (listed === undefined || parseModelList(listed.json) !== undefined) break;
  }
  if (listed === undefined) return undefined;
  const isKnown = findDialectOfAddress(target.baseUrl) !== undefined;
  const software = isKnown ? undefined : await identifyServer(listed, (path) => request(root + path));
  const dialect = software === undefined ? undefined : getDialectOfSoftware(software);
  const entries = parseModelList(listed.json)?.data ?? [];
  const models = entries.map((entry) => readModelFacts(entry));
  if (dialect === "llama.cpp" && models.length === 1) {
    const template = readField((await request(`${root}/props`))?.json, "chat_template");
    if (typeof template === "string") models[0]!.thinking = /enable_thinking|reasoning_effort/.test(template);
  }
  return {
    ...(software !== undefined && { software }),
    ...(dialect && dialect !== "generic" && { dialect }),
    ...(isSpeech(entries) && { isSpeech: true }),
    models,
  };
}

/** Returns the facts in an entry of a model list. OpenRouter lists the parameters of each model. */
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
