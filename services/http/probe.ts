/** Asks hosts and ports of the configuration whether a server answers there: quickly, without credentials, and quietly where none does. */
import { messageOf } from "../errors.ts";
import { assertOwnerAddress, parseOwnerUrl } from "./endpoint_address.ts";
import { readText } from "./read_body.ts";
import type { ResolveHost } from "./guard/resolve_host.ts";

/** One answer of a probe. */
export interface ProbeAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The text parsed, `undefined` when it is no JSON. */
  json: unknown;
}

/** Asks a server for one of its paths; `undefined` when nothing answered in time. */
export type Ask = (path: string) => Promise<ProbeAnswer | undefined>;

/** What is probed. */
export interface ProbeOptions<Port> {
  /** From the configuration, never from a request: else this would be a scanner for whoever asks. */
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
 * A host that is not allowed (link-local, metadata) or cannot be resolved is left out.
 *
 * @param judge Tells what is there, by the answers to what it asks; `undefined` where it is nothing.
 * @returns What was found, in the order of hosts and ports.
 */
export async function probeAll<Port, Found>(
  options: ProbeOptions<Port>,
  judge: (origin: string, port: Port, ask: Ask) => Promise<Found | undefined>,
): Promise<Found[]> {
  const { hosts, ports, deadlineMs = DEADLINE_MS, resolve } = options;
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0, http1: true, http2: false });
  try {
    const probes = hosts.flatMap((host) =>
      ports.map(async (port) => {
        const origin = originFor(host, port.port);
        if (origin === undefined || !await isAllowed(origin, deadlineMs, resolve)) return undefined;
        return await judge(origin, port, (path) => get(client, origin + path, deadlineMs));
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

async function isAllowed(origin: string, deadlineMs: number, resolve: ResolveHost | undefined): Promise<boolean> {
  try {
    await within(deadlineMs, assertOwnerAddress(new URL(origin), resolve));
    return true;
  } catch {
    return false;
  }
}

/** Makes one request. No credentials, no Origin, no redirects. */
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
