/**
 * Client of tailscaled's LocalAPI: HTTP over a Unix socket. The API isn't stable, so every field is optional and unknown
 * fields are ignored.
 *
 * @see docs/protocols/tailscale.md, "LocalAPI"
 */
import { AppError } from "../errors.ts";
import { asObject, asString } from "../json/type_guards.ts";
import { delay } from "../async/delay.ts";
import type { NodeTimes } from "./node_state.ts";

/** The only accepted Host. Requests with an Origin are rejected. */
const BASE = "http://local-tailscaled.sock/localapi/v0/";
/** Initial state and initial health. Without them there is no first message. */
const WATCH_MASK = 2 + 128;
const MAX_TEXT = 300;

/** The parts of the node's status that Parlor uses. */
export interface NodeFacts {
  /** `"NeedsLogin"`, `"Running"` and so on. */
  state: string;
  authUrl: string;
  /** Without a trailing dot. */
  fqdn: string | undefined;
  /** Names for which the tailnet issues certificates. */
  certDomains: readonly string[];
  /** DNS suffix of the tailnet. */
  suffix: string | undefined;
  /** IP addresses in the tailnet. */
  addresses: readonly string[];
}

/** All settings of the node. A start replaces all of them. */
export type NodePrefs = Record<string, unknown>;

/** Client of one node. Methods throw `AppError` `upstream_error` for error responses, and the errors of `fetch`. */
export class LocalApi {
  readonly #client: Deno.HttpClient;
  readonly #responseTimeoutMs: number;

  constructor(socketPath: string, responseTimeoutMs: number) {
    this.#client = Deno.createHttpClient({ proxy: { transport: "unix", path: socketPath } });
    this.#responseTimeoutMs = responseTimeoutMs;
  }

  async getStatus(signal: AbortSignal): Promise<NodeFacts> {
    return parseFacts(JSON.parse(await this.#ask("GET", "status?peers=false", { signal })));
  }

  async getPrefs(signal: AbortSignal): Promise<NodePrefs> {
    return JSON.parse(await this.#ask("GET", "prefs", { signal }));
  }

  /** Changes some settings. Each needs its `…Set` field. */
  async patchPrefs(changes: NodePrefs, signal: AbortSignal): Promise<void> {
    const masked = Object.entries(changes).flatMap(([name, value]) => [[name, value], [`${name}Set`, true]]);
    await this.#ask("PATCH", "prefs", { signal, body: JSON.stringify(Object.fromEntries(masked)) });
  }

  /** Starts the node with settings that replace all others. Does not sign in. */
  async start(prefs: NodePrefs, signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "start", { signal, body: JSON.stringify({ UpdatePrefs: prefs }) });
  }

  /** Requests a sign-in URL, which appears in the watch and in the status. */
  async startLogin(signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "login-interactive", { signal });
  }

  async logOut(signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "logout", { signal });
  }

  /** Replaces the serve config. @param config JSON */
  async setServeConfig(config: string, signal: AbortSignal): Promise<void> {
    await this.#ask("POST", "serve-config", { signal, body: config });
  }

  /** Requests a certificate. */
  async fetchCertificate(fqdn: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    await this.#ask("GET", `cert/${encodeURIComponent(fqdn)}?type=cert`, { signal, timeoutMs });
  }

  /** Yields the current state, then changes, until the node ends the stream. */
  async *watch(signal: AbortSignal): AsyncGenerator<Notice> {
    const answer = await fetch(`${BASE}watch-ipn-bus?mask=${WATCH_MASK}`, { client: this.#client, signal });
    if (!answer.ok || answer.body === null) throw createRefusal("to be watched", answer.status, await answer.text());
    yield* readNotices(answer.body);
  }

  close(): void {
    this.#client.close();
  }

  async #ask(
    method: string,
    path: string,
    { signal, body, timeoutMs = this.#responseTimeoutMs }: { signal: AbortSignal; body?: string; timeoutMs?: number },
  ): Promise<string> {
    const limit = new AbortController();
    const timer = setTimeout(
      () => limit.abort(new AppError("upstream_timeout", "The node doesn't respond")),
      timeoutMs,
    );
    try {
      const answer = await fetch(BASE + path, {
        client: this.#client,
        method,
        body,
        signal: AbortSignal.any([signal, limit.signal]),
      });
      const text = await answer.text();
      if (!answer.ok) throw createRefusal(path.split(/[/?]/, 1)[0]!, answer.status, text);
      return text;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Creates the error for an error response: plain text, `{"Error": …}` or `{"error": …}`. */
function createRefusal(what: string, status: number, text: string): AppError {
  let message = text;
  try {
    const parsed = JSON.parse(text);
    message = String(parsed?.Error ?? parsed?.error ?? text);
  } catch {
    // Plain text
  }
  return new AppError("upstream_error", `The node rejects ${what} (${status}): ${removeSecrets(message)}`);
}

/** Removes keys and URL paths from text from the node, and limits its length. */
export function removeSecrets(text: string): string {
  return text.trim().slice(0, 2_000)
    .replace(/\b(?:ts|hs)key-[\w-]+/g, "(key)")
    .replace(/(https?:\/\/[^\s/"'?#]+)[^\s"']*/g, "$1")
    .slice(0, MAX_TEXT);
}

function parseFacts(status: unknown): NodeFacts {
  const all = asObject(status);
  const dnsName = readErrorText(asObject(all.Self).DNSName).toLowerCase().replace(/\.$/, "");
  const suffix = readErrorText(asObject(all.CurrentTailnet).MagicDNSSuffix).toLowerCase().replace(/^\.|\.$/g, "");
  const addresses = Array.isArray(all.TailscaleIPs) ? all.TailscaleIPs : [];
  const domains = Array.isArray(all.CertDomains) ? all.CertDomains : [];
  return {
    state: readErrorText(all.BackendState),
    authUrl: readErrorText(all.AuthURL),
    fqdn: dnsName === "" ? undefined : dnsName,
    certDomains: domains.map((name) => readErrorText(name).toLowerCase()),
    suffix: suffix === "" ? undefined : suffix,
    addresses: addresses.map(readErrorText).filter((address) => address !== ""),
  };
}

function readErrorText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** One message. `undefined` fields haven't changed. */
interface Notice {
  /** Requested sign-in URL. */
  browseUrl?: string;
  /** Message for users. */
  errorMessage?: string;
  /** All current health warnings, by code. */
  health?: ReadonlyMap<string, string>;
}

/** Maximum length of a line; real ones are far shorter. */
const MAX_LINE = 4 * 1024 * 1024;

/** Reads messages until the stream ends. @throws {Error} for a line without an end; errors of the stream. */
export async function* readNotices(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Notice> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    if (rest.length > MAX_LINE) throw new Error("The node sent a message without an end");
    for (const line of lines) if (line.trim() !== "") yield parseNotice(line);
  }
}

/** Parses a message. A line that isn't JSON still means that something changed. */
function parseNotice(line: string): Notice {
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(line) ?? {};
  } catch {
    return {};
  }
  return {
    browseUrl: asString(found.BrowseToURL),
    errorMessage: asString(found.ErrMessage),
    health: parseHealth(found.Health),
  };
}

function parseHealth(health: unknown): Map<string, string> | undefined {
  if (typeof health !== "object" || health === null) return undefined;
  const warnings = (health as { Warnings?: unknown }).Warnings;
  const entries = typeof warnings === "object" && warnings !== null ? Object.entries(warnings) : [];
  return new Map(entries.map(([code, warning]) => [code, asString(warning?.Text) ?? ""]));
}

// Follows the node's messages: stores the last one of each kind and wakes the controller.

/** The node's message to a slow consumer. It isn't shown to the owner. */
const CLIENT_TOO_SLOW = /fell behind|too slow/i;

/** Follows the messages of one node. */
export class Watch {
  readonly #api: LocalApi;
  readonly #times: NodeTimes;
  #ring: () => void = () => {};
  #hasRung = false;
  #errorMessage = "";
  #browseUrl = "";
  #health: ReadonlyMap<string, string> = new Map();

  constructor(api: LocalApi, times: NodeTimes) {
    this.#api = api;
    this.#times = times;
  }

  /** Last error message. */
  get errorMessage(): string {
    return this.#errorMessage;
  }

  /** Last sign-in URL. */
  get browseUrl(): string {
    return this.#browseUrl;
  }

  /** Health warnings by code. */
  get health(): ReadonlyMap<string, string> {
    return this.#health;
  }

  /** Opens the stream and follows it until the signal aborts. @throws {AppError} if it can't be opened */
  async begin(signal: AbortSignal): Promise<void> {
    const begun = Promise.withResolvers<void>();
    const listen = async () => {
      for (;;) {
        try {
          for await (const notice of this.#api.watch(signal)) {
            begun.resolve();
            this.#take(notice);
          }
          begun.reject(new AppError("upstream_error", "The node ended the stream of messages before the first one"));
        } catch (error) {
          if (signal.aborted) return;
          begun.reject(error);
        }
        // Messages may have been lost, so read the status again.
        this.wake();
        await delay(this.#times.pollMs, signal);
      }
    };
    listen().catch((error) => begun.reject(error)); // Ended by the signal
    const limit = setTimeout(() => {
      begun.reject(new AppError("upstream_timeout", "The node sends no messages"));
    }, this.#times.responseTimeoutMs);
    const onAbort = () => begun.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    await begun.promise.finally(() => {
      clearTimeout(limit);
      signal.removeEventListener("abort", onAbort);
    });
  }

  /** Clears the messages about the previous state. */
  forget(): void {
    this.#errorMessage = "";
    this.#browseUrl = "";
  }

  /** Wakes `waitForChange`. */
  wake(): void {
    this.#hasRung = true;
    this.#ring();
  }

  /** Waits for a message or the timeout. @throws The abort reason. */
  async waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasRung) {
      const waiting = new AbortController();
      this.#ring = () => waiting.abort();
      await delay(ms, AbortSignal.any([signal, waiting.signal])).catch(() => {});
      this.#ring = () => {};
    }
    this.#hasRung = false;
    signal.throwIfAborted();
  }

  #take({ browseUrl, errorMessage, health }: Notice): void {
    if (browseUrl) this.#browseUrl = browseUrl;
    if (errorMessage && !CLIENT_TOO_SLOW.test(errorMessage)) this.#errorMessage = removeSecrets(errorMessage);
    if (health !== undefined) {
      this.#health = new Map([...health].map(([code, text]) => [code, removeSecrets(text)]));
    }
    this.wake();
  }
}
