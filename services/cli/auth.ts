/**
 * `parlor auth …`: runs its commands. `login` is in server_client.ts. `invite` asks the server that runs on this data folder for a
 * code by which another device may enrol.
 */
import { findLocalServer, type ListenConfig } from "../diagnostics/local_server.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { createOperatorProof } from "../crypto/storage_key.ts";
import { openServerClient, runLogin, type ServerClient, ServerRefusal } from "./server_client.ts";
import { type CliContext, openCliContext, parseOptions, readPem, takeOptions } from "./cli_environment.ts";

/** Text of `parlor auth --help`. */
export const AUTH_HELP =
  `Usage: parlor auth login [--base-url URL] [--label TEXT] [--timeout SECONDS] [--no-browser] [--ca-cert FILE]
       parlor auth logout
       parlor auth whoami
       parlor auth invite [--rp-id NAME] [--base-url URL] [--ca-cert FILE] [options of parlor serve]

  login   sign in with a passkey in the browser, and save a token in ~/.config/app/cli.token
  logout  revoke the token and delete it
  whoami  show the server of the token, and whether the token is valid
  invite  print a code that lets another device add a passkey; run it on the server's machine`;

/**
 * Runs one of them.
 *
 * @param readConfig Reads the server's configuration from the options given.
 * @throws {AppError} with a message for the terminal.
 */
export async function runAuth(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  readConfig: (rest: string[]) => InviteConfig,
): Promise<void> {
  const [command, ...rest] = args;
  const context = openCliContext(environment);
  switch (command) {
    case "login":
      return await runLogin(rest, context, () => findLocalServer(readConfig([])).url);
    case "logout":
      return await runLogout(rest, context);
    case "whoami":
      return await runWhoami(rest, context);
    case "invite":
      return await runInvite(rest, context, readConfig);
    case undefined:
      throw new AppError(
        "invalid_request",
        "Usage: parlor auth login | logout | whoami | invite. See parlor auth --help",
      );
    default:
      throw new AppError("invalid_request", `Unknown command "auth ${command}". See parlor auth --help`);
  }
}

/** Signs out. If the server can't be reached, the token is forgotten here, and a message says that it's still valid. */
async function runLogout(args: readonly string[], context: CliContext): Promise<void> {
  parseOptions(args, {});
  const account = await context.account.load();
  if (account === undefined) {
    await context.account.forget();
    context.print("Not signed in");
    return;
  }
  const { base_url, token, token_id, ca_cert } = account;
  try {
    const server = openServerClient(base_url, { caCert: ca_cert === undefined ? undefined : await readPem(ca_cert) });
    try {
      const headers = { Authorization: `Bearer ${token}` };
      await server.send("DELETE", `/api/auth/tokens/${encodeURIComponent(token_id)}`, { headers });
    } finally {
      server.close();
    }
    context.print(`Signed out of ${base_url}`);
  } catch (error) {
    const isGone = error instanceof ServerRefusal && (error.status === 401 || error.status === 404);
    if (isGone) context.print(`Signed out of ${base_url}; the token was already revoked`);
    else {
      context.printNotice(`parlor: ${getErrorMessage(error)}`);
      context.print(
        `Signed out on this machine. The token stays valid until you revoke it in the settings of ${base_url}`,
      );
    }
  }
  await context.account.forget();
}

/** @throws {AppError} `unauthenticated` without a valid token. */
async function runWhoami(args: readonly string[], context: CliContext): Promise<void> {
  parseOptions(args, {});
  const account = await context.account.load();
  if (account === undefined) throw new AppError("unauthenticated", "Not signed in. Run parlor auth login");
  const { base_url, token, token_id, ca_cert } = account;
  const server = openServerClient(base_url, { caCert: ca_cert === undefined ? undefined : await readPem(ca_cert) });
  try {
    const headers = { Authorization: `Bearer ${token}` };
    const { json: status } = await server.send("GET", "/api/auth/status", { headers });
    if (status.method !== "token") {
      throw new AppError("unauthenticated", `${base_url} no longer accepts the token. Run parlor auth login`);
    }
    const { json } = await server.send("GET", "/api/auth/tokens", { headers });
    const tokens = json.items as { id: string; label: string; created_at: string }[];
    const own = tokens.find(({ id }) => id === token_id);
    context.print(`${base_url} as "${own?.label ?? "a token"}"${own ? `, since ${own.created_at.slice(0, 10)}` : ""}`);
  } finally {
    server.close();
  }
}

/** The configuration values that say where the server is, and where its session key is. */
export interface InviteConfig extends ListenConfig {
  dataDir: string;
}

/**
 * Prints a code.
 *
 * @param readConfig Reads the configuration with the options that are not this command's own.
 * @throws {AppError} with a message for the terminal if no server answers or the data folder belongs to another user.
 */
async function runInvite(
  args: readonly string[],
  context: CliContext,
  readConfig: (rest: string[]) => InviteConfig,
): Promise<void> {
  const { options, rest } = takeOptions(
    args,
    { "base-url": true, "ca-cert": true, "rp-id": true },
    { wordCount: 0, usage: "parlor auth invite" },
  );
  const config = readConfig(rest);
  const { dataDir, tlsCert } = config;
  const { url, connectTo } = findLocalServer(config);

  const caCert = options.get("ca-cert") ?? tlsCert ?? undefined;
  const baseUrl = options.get("base-url");
  const server = openServerClient(baseUrl ?? url, {
    caCert: caCert && await readPem(caCert),
    ...(baseUrl === undefined && { connectTo }),
  });
  try {
    const proof = createOperatorProof(await readSessionKey(dataDir), Date.now());
    const { json } = await askForInvite(server, proof, options.get("rp-id"));
    const minutes = Math.round((Date.parse(String(json.expires_at)) - Date.now()) / 60_000);
    context.print(`Invite: ${json.code}`);
    context.printNotice(
      `Valid for one device and ${minutes} minutes. On the device, open Parlor and choose "I have a code".`,
    );
  } finally {
    server.close();
  }
}

async function askForInvite(server: ServerClient, proof: string, rpId: string | undefined) {
  const ask = (headers: Record<string, string>) =>
    server.send("POST", "/api/auth/invites", {
      body: { rp_id: rpId },
      headers: { Authorization: `Bearer ${proof}`, ...headers },
    });
  try {
    return await ask({});
  } catch (error) {
    // If this machine is a trusted proxy, requests from it must name their client.
    if (error instanceof ServerRefusal && error.code === "host_not_allowed") {
      return await ask({ "X-Forwarded-For": "127.0.0.1" });
    }
    throw error;
  }
}

async function readSessionKey(dataDir: string): Promise<Uint8Array> {
  const path = `${dataDir}/session-key`;
  try {
    return await Deno.readFile(path);
  } catch (cause) {
    throw new AppError(
      "internal",
      `Can't read "${path}", which proves that you own this server: ${getErrorMessage(cause)}. Is --data-dir correct?`,
      { cause },
    );
  }
}
