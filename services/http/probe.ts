/** Probes hosts and addresses for servers, without credentials and with a short deadline. */
import { parseOwnerUrl } from "./base_url.ts";
import type { ResolveHost } from "./guard/target_policy.ts";
import { type HttpClient, openHttpClient } from "./http_client.ts";
import { readText } from "./read_body.ts";

/** The response to one probe. */
export interface ProbeResponse {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed text, undefined if it isn't JSON. */
  json: unknown;
}

/** Requests one path of a server. Returns undefined if there is no response in time. */
export type Probe = (path: string) => Promise<ProbeResponse | undefined>;

/** What to probe. */
export interface ProbeOptions<Port> {
  /** From the configuration, never from a request: otherwise any client could use Parlor as a port scanner. */
  hosts: readonly string[];
  ports: readonly (Port & { port: number })[];
  /** For one request. */
  deadlineMs?: number;
  resolve?: ResolveHost;
}

const DEADLINE_MS = 700;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Probes all hosts and ports at once.
 *
 * Hosts that aren't allowed (link-local, cloud metadata) or can't be resolved are skipped.
 *
 * @param detect Identifies the server by its responses. Returns undefined if there is none of interest.
 * @returns What was found, in the order of hosts and ports.
 */
export async function probeAll<Port, Found>(
  options: ProbeOptions<Port>,
  detect: (origin: string, port: Port, probe: Probe) => Promise<Found | undefined>,
): Promise<Found[]> {
  const { hosts, ports, deadlineMs = DEADLINE_MS, resolve } = options;
  const client = openHttpClient({ resolve, keepsConnections: false });
  try {
    const probes = hosts.flatMap((host) =>
      ports.map(async (port) => {
        const origin = findOrigin(host, port.port);
        if (origin === undefined) return undefined;
        return await detect(origin, port, (path) => probe(client, origin, path, deadlineMs));
      })
    );
    return (await Promise.all(probes)).filter((found) => found !== undefined);
  } finally {
    client.close();
  }
}

/** Probes one address that the owner entered, which may have the path of a reverse proxy. @param baseUrl As `normalizeBaseUrl` returns it. */
export async function probeAddress<Found>(
  { baseUrl, deadlineMs, resolve }: { baseUrl: string; deadlineMs: number; resolve?: ResolveHost },
  detect: (probe: Probe) => Promise<Found>,
): Promise<Found> {
  const client = openHttpClient({ resolve, keepsConnections: false });
  try {
    return await detect((path) => probe(client, baseUrl, path, deadlineMs));
  } finally {
    client.close();
  }
}

/** Returns the origin for a host, or undefined if the host is invalid or not allowed. */
function findOrigin(host: string, port: number): string | undefined {
  try {
    return parseOwnerUrl(`http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`).origin;
  } catch {
    return undefined;
  }
}

async function probe(
  client: HttpClient,
  baseUrl: string,
  path: string,
  deadlineMs: number,
): Promise<ProbeResponse | undefined> {
  // The signal is the limit. The client's own limits are longer: its check for a missing machine would open a second connection.
  const limitMs = 10 * deadlineMs;
  const target = { baseUrl, timeouts: { connectMs: limitMs, firstByteMs: limitMs, idleMs: limitMs } };
  const request = { url: baseUrl + path, headers: { accept: "application/json" }, redirect: "manual" } as const;
  try {
    const response = await client.fetch("the server", target, request, AbortSignal.timeout(deadlineMs));
    const { status, headers } = response;
    const text = await readText(response, MAX_BODY_BYTES);
    return { status, headers, text, json: parseJson(text) };
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
