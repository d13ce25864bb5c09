/** `parlor auth login`: signs in on the server's page in a browser and stores a token for the command line. */
import { createHash } from "node:crypto";
import { randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { type CliOutside, parseOptions, readPem } from "./cli_environment.ts";
import { openServerClient, type ServerClient } from "./server_client.ts";

/** Time for finding the phone and the fingerprint. */
const DEFAULT_TIMEOUT_S = 300;

/**
 * Signs in and saves the token.
 *
 * @param defaultUrl Where to sign in without `--base-url` and without an earlier sign-in.
 * @throws {AppError} with a message for the terminal when denied, timed out, offline, or where no passkey can be.
 */
export async function authLogin(args: readonly string[], outside: CliOutside, defaultUrl: () => string): Promise<void> {
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
  const before = await outside.account.load().catch(() => undefined);
  const baseUrl = options.get("base-url") ?? before?.base_url ?? defaultUrl();
  const caCert = options.get("ca-cert") ?? (before?.base_url === baseUrl ? before.ca_cert : undefined);
  const server = openServerClient(baseUrl, { caCert: caCert === undefined ? undefined : await readPem(caCert) });
  try {
    await assertPasskeysWork(server);
    const verifier = randomToken(32);
    const code = await askInBrowser(server, verifier, outside, {
      timeoutS,
      opensBrowser: !options.has("no-browser"),
    });
    const label = options.get("label") ?? `CLI on ${Deno.hostname()}`;
    const { id, token } = await tradeForToken(server, code, verifier, label);
    await outside.account.save({ token, base_url: server.baseUrl, token_id: id, ca_cert: caCert });
    // The token of an earlier sign-in would stay unused. If it can't be revoked now, the owner finds it in the settings.
    if (before?.base_url === server.baseUrl) {
      const headers = { Authorization: `Bearer ${before.token}` };
      await server.send("DELETE", `/api/auth/tokens/${before.token_id}`, { headers }).catch(() => {});
    }
    outside.print(`Signed in to ${server.baseUrl}; the token "${label}" is in ${outside.account.tokenPath}`);
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
  outside: CliOutside,
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
    // Behind "#", so that it stands in no server's log.
    const url = `${server.baseUrl}/cli#${parameters}`;
    const isOpened = opensBrowser && await openBrowser(url, outside.environment);
    outside.tell(`${isOpened ? "Sign in in the browser, or open" : "Open"} this address:\n\n  ${url}\n`);
    outside.tell("If the browser is on another machine, paste the code it shows here and press Enter.");
    const outcome = await Promise.race([
      listener.outcome,
      pastedCode(outside),
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

async function pastedCode(outside: CliOutside): Promise<{ code: string }> {
  for (;;) {
    const code = await outside.readLine();
    if (/^[A-Za-z0-9_-]{22}$/.test(code)) return { code };
    if (code !== "") outside.tell("This isn't a code from the page. Copy the whole code");
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

/** Opens an address in the browser. */

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

/** Local listener that receives the sign-in code from the browser. */

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
    if (!isOurs) return page(404, "Nothing here", "This address is for signing in the command line.");
    const code = url.searchParams.get("code");
    if (code !== null) {
      resolve({ code });
      return page(200, "Return to the terminal", "The command line is signed in. You can close this tab.");
    }
    resolve({ denied: true });
    return page(200, "Not signed in", "The request was denied. You can close this tab.");
  });
  return {
    port: server.addr.port,
    outcome: promise,
    // Sends the last page, but doesn't wait for idle connections that browsers open in advance.
    close: () =>
      Promise.race([server.shutdown(), new Promise<void>((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS))]),
  };
}

function page(status: number, title: string, text: string): Response {
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
