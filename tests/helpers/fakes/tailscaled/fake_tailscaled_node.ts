/** The node inside the fake: states, preferences and serve configuration (docs/protocols/tailscale.md#states). */
import type { Switches } from "./fake_tailscaled_types.ts";

const NUMBERS: Record<string, number> = {
  NoState: 0,
  NeedsLogin: 2,
  NeedsMachineAuth: 3,
  Stopped: 4,
  Starting: 5,
  Running: 6,
};
/** From `Starting` to `Running`. */
const CONNECT_MS = 30;
/** From the question to the sign-in address. */
const ADDRESS_MS = 40;

type Prefs = Record<string, unknown> & { ControlURL: string; Hostname: string; WantRunning: boolean };

interface Served {
  TCP?: Record<string, { HTTP?: boolean; HTTPS?: boolean }>;
  Web?: Record<string, { Handlers: Record<string, { Proxy: string }> }>;
}

const FRESH_PREFS: Prefs = {
  ControlURL: "",
  Hostname: "",
  WantRunning: false,
  LoggedOut: true,
  CorpDNS: true,
  RouteAll: true,
  RunSSH: false,
  ShieldsUp: false,
  AdvertiseRoutes: null,
  Config: { PrivateNodeKey: "privkey:0" },
};

/** Refusal of a call: a status and a text or an object. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly answer: string | Record<string, string>) {
    super(String(answer));
  }
}

/** One node on one state folder. */
export class FakeNode {
  state = "NoState";
  prefs: Prefs = { ...FRESH_PREFS };
  served: Served | null = null;
  authUrl = "";
  /** Texts by code. */
  health: Record<string, string> = {};
  #hasKey = false;
  #isExpired = false;
  #hasNetMap = false;
  readonly #path: string;

  /** @param options.onNotice Gets every message of the watch. @param options.note Takes down what must never happen. */
  constructor(
    readonly options: {
      stateFolder: string;
      switches: () => Switches;
      onNotice(notice: Record<string, unknown>): void;
      note(fault: string): void;
    },
  ) {
    this.#path = `${options.stateFolder}/tailscaled.state`;
    try {
      Object.assign(this, JSON.parse(Deno.readTextFileSync(this.#path)).open);
      const { hasKey, isExpired } = JSON.parse(Deno.readTextFileSync(this.#path));
      this.#hasKey = hasKey;
      this.#isExpired = isExpired;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    this.#settle();
  }

  get fqdn(): string {
    const { domain = "fox-owl.ts.net", nameSuffix = "" } = this.options.switches();
    return `${this.prefs.Hostname}${nameSuffix}.${domain}`;
  }

  get isReachable(): boolean {
    return this.state === "Running" && this.prefs.ShieldsUp === false;
  }

  status(): Record<string, unknown> {
    const { domain = "fox-owl.ts.net", certificate } = this.options.switches();
    const isUp = this.state === "Running";
    return {
      Version: "1.102.5-double",
      BackendState: this.state,
      AuthURL: this.authUrl,
      ...(this.#hasKey ? { HaveNodeKey: true } : {}),
      TailscaleIPs: isUp ? ["100.64.0.1"] : null,
      Self: { HostName: this.prefs.Hostname, DNSName: this.#hasKey ? `${this.fqdn}.` : "", Online: false },
      Health: Object.values(this.health),
      CurrentTailnet: isUp ? { Name: "test", MagicDNSSuffix: domain, MagicDNSEnabled: true } : null,
      CertDomains: isUp && certificate !== undefined ? [this.fqdn] : null,
      Peer: null,
      User: null,
    };
  }

  /** The initial notices of a new watcher. */
  firstNotice(): Record<string, unknown> {
    const address = this.state === "NeedsLogin" && this.authUrl !== "" ? { BrowseToURL: this.authUrl } : {};
    return {
      Version: "1.102.5-double",
      SessionID: "s1",
      State: NUMBERS[this.state],
      ...address,
      ...this.#healthNotice(),
    };
  }

  start(prefs: Prefs | undefined): void {
    if (prefs !== undefined) this.prefs = { ...prefs, Config: FRESH_PREFS.Config };
    this.#settle();
  }

  patch(masked: Record<string, unknown>): void {
    for (const [name, isSet] of Object.entries(masked)) {
      const field = name.slice(0, -3);
      if (!name.endsWith("Set") || isSet !== true || !(field in FRESH_PREFS)) continue;
      if (typeof masked[field] !== typeof FRESH_PREFS[field]) throw new Refusal(400, { Error: `bad type of ${field}` });
      if (field === "WantRunning" && masked[field] === true && this.prefs.ControlURL === "") {
        this.options.note("asked the public control server");
      }
      this.prefs = { ...this.prefs, [field]: masked[field] };
    }
    if (masked.HostnameSet === true) {
      setTimeout(() => this.#tell({ SelfChange: { Name: `${this.fqdn}.` } }), CONNECT_MS);
    }
    this.#save();
    this.#look();
  }

  login(): void {
    if (this.prefs.ControlURL === "") this.options.note("asked the public control server");
    if (this.state === "Running" || this.state === "Starting") this.options.note("forced a new sign-in while running");
    if (this.options.switches().isControlDown) {
      this.health = { "login-state": "You are logged out. The last login error was: connection refused" };
      return this.#tell(this.#healthNotice());
    }
    setTimeout(() => {
      this.authUrl = `${this.prefs.ControlURL}/register/hskey-authreq-secret`;
      this.#tell({ BrowseToURL: this.authUrl });
    }, ADDRESS_MS);
  }

  /** Actions of the user in the browser. */
  approve(): void {
    if (this.authUrl === "") throw new Error("nobody asked to be signed in");
    this.#hasKey = true;
    this.#isExpired = false;
    this.authUrl = "";
    this.#tell({ LoginFinished: {} });
    if (this.options.switches().needsApproval) return this.#enter("NeedsMachineAuth");
    this.admit();
  }

  /** Actions of the tailnet's admin. */
  admit(): void {
    this.prefs = { ...this.prefs, WantRunning: true, LoggedOut: false };
    this.#settle();
  }

  expire(): void {
    this.#isExpired = true;
    this.#tell({ SelfChange: { Expired: true } });
    this.#enter("NeedsLogin");
    this.#tell({ LoginFinished: {} });
  }

  /** A refusal of the control server that is meant for people. */
  complain(text: string): void {
    this.#tell({ ErrMessage: text });
  }

  async logout(): Promise<void> {
    const { logout } = this.options.switches();
    if (logout === "hangs") await new Promise(() => {});
    this.#enter("Stopped");
    if (logout === "fails") throw new Refusal(500, "dial tcp: connection refused");
    this.#hasKey = false;
    this.prefs = { ...FRESH_PREFS };
    this.served = null;
    this.#enter("NeedsLogin");
  }

  serve(text: string, isFromTest = false): void {
    const config: Served = JSON.parse(text);
    if (!isFromTest) {
      if (this.options.switches().refusesServing) throw new Refusal(500, { error: "not now" });
      if (!this.#hasNetMap) throw new Refusal(500, { error: "netMap is nil" });
      if (text.includes("unix:")) throw new Refusal(401, { error: "must be root" });
      if (text.includes("AllowFunnel")) this.options.note("opened a port to the internet");
      for (const [port, { HTTPS }] of Object.entries(this.served?.TCP ?? {})) {
        const wanted = config.TCP?.[port];
        if (wanted === undefined || wanted.HTTPS === HTTPS) continue;
        throw new Refusal(500, { error: `want to serve another type, but port ${port} is already serving` });
      }
    }
    this.served = config;
    this.#save();
    this.#look();
  }

  /** Returns the target of a request to a port; `undefined` if there is none. */
  targetOf(host: string, port: 80 | 443): string | undefined {
    if (this.served?.TCP?.[port] === undefined) return undefined;
    const name = host.replace(/:\d+$/, "");
    const full = port === 80 && name === this.fqdn.split(".", 1)[0] ? this.fqdn : name;
    return this.served.Web?.[`${full}:${port}`]?.Handlers["/"]?.Proxy;
  }

  #settle(): void {
    if (!this.#hasKey || this.#isExpired) return this.#enter("NeedsLogin");
    if (!this.prefs.WantRunning) return this.#enter("Stopped");
    if (this.state === "Running") return this.#save();
    this.#enter("Starting");
    setTimeout(() => {
      if (this.state !== "Starting") return;
      this.#hasNetMap = true;
      this.#enter("Running");
    }, CONNECT_MS);
  }

  #enter(state: string): void {
    this.state = state;
    this.#save();
    this.#look();
    this.#tell({ State: NUMBERS[state] });
  }

  /** The raw way in, which has to be closed at every moment, not just in the end. */
  #look(): void {
    if (this.isReachable && this.served?.TCP?.["8787"] === undefined) this.options.note("was open to the raw way in");
  }

  #healthNotice(): Record<string, unknown> {
    const entries = Object.entries(this.health).map(([code, Text]) => [code, { WarnableCode: code, Text }]);
    return { Health: { Warnings: Object.fromEntries(entries) } };
  }

  #tell(notice: Record<string, unknown>): void {
    this.options.onNotice(notice);
  }

  #save(): void {
    const open = { prefs: this.prefs, served: this.served };
    const text = JSON.stringify({ hasKey: this.#hasKey, isExpired: this.#isExpired, open });
    Deno.writeTextFileSync(this.#path, text, { mode: 0o600 });
  }
}
