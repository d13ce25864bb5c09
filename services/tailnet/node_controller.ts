/**
 * Leads one running node to where it should be, and says where it stands. It goes by the node's status, which is read after
 * every message and now and then; the messages themselves may come late, twice or not at all.
 */
import { messageOf } from "../errors.ts";
import { Certificates } from "./certificates.ts";
import type { LocalApi, NodeFacts, NodePrefs } from "./local_api.ts";
import { withoutSecrets } from "./local_api.ts";
import type { OwnNames } from "./node_state.ts";
import { type NodeTimes, type NodeView, viewOf } from "./node_status.ts";
import { serveConfig, type Serving } from "./serve_config.ts";
import { Watch } from "./node_watch.ts";

/** What a node is led to, and who hears of it. */
export interface FollowOptions {
  controlUrl: string;
  /** The wished name. */
  hostname: string;
  /** Where it hands requests to. */
  target: string;
  times: NodeTimes;
  onView(view: NodeView): void;
  /** Told before it is opened to the tailnet: who is its sibling and who it is itself has to be known by then. */
  onNames(names: OwnNames): Promise<void>;
}

/** Looks without an answer before the node counts as hung. */
const MAX_SILENT_LOOKS = 3;

/** One node, from its first answer to its end. */
export class NodeFollower {
  readonly #api: LocalApi;
  readonly #options: FollowOptions;
  readonly #watch: Watch;
  readonly #certificates: Certificates;
  #hostname: string;
  /** What is served, as text; `undefined` while that is not known. */
  #served: string | undefined;
  /** When it began to wait for what it has not reached yet. */
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
   * Leads it until the signal fires.
   *
   * @throws {Error} when it cannot be started or does not answer any more. The signal's reason.
   */
  async follow(signal: AbortSignal): Promise<never> {
    await this.#watch.begin(signal);
    await this.#start(signal);
    for (let silent = 0;;) {
      try {
        await this.#look(await this.#api.status(signal), signal);
        silent = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (++silent === MAX_SILENT_LOOKS) throw new Error(`it did not answer any more (${messageOf(error)})`);
      }
      const isSteady = this.#lastState === "Running" && this.#served !== undefined;
      await this.#watch.untilNews(isSteady ? this.#options.times.watchMs : this.#options.times.pollMs, signal);
    }
  }

  /** Gives it another name while it runs; the tailnet's answer comes by the watch. */
  async rename(hostname: string, signal: AbortSignal): Promise<void> {
    this.#hostname = hostname;
    await this.#api.patchPrefs({ Hostname: hostname }, signal);
    this.#watch.wake();
  }

  /**
   * Closed to the tailnet until it serves. The settings are replaced as a whole, so those it has are sent back with what
   * is to be otherwise; and it must hear its control server before anything else could make it ask the public one.
   */
  async #start(signal: AbortSignal): Promise<void> {
    const prefs: NodePrefs = {
      ...await this.#api.prefs(signal),
      ...{ ControlURL: this.#options.controlUrl, Hostname: this.#hostname, WantRunning: true, LoggedOut: false },
      ...{ CorpDNS: false, RouteAll: false, RunSSH: false, ShieldsUp: true },
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
        return this.#show(viewOf("needs_auth", { error: "The node waits for the approval of the tailnet's admin" }));
      case "Stopped":
        return this.#show(viewOf("stopped"));
      case "InUseOtherUser":
        return this.#show(viewOf("error", { error: "Another user of this machine runs the node" }));
      default:
        return this.#show(viewOf("starting", { error: this.#lateReason() }));
    }
  }

  async #run(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    const { fqdn, suffix, certDomains } = facts;
    if (fqdn === undefined) return this.#show(viewOf("starting"));
    const certificate = this.#certificates.stateFor(fqdn, certDomains, signal);
    if (certificate.kind === "asked") return this.#show(viewOf("starting"));
    const isHttps = certificate.kind === "ready";
    try {
      if (suffix !== undefined) await this.#options.onNames({ fqdn, suffix });
      await this.#serve({ fqdn, target: this.#options.target, isHttps }, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#served = undefined;
      const message = `Cannot serve Parlor on the tailnet: ${messageOf(error)}`;
      return this.#show(viewOf("error", { fqdn, error: withoutSecrets(message) }));
    }
    const url = `${isHttps ? "https" : "http"}://${fqdn}`;
    this.#show(viewOf("running", { fqdn, url, error: certificate.kind === "refused" ? certificate.reason : null }));
  }

  /** Opens it to the tailnet only behind a configuration that says what every port does. */
  async #serve(serving: Serving, signal: AbortSignal): Promise<void> {
    const key = JSON.stringify(serving);
    if (this.#served === key) return;
    const config = await serveConfig(serving);
    try {
      await this.#api.setServeConfig(config, signal);
    } catch {
      signal.throwIfAborted();
      // A port of another type than before: it takes that only after it was told to serve nothing.
      await this.#api.patchPrefs({ ShieldsUp: true }, signal);
      await this.#api.setServeConfig("{}", signal);
      await this.#api.setServeConfig(config, signal);
    }
    await this.#api.patchPrefs({ ShieldsUp: false }, signal);
    this.#served = key;
  }

  async #signIn(facts: NodeFacts, signal: AbortSignal): Promise<void> {
    if (this.#served !== undefined) {
      // Whoever signs it in now may do so for another tailnet, where nothing is served yet and every port would go raw.
      await this.#api.patchPrefs({ ShieldsUp: true }, signal);
      this.#served = undefined;
    }
    const authUrl = webAddress(facts.authUrl) ?? webAddress(this.#watch.browseUrl);
    if (authUrl !== undefined) return this.#show(viewOf("needs_auth", { authUrl }));
    if (performance.now() >= this.#askLoginAtMs) {
      this.#askLoginAtMs = performance.now() + this.#options.times.loginMs;
      await this.#api.loginInteractive(signal);
    }
    this.#show(viewOf("starting", { error: this.#lateReason() }));
  }

  /** Why it takes long, once it does. */
  #lateReason(): string | null {
    if (performance.now() - this.#waitsSinceMs < this.#options.times.loginMs) return null;
    return this.#watch.health.get("login-state") ?? "The node does not come up; is its control server reachable?";
  }

  #show(view: NodeView): void {
    const { errorMessage } = this.#watch;
    const isOnItsWay = view.state === "starting" || view.state === "stopped";
    this.#options.onView(isOnItsWay && errorMessage !== "" ? viewOf("error", { error: errorMessage }) : view);
  }
}

/** What comes from a control server becomes a link on the page. */
function webAddress(text: string): string | undefined {
  return /^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined;
}
