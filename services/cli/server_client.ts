/**
 * HTTP client of the command line, with error messages for the terminal, and `parlor auth login`, which gets its token.
 */
import { CertificateMismatchError, type LocalServer, openLocalClient } from "../diagnostics/local_server.ts";
import { AppError } from "../errors.ts";
import { explainConnectError } from "../http/upstream_error.ts";
import { createHash } from "node:crypto";
import { delay } from "../async/delay.ts";
import { randomToken } from "../crypto/random.ts";
import { type CliContext, parseOptions, readPem } from "./cli_environment.ts";

/** A server. Redirects aren't followed: a token is sent only to its own server. */
export interface ServerClient {
  readonly baseUrl: string;
  /**
   * Sends a request; a body goes as JSON.
   *
   * @throws {AppError} `upstream_error` if the server can't be reached or isn't Parlor; for a refusal the server's own
   *   code and message.
   */
  send(method: string, path: string, options?: RequestOptions): Promise<ServerReply>;
  close(): void;
}

/** What a request carries. */
interface RequestOptions {
  body?: unknown;
  headers?: Record<string, string>;
}

/** A successful response. */
interface ServerReply {
  json: Record<string, unknown>;
  headers: Headers;
}

const RESPONSE_TIMEOUT_MS = 30_000;

/** An error response of the server, with its status. */
export class ServerRefusal extends AppError {
  constructor(readonly status: number, code: AppError["code"], message: string) {
    super(code, message);
  }
}

/**
 * @param baseUrl As typed. A trailing slash is removed.
 * @param options.caCert PEM text of a certificate authority to trust in addition to the public ones.
 * @param options.connectTo Address to connect to instead of the URL's host.
 * @throws {AppError} `invalid_request` if it isn't an `http` or `https` URL.
 */
export function openServerClient(
  baseUrl: string,
  options: { caCert?: string; connectTo?: LocalServer["connectTo"] } = {},
): ServerClient {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new AppError(
      "invalid_request",
      `Bad value for --base-url: expected an address such as https://chat.example.org`,
    );
  }
  const base = url.href.replace(/\/$/, "");
  const local = openLocalClient(options);

  return {
    baseUrl: base,
    close: () => local[Symbol.dispose](),
    async send(method, path, { body, headers = {} } = {}) {
      let response: Response;
      let text: string;
      try {
        response = await local.fetch(base + path, {
          method,
          headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
          body: body === undefined ? undefined : JSON.stringify(body),
          signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
        });
        text = await response.text();
      } catch (cause) {
        throw new AppError("upstream_error", `Can't reach Parlor at "${base}": ${parseReason(cause)}`, { cause });
      }
      const json = parseObject(text);
      if (response.ok && (json !== undefined || text === "")) return { json: json ?? {}, headers: response.headers };
      const error = json?.error as { code?: AppError["code"]; message?: string } | undefined;
      if (typeof error?.code === "string") throw new ServerRefusal(response.status, error.code, error.message ?? "");
      throw new AppError("upstream_error", `"${base}" isn't a Parlor server: status ${response.status}`);
    },
  };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return { items: value };
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : undefined;
  } catch {
    return undefined;
  }
}

function parseReason(cause: unknown): string {
  if (cause instanceof DOMException && cause.name === "TimeoutError") {
    return `no response after ${RESPONSE_TIMEOUT_MS / 1000} s`;
  }
  if (cause instanceof CertificateMismatchError) return cause.message;
  const { kind, reason } = explainConnectError(cause);
  if (kind === "refused") return `${reason}, is Parlor running?`;
  return kind === "certificate" ? `${reason}. Use --ca-cert FILE for a private certificate authority` : reason;
}

/** Time for finding the phone and the fingerprint. */
const DEFAULT_TIMEOUT_S = 300;

/**
 * Signs in on the server's page in a browser, and saves the token that it gives.
 *
 * @param defaultUrl Where to sign in without `--base-url` and without an earlier sign-in.
 * @throws {AppError} with a message for the terminal when denied, timed out, offline, or where no passkey can be.
 */
export async function runLogin(args: readonly string[], context: CliContext, defaultUrl: () => string): Promise<void> {
  const options = parseOptions(args, {
    "base-url": true,
    "ca-cert": true,
    "label": true,
    "timeout": true,
    "no-browser": false,
  });
  const timeoutS = Number(options.get("timeout") ?? DEFAULT_TIMEOUT_S);
  if (!(timeoutS > 0 && timeoutS <= 3600)) {
    throw new AppError("invalid_request", "Bad value for --timeout: expected seconds, at most 3600");
  }
  const before = await context.account.load().catch(() => undefined);
  const baseUrl = options.get("base-url") ?? before?.base_url ?? defaultUrl();
  const caCert = options.get("ca-cert") ?? (before?.base_url === baseUrl ? before.ca_cert : undefined);
  const server = openServerClient(baseUrl, { caCert: caCert === undefined ? undefined : await readPem(caCert) });
  try {
    await assertPasskeysWork(server);
    const verifier = randomToken(32);
    const code = await askInBrowser(server, verifier, context, {
      timeoutS,
      opensBrowser: !options.has("no-browser"),
    });
    const label = options.get("label") ?? `CLI on ${Deno.hostname()}`;
    const { id, token } = await tradeForToken(server, code, verifier, label);
    await context.account.save({ token, base_url: server.baseUrl, token_id: id, ca_cert: caCert });
    // The token of an earlier sign-in would stay unused. If it can't be revoked now, the owner finds it in the settings.
    if (before?.base_url === server.baseUrl) {
      const headers = { Authorization: `Bearer ${before.token}` };
      await server.send("DELETE", `/api/auth/tokens/${before.token_id}`, { headers }).catch(() => {});
    }
    context.print(`Signed in to ${server.baseUrl}; the token "${label}" is in ${context.account.tokenPath}`);
  } finally {
    server.close();
  }
}

async function assertPasskeysWork(server: ServerClient): Promise<void> {
  const { json } = await server.send("GET", "/api/auth/status");
  if (json.passkeys_supported === true) return;
  throw new AppError(
    "not_available",
    `Browsers don't support passkeys at "${server.baseUrl}": they require HTTPS or localhost, and a name instead of an IP address`,
  );
}

/** Sends the person to the page and waits for its code: by the listener, or pasted where the browser is elsewhere. */
async function askInBrowser(
  server: ServerClient,
  verifier: string,
  context: CliContext,
  { timeoutS, opensBrowser }: { timeoutS: number; opensBrowser: boolean },
): Promise<string> {
  const state = randomToken(16);
  const listener = openCallbackListener(state);
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const parameters = new URLSearchParams({
      port: String(listener.port),
      state,
      challenge: createHash("sha256").update(verifier).digest("base64url"),
      name: Deno.hostname(),
    });
    // In the fragment, which browsers don't send, so no server logs it.
    const url = `${server.baseUrl}/cli#${parameters}`;
    const isOpened = opensBrowser && await openBrowser(url, context.environment);
    context.printNotice(`${isOpened ? "Sign in in the browser, or open" : "Open"} this address:\n\n  ${url}\n`);
    context.printNotice("If the browser is on another machine, paste the code it shows here and press Enter.");
    const outcome = await Promise.race([
      listener.outcome,
      readPastedCode(context),
      new Promise<undefined>((resolve) => timer = setTimeout(() => resolve(undefined), timeoutS * 1000)),
    ]);
    if (outcome === undefined) {
      throw new AppError("upstream_timeout", `No sign-in within ${timeoutS} s. Run parlor auth login again`);
    }
    if ("denied" in outcome) throw new AppError("unauthenticated", "The request was denied in the browser");
    return outcome.code;
  } finally {
    clearTimeout(timer);
    await listener.close();
  }
}

async function readPastedCode(context: CliContext): Promise<{ code: string }> {
  for (;;) {
    const code = await context.readLine();
    if (/^[A-Za-z0-9_-]{22}$/.test(code)) return { code };
    if (code !== "") context.printNotice("This isn't a code from the page. Copy the whole code");
  }
}

/** Opens a session with the ceremony, creates a token with it, and ends the session. */
async function tradeForToken(
  server: ServerClient,
  code: string,
  verifier: string,
  label: string,
): Promise<{ id: string; token: string }> {
  const { headers } = await server.send("POST", "/api/auth/cli/redeem", { body: { code, verifier } });
  const session = { Cookie: headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0]).join("; ") };
  const { json } = await server.send("POST", "/api/auth/token", { body: { label }, headers: session });
  await server.send("POST", "/api/auth/logout", { headers: session });
  return { id: String(json.id), token: String(json.token) };
}

// Opens an address in the browser.

const OPENERS: Partial<Record<typeof Deno.build.os, string[]>> = {
  darwin: ["open"],
  windows: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Opens the browser, except over SSH, where it would be on the wrong machine.
 *
 * @param environment `BROWSER` overrides the program.
 * @returns Whether a program was started.
 */
async function openBrowser(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const isRemote = environment.SSH_CONNECTION !== undefined || environment.SSH_TTY !== undefined;
  const [command, ...args] = environment.BROWSER ? [environment.BROWSER] : OPENERS[Deno.build.os] ?? ["xdg-open"];
  if (command === undefined || (isRemote && !environment.BROWSER)) return false;
  // Doesn't prompt for permission to run programs: the address is printed in the terminal anyway.
  const { state } = await Deno.permissions.query({ name: "run", command });
  if (state !== "granted") return false;
  try {
    const child = new Deno.Command(command, { args: [...args, url], stdin: "null", stdout: "null", stderr: "null" });
    child.spawn().unref();
    return true;
  } catch {
    return false;
  }
}

// Local listener that receives the sign-in code from the browser.

const CLOSE_WITHIN_MS = 1_000;

/** Result of the sign-in in the browser. */
type CallbackOutcome = { code: string } | { denied: true };

/** An open listener. */
interface CallbackListener {
  readonly port: number;
  readonly outcome: Promise<CallbackOutcome>;
  close(): Promise<void>;
}

/**
 * Listens on a free port of 127.0.0.1.
 *
 * @param state Random value. Requests without it come from other pages and are refused.
 */
function openCallbackListener(state: string): CallbackListener {
  const { promise, resolve } = Promise.withResolvers<CallbackOutcome>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const url = new URL(request.url);
    // Checks the host, too: otherwise a page could reach the listener by its own host name (DNS rebinding).
    const isOurs = url.hostname === "127.0.0.1" && url.pathname === "/callback" &&
      url.searchParams.get("state") === state;
    if (!isOurs) return createPage(404, "Nothing here", "This address is for signing in the command line.");
    const code = url.searchParams.get("code");
    if (code !== null) {
      resolve({ code });
      return createPage(200, "Return to the terminal", "The command line is signed in. You can close this tab.");
    }
    resolve({ denied: true });
    return createPage(200, "Not signed in", "The request was denied. You can close this tab.");
  });
  return {
    port: server.addr.port,
    outcome: promise,
    // Sends the last page, but doesn't wait for idle connections that browsers open in advance.
    close: () => Promise.race([server.shutdown(), delay(CLOSE_WITHIN_MS)]),
  };
}

function createPage(status: number, title: string, text: string): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} · Parlor</title>` +
    `<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">` +
    `<main><h1>${title}</h1><p>${text}</p></main></html>`;
  return new Response(html, {
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
      "Connection": "close",
    },
  });
}
