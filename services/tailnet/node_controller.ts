/**
 * Brings a running node to its desired state and reports its state. Polls the status after every message and at
 * intervals, because messages may be late, repeated or missing.
 */
import { yieldToEventLoop } from "../async/delay.ts";
import { getErrorMessage } from "../errors.ts";
import { type LocalApi, type NodeFacts, type NodePrefs, removeSecrets, Watch } from "./local_api.ts";
import { createView, type NodeNames, type NodeTimes, type NodeView } from "./node_state.ts";

/** The desired state of a node, and its listeners. */
export interface FollowOptions {
  controlUrl: string;
  /** The desired host name. */
  hostname: string;
  /** URL to which it forwards requests. */
  target: string;
  times: NodeTimes;
  onView(view: NodeView): void;
  /** Called before the node accepts connections, because authentication needs its names. */
  onNames(names: NodeNames): Promise<void>;
  /** Called before the node accepts connections. */
  onAddresses(addresses: readonly string[]): void;
}

/** Number of consecutive failed polls after which the node is considered hung. */
const MAX_FAILED_POLLS = 3;

/** Controls one node from its first response to its end. */
export class NodeFollower {
  readonly #api: LocalApi;
  readonly #options: FollowOptions;
  readonly #watch: Watch;
  readonly #certificates: Certificates;
  #hostname: string;
  /** The current serve config as text, if known. */
  #served: string | undefined;
  /** When the current state started. */
  #waitsSinceMs = performance.now();
  #askLoginAtMs = 0;
  #lastState = "";

  constructor(api: LocalApi, options: FollowOptions) {
    this.#api = api;
    this.#options = options;
    this.#hostname = options.hostname;
    this.#watch = new Watch(api, options.times);
    this.#certificates = new Certificates(api, options.times, () => this.#watch.wake());
  }

  /**
   * Controls the node until the signal aborts.
   *
   * @throws {Error} if the node can't be started or stops responding; the abort reason
   */
  async follow(signal: AbortSignal): Promise<never> {
    await this.#watch.begin(signal);
    await this.#start(signal);
    for (let silent = 0;;) {
      try {
        await this.#look(await this.#api.getStatus(signal), signal);
        silent = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (++silent === MAX_FAILED_POLLS) throw new Error(`it no longer responded (${getErrorMessage(error)})`);
      }
      const isSteady = this.#lastState === "Running" && this.#served !== undefined;
      await this.#watch.waitForChange(isSteady ? this.#options.times.watchMs : this.#options.times.pollMs, signal);
    }
  }

  /** Renames the running node. The result appears in the watch. */
  async rename(hostname: string, signal: AbortSignal): Promise<void> {
    this.#hostname = hostname;
    await this.#api.patchPrefs({ Hostname: hostname }, signal);
    this.#watch.wake();
  }

  /**
   * Starts the node with shields up, so that it doesn't accept connections until it serves. A start replaces all
   * settings, so the current ones are sent with the changes. The control URL must be set first, or the node would
   * contact the public server.
   */
  async #start(signal: AbortSignal): Promise<void> {
    const prefs: NodePrefs = {
      ...await this.#api.getPrefs(signal),
      ControlURL: this.#options.controlUrl,
      Hostname: this.#hostname,
      WantRunning: true,
      LoggedOut: false,
      CorpDNS: false,
      RouteAll: false,
      RunSSH: false,
      ShieldsUp: true,
    };
    await this.#api.start(prefs, signal);
  }

  async #look(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    if (facts.state !== this.#lastState) {
      this.#lastState = facts.state;
      this.#waitsSinceMs = performance.now();
      this.#watch.forget();
    }
    switch (facts.state) {
      case "Running":
        return await this.#run(facts, signal);
      case "NeedsLogin":
        return await this.#signIn(facts, signal);
      case "NeedsMachineAuth":
        return this.#show(
          createView("needs_auth", { error: "The node is waiting for approval by an admin of the tailnet" }),
        );
      case "Stopped":
        return this.#show(createView("stopped"));
      case "InUseOtherUser":
        return this.#show(createView("error", { error: "Another user of this machine is running the node" }));
      default:
        return this.#show(createView("starting", { error: this.#explainDelay() }));
    }
  }

  async #run(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    const { fqdn, suffix, certDomains } = facts;
    this.#options.onAddresses(facts.addresses);
    if (fqdn === undefined) return this.#show(createView("starting"));
    const certificate = this.#certificates.toNodeState(fqdn, certDomains, signal);
    if (certificate.kind === "asked") return this.#show(createView("starting"));
    const isHttps = certificate.kind === "ready";
    try {
      if (suffix !== undefined) await this.#options.onNames({ fqdn, suffix });
      await this.#serve({ fqdn, target: this.#options.target, isHttps }, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#served = undefined;
      const message = `Can't serve Parlor on the tailnet: ${getErrorMessage(error)}`;
      return this.#show(createView("error", { fqdn, error: removeSecrets(message) }));
    }
    const url = `${isHttps ? "https" : "http"}://${fqdn}`;
    this.#show(createView("running", { fqdn, url, error: certificate.kind === "refused" ? certificate.reason : null }));
  }

  /** Accepts connections only with a serve config that covers every port. */
  async #serve(serving: Serving, signal: AbortSignal): Promise<void> {
    const key = JSON.stringify(serving);
    if (this.#served === key) return;
    const config = await serveConfig(serving);
    try {
      await this.#api.setServeConfig(config, signal);
    } catch {
      signal.throwIfAborted();
      // A port can only change its type after an empty config.
      await this.#api.patchPrefs({ ShieldsUp: true }, signal);
      await this.#api.setServeConfig("{}", signal);
      await this.#api.setServeConfig(config, signal);
    }
    await this.#api.patchPrefs({ ShieldsUp: false }, signal);
    this.#served = key;
  }

  async #signIn(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    if (this.#served !== undefined) {
      // The node may be signed in to another tailnet, where nothing is served yet and every port would be forwarded
      // without a check.
      await this.#api.patchPrefs({ ShieldsUp: true }, signal);
      this.#served = undefined;
    }
    const authUrl = parseWebUrl(facts.authUrl) ?? parseWebUrl(this.#watch.browseUrl);
    if (authUrl !== undefined) return this.#show(createView("needs_auth", { authUrl }));
    if (performance.now() >= this.#askLoginAtMs) {
      this.#askLoginAtMs = performance.now() + this.#options.times.loginMs;
      await this.#api.startLogin(signal);
    }
    this.#show(createView("starting", { error: this.#explainDelay() }));
  }

  /** Returns the reason for a delay after some time. */
  #explainDelay(): string | null {
    if (performance.now() - this.#waitsSinceMs < this.#options.times.loginMs) return null;
    return this.#watch.health.get("login-state") ?? "The node isn't starting. Is its control server reachable?";
  }

  #show(view: NodeView): void {
    const { errorMessage } = this.#watch;
    const isOnItsWay = view.state === "starting" || view.state === "stopped";
    this.#options.onView(isOnItsWay && errorMessage !== "" ? createView("error", { error: errorMessage }) : view);
  }
}

/** Validates a URL from the control server, which becomes a link on the page. */
function parseWebUrl(text: string): string | undefined {
  return /^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined;
}

/** State of the certificate. */
type CertificateState =
  | { kind: "asked" }
  | { kind: "ready" }
  /** `reason` is a complete sentence for the owner. */
  | { kind: "refused"; reason: string };

/** Consequence of a missing certificate. */
const CONSEQUENCE = "so the address is plain HTTP, where browsers don't create passkeys";

/** Requests one certificate at a time. */
class Certificates {
  readonly #api: LocalApi;
  readonly #times: NodeTimes;
  readonly #onChange: () => void;
  #known: { fqdn: string; state: CertificateState; againAtMs: number } | undefined;

  constructor(api: LocalApi, times: NodeTimes, onChange: () => void) {
    this.#api = api;
    this.#times = times;
    this.#onChange = onChange;
  }

  /**
   * Returns the state for a name. Requests the certificate if necessary.
   *
   * @param domains Names for which the tailnet issues certificates.
   */
  toNodeState(fqdn: string, domains: readonly string[], signal: AbortSignal): CertificateState {
    if (!domains.includes(fqdn)) {
      this.#known = undefined;
      const how = "turn on MagicDNS and HTTPS certificates in its admin console";
      return { kind: "refused", reason: `The tailnet doesn't issue HTTPS certificates, ${CONSEQUENCE}; ${how}` };
    }
    if (this.#known?.fqdn !== fqdn) this.#ask(fqdn, { kind: "asked" }, signal);
    else if (performance.now() >= this.#known.againAtMs) this.#ask(fqdn, this.#known.state, signal);
    return this.#known!.state;
  }

  /** @param state The state until the response arrives. */
  #ask(fqdn: string, state: CertificateState, signal: AbortSignal): void {
    const known = { fqdn, state, againAtMs: Infinity };
    this.#known = known;
    this.#api.fetchCertificate(fqdn, this.#times.certificateMs, signal).then(
      () => void (known.state = { kind: "ready" }),
      (error) => {
        known.state = {
          kind: "refused",
          reason: `There is no HTTPS certificate for ${fqdn}, ${CONSEQUENCE}: ${getErrorMessage(error)}`,
        };
        known.againAtMs = performance.now() + this.#times.certificateAgainMs;
      },
    ).finally(this.#onChange);
  }
}

const LAST_PORT = 65_535;
/** Number of ports written at a time, so that requests can be handled in between. */
const PORTS_AT_ONCE = 2_048;

/** How the node serves requests. */
interface Serving {
  fqdn: string;
  /** Address to which requests are forwarded. */
  target: string;
  isHttps: boolean;
}

/**
 * Creates the complete configuration.
 *
 * It contains every port of the node: in userspace mode, any other port is forwarded to the same port of this machine's
 * 127.0.0.1, where Parlor and other services would consider the caller local. A port without an entry under `Web`
 * returns 404. The type of each port is the same with and without certificates, because type changes are rejected.
 * `AllowFunnel` isn't used: it opens a port to the internet.
 */
export async function serveConfig({ fqdn, target, isHttps }: Serving): Promise<string> {
  let ports = "";
  for (let port = 1; port <= LAST_PORT; port++) {
    ports += port === 443 ? '"443":{"HTTPS":true}' : `"${port}":{"HTTP":true}`;
    if (port < LAST_PORT) ports += ",";
    if (port % PORTS_AT_ONCE === 0) await yieldToEventLoop();
  }
  const handlers = { Handlers: { "/": { Proxy: target } } };
  // With HTTPS, the listener redirects plain HTTP requests to the HTTPS address.
  const web = isHttps ? { [`${fqdn}:443`]: handlers, [`${fqdn}:80`]: handlers } : { [`${fqdn}:80`]: handlers };
  return `{"TCP":{${ports}},"Web":${JSON.stringify(web)}}`;
}
