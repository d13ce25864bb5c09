/** `parlor auth login`: the ceremony at the server's page in a browser, a token for this command line. */
import { createHash } from "node:crypto";
import { randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { openBrowser } from "./browser.ts";
import { openCallbackListener } from "./callback_listener.ts";
import { parseOptions } from "./options.ts";
import { type CliOutside, readPem } from "./cli_environment.ts";
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
  const server = openServerClient(baseUrl, caCert === undefined ? undefined : await readPem(caCert));
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
    // The token of an earlier sign-in would lie about unused; where it cannot be revoked now, it stands in the settings.
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
