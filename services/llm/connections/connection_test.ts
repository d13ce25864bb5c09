/** Tests a connection and says in plain words what to do when it does not work. */
import { AppError } from "../../errors.ts";
import type { Provider, UpstreamTarget } from "../provider.ts";
import { UpstreamError, type UpstreamErrorKind } from "../../http/upstream_error.ts";

/** What a test found. */
export interface ConnectionVerdict {
  /** Something that speaks HTTP answered. */
  isReachable: boolean;
  /** It listed its models to us. */
  isAuthorized: boolean;
  models: string[];
  /** Tokens that the model can hold. */
  contextSize?: number;
  latencyMs: number;
  error?: string;
  /** What the owner can do. */
  advice?: string;
}

// A test is watched by a person; a server that needs longer than this to list its models has something to tell.
const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;

const UNREACHED = new Set<UpstreamErrorKind>([
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
 * Asks a server for its models and its context size.
 *
 * @param model The model that shall be used, if one is chosen.
 * @throws {AppError} `address_not_allowed`, `invalid_request`: what is no finding about a server but a refusal of ours
 * @throws The reason of `signal`, when that fired.
 */
export async function testConnection(
  client: Provider,
  target: UpstreamTarget,
  signal: AbortSignal,
  model?: string,
): Promise<ConnectionVerdict> {
  const { connectMs, firstByteMs, idleMs } = target.timeouts;
  const quick: UpstreamTarget = {
    ...target,
    timeouts: {
      connectMs: Math.min(connectMs, CONNECT_MS),
      firstByteMs: Math.min(firstByteMs, ANSWER_MS),
      idleMs: Math.min(idleMs, ANSWER_MS),
    },
  };
  const startedAtMs = performance.now();
  const latencyMs = () => Math.round(performance.now() - startedAtMs);
  try {
    const models = (await client.listModels(quick, signal)).data.map((entry) => entry.id);
    const verdict: ConnectionVerdict = { isReachable: true, isAuthorized: true, models, latencyMs: latencyMs() };
    const asked = model ?? models[0];
    if (asked !== undefined) verdict.contextSize = await client.readContextSize(quick, asked, signal);
    verdict.advice = adviceForModels(models, model);
    return verdict;
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof UpstreamError)) throw thrown;
    return {
      isReachable: wasReached(thrown),
      isAuthorized: false,
      models: [],
      latencyMs: latencyMs(),
      error: thrown.message,
      advice: adviceForError(thrown, quick),
    };
  }
}

/**
 * Tells whether a server answers, within `limitMs`; a refusal is an answer, and comes with its error.
 *
 * @throws The reason of `signal`, when that fired.
 */
export async function checkReachable(
  client: Provider,
  target: UpstreamTarget,
  limitMs: number,
  signal: AbortSignal,
): Promise<{ isReachable: boolean; latencyMs: number; error?: string }> {
  const timeouts = { connectMs: limitMs, firstByteMs: limitMs, idleMs: limitMs };
  const startedAtMs = performance.now();
  const since = () => Math.round(performance.now() - startedAtMs);
  try {
    await client.listModels({ ...target, timeouts }, signal);
    return { isReachable: true, latencyMs: since() };
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof AppError)) throw thrown;
    return { isReachable: wasReached(thrown), latencyMs: since(), error: thrown.message };
  }
}

function wasReached(error: AppError): boolean {
  if (!(error instanceof UpstreamError)) return false;
  return error.status !== undefined || !UNREACHED.has(error.kind);
}

function adviceForModels(models: string[], model: string | undefined): string | undefined {
  if (models.length === 0) {
    return "The server answers but has no model. Load one there (with Ollama: ollama pull NAME), then test again.";
  }
  if (model !== undefined && !models.includes(model)) {
    return `The server does not list "${model}". Choose one of its models; some servers load a listed one when asked.`;
  }
  return undefined;
}

/** Gives the next step for a failure, in words a newcomer can act on. */
export function adviceForError(error: UpstreamError, target: UpstreamTarget): string {
  const url = new URL(target.baseUrl);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(url.hostname);
  switch (error.kind) {
    case "refused":
      return isLoopback
        ? `Nothing listens on port ${port} of this machine. Is the model server running, and on this port? ` +
          `If Parlor runs in a container, "${url.hostname}" means the container: use the host's name, such as host.docker.internal.`
        : `Nothing listens on port ${port} of ${url.hostname}. Is the server running there? ` +
          "Many model servers accept only their own machine until told to listen on the network (often --host 0.0.0.0).";
    case "unresolved":
      return `The name "${url.hostname}" is not known here. Check the spelling, or enter the machine's IP address.`;
    case "unreachable":
    case "timeout":
      if (error.kind === "timeout" && url.protocol === "https:") {
        return "The server took the connection but does not answer. If it speaks plain HTTP, use http:// in its address.";
      }
      return error.kind === "timeout" && isLoopback
        ? "The server took the connection but does not answer. It may be busy with another reply; wait, or restart it."
        : `${url.hostname} does not answer. Check that the machine is on, the address right, and no firewall in between.`;
    case "certificate":
      return "The server's certificate is not trusted by this machine. For a server at home use http://, or install its certificate in the system.";
    case "protocol":
      return url.protocol === "https:"
        ? "The server does not speak HTTPS at this address. Try the same address with http://."
        : "What answers there is no HTTP server, or speaks only HTTPS. Try https://, or check the port.";
    case "blocked":
      return `Port ${port} belongs to another protocol, and no web program speaks HTTP to it. Start the server on another port.`;
    case "redirect":
      return "The server sends us to another address. Enter that address as the base URL.";
    case "web_page":
      return "That address is a web page, not an API. Check the port; the API often lies under /v1 or on another port.";
    case "bad_answer":
    case "not_found":
      return "Something answers there, but not at this path. Enter the base URL as the server's documentation names it, mostly ending in /v1.";
    case "auth":
      return adviceForKey(error, target, url);
    case "credit":
      return "The key is right, but its account has no credit left.";
    case "rate":
      return "The server allows no more requests for now. Wait a little, then test again.";
    case "starting":
      return "The server is running and still loads its model. Wait a moment, then test again.";
    case "overloaded":
      return "The server is running but busy. Wait a moment, then test again.";
    default:
      if (url.protocol === "http:" && /http request.*https/i.test(error.message)) {
        return "This port speaks HTTPS. Try the same address with https://.";
      }
      return "The server answered with an error of its own; its log may say more.";
  }
}

function adviceForKey(error: UpstreamError, target: UpstreamTarget, url: URL): string {
  if (target.kind === "openai" && url.hostname === "api.anthropic.com") {
    return "Anthropic speaks its own protocol here. Choose the kind anthropic for this connection.";
  }
  const hasKey = target.apiKey !== undefined && target.apiKey.trim() !== "";
  if (error.status === 403 && !hasKey) {
    return "The server refuses the request. It may need an API key, or accept only certain host names: " +
      "Ollama does unless OLLAMA_HOST is set, text-generation-webui unless started with --listen.";
  }
  return hasKey
    ? "The server refuses this key. Check that it is complete, still valid, and meant for this server."
    : "The server needs an API key. Enter the one it was started with, or that your account there shows.";
}
