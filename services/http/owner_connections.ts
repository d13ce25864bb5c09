/**
 * Connections to the owner's servers. A name is resolved once, its addresses are judged, and the connection is made to one
 * of these: plain HTTP by the address in the URL and the name as `Host`, HTTPS through a proxy of our own that knows the
 * judged addresses.
 */
import { type OwnerPolicy, resolveOwnerUrl } from "./base_url.ts";
import { connectToFirst } from "./guard/sockets.ts";
import type { GuardProxy } from "./guard/guard_proxy.ts";
import {
  DEFAULT_PROXY_LIMITS,
  isAddress,
  isPublicAddress,
  OWN_VIA,
  type ProxyLimits,
  type Target,
  toTarget,
} from "./guard/target_policy.ts";
import type { OwnListeners } from "./own_listeners.ts";

/** How to judge and keep connections. */
export interface OwnerConnectionsOptions extends OwnerPolicy {
  ownListeners?: OwnListeners;
  /** False closes each connection after its request. Default: true. */
  keepsConnections?: boolean;
  /** PEM certificates to trust in addition to the system's. */
  caCerts?: string[];
  /** An HTTP proxy of the owner for all requests. It resolves their names; only its own addresses are judged. */
  proxyUrl?: string;
}

/** How to send one request. */
export interface Route {
  url: URL;
  /** To be added to the request. */
  headers: Record<string, string>;
  client: Deno.HttpClient;
  /** The judged addresses to which it may connect. */
  addresses: string[];
  port: number;
  /** True if the address is one that worked before. When it can't be connected to, another may. */
  isRemembered: boolean;
  /** Forgets the address, and returns why the proxy couldn't connect, if it knows. */
  fail(): unknown;
}

/**
 * Common servers close an idle connection after 5 s. This is shorter, so that a request never uses a connection that is
 * closing.
 */
const POOL_IDLE_TIMEOUT_MS = 4_000;
const MAX_IDLE_PER_HOST = 256;
/** Names whose addresses are remembered. */
const MAX_NAMES = 500;
/** Calls have their own limits: a model may think for minutes. */
const PROXY_LIMITS: ProxyLimits = {
  ...DEFAULT_PROXY_LIMITS,
  connectMs: 60_000,
  idleMs: 2 ** 31 - 1,
  connections: 4096,
};

/** Makes the connections. Opens nothing before the first request. */
export class OwnerConnections {
  readonly #options: OwnerConnectionsOptions;
  #direct: Deno.HttpClient | undefined;
  #proxied: Promise<{ proxy: GuardProxy; client: Deno.HttpClient }> | undefined;
  #forwarded: Deno.HttpClient | undefined;
  /** The judged addresses of each name and port. */
  readonly #judged = new Map<string, string[]>();
  /** Why a connection of the proxy failed last. */
  readonly #failures = new Map<string, unknown>();
  /** Of names with several addresses, the one that accepted. */
  readonly #working = new Map<string, string>();

  constructor(options: OwnerConnectionsOptions) {
    this.#options = options;
  }

  /**
   * Resolves and judges the host of a URL.
   *
   * @param limitMs Until the connection is made.
   * @returns `undefined` if the name can't be resolved.
   * @throws {AppError} `address_not_allowed`
   */
  async route(url: URL, limitMs: number, signal: AbortSignal): Promise<Route | undefined> {
    const { proxyUrl } = this.#options;
    if (proxyUrl !== undefined) return await this.#routeToProxy(url, new URL(proxyUrl));
    const addresses = preferPublic(await resolveOwnerUrl(url, this.#options));
    if (addresses.length === 0) return undefined;
    const target = toTarget(url);
    const { port } = target;
    const key = toKey(target);
    const headers: Record<string, string> = addresses.some((address) => !isPublicAddress(address))
      ? { ...OWN_VIA }
      : {};
    const fail = () => {
      this.#working.delete(key);
      return this.#failures.get(key);
    };
    const route = { url, headers, addresses, port, isRemembered: false, fail };
    if (isAddress(target.host)) return { ...route, client: this.#openDirect() };
    if (url.protocol === "https:") {
      remember(this.#judged, key, addresses);
      this.#failures.delete(key);
      this.#proxied ??= this.#openProxied();
      return { ...route, client: (await this.#proxied).client };
    }
    const known = this.#working.get(key);
    const isRemembered = known !== undefined && addresses.includes(known);
    const address = isRemembered ? known : await this.#choose(key, addresses, port, limitMs, signal);
    const direct = new URL(url);
    direct.hostname = address.includes(":") ? `[${address}]` : address;
    return {
      ...route,
      url: direct,
      headers: { ...headers, host: url.host },
      client: this.#openDirect(),
      addresses: [address],
      isRemembered,
    };
  }

  async #routeToProxy(url: URL, proxy: URL): Promise<Route> {
    const [address] = preferPublic(await resolveOwnerUrl(proxy, this.#options));
    if (address === undefined) throw new Error(`the proxy "${proxy.host}" is unknown`);
    const { port } = toTarget(proxy);
    const host = address.includes(":") ? `[${address}]` : address;
    this.#forwarded ??= Deno.createHttpClient({ ...this.#poolOptions, proxy: { url: `http://${host}:${port}` } });
    return {
      url,
      headers: {},
      addresses: [address],
      port,
      client: this.#forwarded,
      isRemembered: false,
      fail: () => new Error(`the proxy "${proxy.host}" refused the connection`),
    };
  }

  /** Closes all connections. */
  close(): void {
    this.#forwarded?.close();
    this.#forwarded = undefined;
    this.#direct?.close();
    this.#direct = undefined;
    void this.#proxied?.then(({ proxy, client }) => {
      client.close();
      return proxy.close();
    });
    this.#proxied = undefined;
  }

  /** Finds the address that accepts a connection. If none does, the first shows why. */
  async #choose(key: string, addresses: string[], port: number, limitMs: number, signal: AbortSignal): Promise<string> {
    if (addresses.length === 1) return addresses[0]!;
    using conn = await connectToFirst(() => Promise.resolve(addresses), port, limitMs / 2, signal);
    if (conn === undefined) return addresses[0]!;
    const { hostname } = conn.remoteAddr as Deno.NetAddr;
    const address = addresses.includes(hostname) ? hostname : addresses[0]!;
    remember(this.#working, key, address);
    return address;
  }

  #openDirect(): Deno.HttpClient {
    return this.#direct ??= Deno.createHttpClient({ ...this.#poolOptions, allowHost: true });
  }

  async #openProxied(): Promise<{ proxy: GuardProxy; client: Deno.HttpClient }> {
    const { openGuardProxy } = await import("./guard/guard_proxy.ts");
    const proxy = openGuardProxy({
      policy: { resolveAllowed: (target) => Promise.resolve(this.#judged.get(toKey(target)) ?? []) },
      limits: PROXY_LIMITS,
      ownListeners: this.#options.ownListeners,
      onFailure: (target, reason) => remember(this.#failures, toKey(target), reason),
    });
    const { port, username, password } = proxy;
    const client = Deno.createHttpClient({
      ...this.#poolOptions,
      proxy: { url: `http://127.0.0.1:${port}`, basicAuth: { username, password } },
    });
    return { proxy, client };
  }

  get #poolOptions() {
    return {
      poolIdleTimeout: POOL_IDLE_TIMEOUT_MS,
      poolMaxIdlePerHost: this.#options.keepsConnections === false ? 0 : MAX_IDLE_PER_HOST,
      caCerts: this.#options.caCerts,
      http1: true,
      http2: false,
    };
  }
}

/**
 * Puts public addresses first. If a name has public ones, private ones of the same family are left out: names of machines
 * at home have at most a public IPv6 and a private IPv4 address, but one that mixes them may want to lead into that network.
 */
function preferPublic(addresses: string[]): string[] {
  const found = addresses.filter(isPublicAddress);
  const hasFamily = (address: string) => found.some((one) => one.includes(":") === address.includes(":"));
  return [...found, ...addresses.filter((address) => !isPublicAddress(address) && !hasFamily(address))];
}

function toKey({ host, port }: Target): string {
  return `${host} ${port}`;
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= MAX_NAMES) map.clear();
  map.set(key, value);
}
