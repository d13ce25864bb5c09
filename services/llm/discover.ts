/** Finds model servers that run on known ports, without credentials and in under two seconds (llm.md, section 8). */
import { messageOf } from "../errors.ts";
import { assertOwnerAddress, parseOwnerUrl } from "../net/owner_endpoint.ts";
import { PROBE_PLANS, type ProbeAnswer, type ProbePlan, type ServerFind } from "./fingerprints.ts";
import { readText } from "./upstream_http.ts";

/** A server that was found. */
export interface DiscoveredServer {
  baseUrl: string;
  kind: "openai";
  /** Its name as people know it: `"llama.cpp"`, `"Ollama"`. */
  software: string;
  models: string[];
  /** It answered that a key is missing. */
  needsKey?: boolean;
  /** It is still loading its model. */
  isStarting?: boolean;
}

/** What is probed. */
export interface DiscoverOptions {
  /** From the configuration, never from a request: else this would be a scanner for whoever asks. */
  hosts: readonly string[];
  /** Ports and whose habits to expect there; the documented ones unless a test gives others. */
  ports?: readonly { port: number; as: number }[];
  /** For one request; a port takes at most two. */
  deadlineMs?: number;
  resolve?: (host: string) => Promise<string[]>;
}

const DEADLINE_MS = 700;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Probes all hosts and ports at once.
 *
 * A host that is not allowed (link-local, metadata) or cannot be resolved is left out. The order is that of hosts and ports.
 */
export async function discoverServers(options: DiscoverOptions): Promise<DiscoveredServer[]> {
  const ports = options.ports ?? Object.keys(PROBE_PLANS).map((port) => ({ port: Number(port), as: Number(port) }));
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0, http1: true, http2: false });
  try {
    const probes = options.hosts.flatMap((host) =>
      ports.map(async ({ port, as }) => {
        const plan = PROBE_PLANS[as];
        if (plan === undefined) throw new Error(`No server is known to use port ${as}`);
        const origin = originFor(host, port);
        return origin === undefined ? undefined : await probe(client, origin, plan, deadlineMs, options.resolve);
      })
    );
    return (await Promise.all(probes)).filter((find) => find !== undefined);
  } finally {
    client.close();
  }
}

function originFor(host: string, port: number): string | undefined {
  try {
    return parseOwnerUrl(`http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`).origin;
  } catch {
    return undefined;
  }
}

async function probe(
  client: Deno.HttpClient,
  origin: string,
  plan: ProbePlan,
  deadlineMs: number,
  resolve?: (host: string) => Promise<string[]>,
): Promise<DiscoveredServer | undefined> {
  try {
    await within(deadlineMs, assertOwnerAddress(new URL(origin), resolve));
  } catch {
    return undefined;
  }
  const first = await get(client, origin + plan.first, deadlineMs);
  if (first === undefined) return undefined;
  const step = plan.judge(first);
  let find: ServerFind | undefined;
  if (step === undefined || "software" in step) find = step;
  else find = step.judge(await get(client, origin + step.path, deadlineMs));
  if (find === undefined) return undefined;
  return {
    baseUrl: `${origin}/v1`,
    kind: "openai",
    software: find.software,
    models: find.models ?? [],
    ...(find.needsKey && { needsKey: true }),
    ...(find.isStarting && { isStarting: true }),
  };
}

/** Makes one request; `undefined` when nothing answered in time. No credentials, no Origin, no redirects. */
async function get(client: Deno.HttpClient, url: string, deadlineMs: number): Promise<ProbeAnswer | undefined> {
  try {
    const response = await fetch(url, {
      client,
      redirect: "manual",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(deadlineMs),
    });
    const text = await readText(response, MAX_BODY_BYTES);
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined;
    }
    return { status: response.status, headers: response.headers, text, json };
  } catch {
    return undefined;
  }
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(messageOf);
  }
}
