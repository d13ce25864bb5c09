/**
 * The node's own interface: HTTP over its Unix socket. It is not promised to be stable, so every field may be missing and
 * what is not known is passed over.
 */
import { AppError } from "../errors.ts";
import { type Notice, readNotices } from "./notices.ts";
import { asObject } from "../json/type_guards.ts";

/** Exactly this Host is taken, and no Origin. */
const BASE = "http://local-tailscaled.sock/localapi/v0/";
/** Initial state and initial health: without an initial part no first message comes. */
const WATCH_MASK = 2 + 128;
const MAX_TEXT = 300;

/** What matters of the node's status. */
export interface NodeFacts {
  /** `"NeedsLogin"`, `"Running"` and so on. */
  state: string;
  authUrl: string;
  /** Without the dot at its end; `undefined` before there is one. */
  fqdn: string | undefined;
  /** Names for which certificates are to be had. */
  certDomains: readonly string[];
  /** Domain of the tailnet's machines. */
  suffix: string | undefined;
}

/** The node's settings, whole: a start replaces all of them. */
export type NodePrefs = Record<string, unknown>;

/** A client of one node. Every call throws `AppError` `upstream_error` for a refusal, and what `fetch` throws. */
export class LocalApi {
  readonly #client: Deno.HttpClient;
  readonly #answerMs: number;

  constructor(socketPath: string, answerMs: number) {
    this.#client = Deno.createHttpClient({ proxy: { transport: "unix", path: socketPath } });
    this.#answerMs = answerMs;
  }

  async status(signal: AbortSignal): Promise<NodeFacts> {
    return factsOf(JSON.parse(await this.#ask("GET", "status?peers=false", { signal })));
  }

  async prefs(signal: AbortSignal): Promise<NodePrefs> {
    return JSON.parse(await this.#ask("GET", "prefs", { signal }));
  }

  /** Changes single settings, each beside its `…Set`. */
  async patchPrefs(changes: NodePrefs, signal: AbortSignal): Promise<void> {
    const masked = Object.entries(changes).flatMap(([name, value]) => [[name, value], [`${name}Set`, true]]);
    await this.#ask("PATCH", "prefs", { signal, body: JSON.stringify(Object.fromEntries(masked)) });
  }

  /** Starts it with settings that replace all others; it logs nobody in by itself. */
  async start(prefs: NodePrefs, signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "start", { signal, body: JSON.stringify({ UpdatePrefs: prefs }) });
  }

  /** Asks the control server for a sign-in address; it comes by the watch and in the status. */
  async loginInteractive(signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "login-interactive", { signal });
  }

  async logout(signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "logout", { signal });
  }

  /** Replaces everything that is served. @param config JSON */
  async setServeConfig(config: string, signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "serve-config", { signal, body: config });
  }

  /** Sees to it that a certificate is there. */
  async fetchCertificate(fqdn: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    await this.#ask("GET", `cert/${encodeURIComponent(fqdn)}?type=cert`, { signal, timeoutMs });
  }

  /** Tells what changes, beginning with how things stand. It ends when the node ends it. */
  async *watch(signal: AbortSignal): AsyncGenerator<Notice> {
    const answer = await fetch(`${BASE}watch-ipn-bus?mask=${WATCH_MASK}`, { client: this.#client, signal });
    if (!answer.ok || answer.body === null) throw refusal("to be watched", answer.status, await answer.text());
    yield* readNotices(answer.body);
  }

  close(): void {
    this.#client.close();
  }

  async #ask(
    method: string,
    path: string,
    { signal, body, timeoutMs = this.#answerMs }: { signal: AbortSignal; body?: string; timeoutMs?: number },
  ): Promise<string> {
    const limit = new AbortController();
    const timer = setTimeout(
      () => limit.abort(new AppError("upstream_timeout", "The node does not answer")),
      timeoutMs,
    );
    try {
      const answer = await fetch(BASE + path, {
        ...{ client: this.#client, method, body },
        signal: AbortSignal.any([signal, limit.signal]),
      });
      const text = await answer.text();
      if (!answer.ok) throw refusal(path.split(/[/?]/, 1)[0]!, answer.status, text);
      return text;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Errors come as plain text, as `{"Error": …}` and as `{"error": …}`. */
function refusal(what: string, status: number, text: string): AppError {
  let message = text;
  try {
    const parsed = JSON.parse(text);
    message = String(parsed?.Error ?? parsed?.error ?? text);
  } catch {
    // Plain text it is.
  }
  return new AppError("upstream_error", `The node refuses ${what} (${status}): ${withoutSecrets(message)}`);
}

/** Takes keys and whatever stands behind an address's host out of a text that the node wrote, and bounds it. */
export function withoutSecrets(text: string): string {
  return text.trim().slice(0, 2_000)
    .replace(/\b(?:ts|hs)key-[\w-]+/g, "(key)")
    .replace(/(https?:\/\/[^\s/"'?#]+)[^\s"']*/g, "$1")
    .slice(0, MAX_TEXT);
}

function factsOf(status: unknown): NodeFacts {
  const all = asObject(status);
  const dnsName = textOf(asObject(all.Self).DNSName).toLowerCase().replace(/\.$/, "");
  const suffix = textOf(asObject(all.CurrentTailnet).MagicDNSSuffix).toLowerCase().replace(/^\.|\.$/g, "");
  const domains = Array.isArray(all.CertDomains) ? all.CertDomains : [];
  return {
    state: textOf(all.BackendState),
    authUrl: textOf(all.AuthURL),
    fqdn: dnsName === "" ? undefined : dnsName,
    certDomains: domains.map((name) => textOf(name).toLowerCase()),
    suffix: suffix === "" ? undefined : suffix,
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
