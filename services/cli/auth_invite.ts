/** `parlor auth invite`: a code by which another device may enrol, asked of the server that runs on this data folder. */
import { operatorProof } from "../crypto/operator_proof.ts";
import { findLocalServer, type ListenConfig } from "../diagnostics/local_server.ts";
import { AppError, messageOf } from "../errors.ts";
import { type CliOutside, readPem } from "./cli_environment.ts";
import { takeOptions } from "./data_commands.ts";
import { openServerClient, type ServerClient, ServerRefusal } from "./server_client.ts";

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
export async function authInvite(
  args: readonly string[],
  outside: CliOutside,
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
    const proof = operatorProof(await readSessionKey(dataDir), Date.now());
    const { json } = await askForInvite(server, proof, options.get("rp-id"));
    const minutes = Math.round((Date.parse(String(json.expires_at)) - Date.now()) / 60_000);
    outside.print(`Invite: ${json.code}`);
    outside.tell(`Valid for one device and ${minutes} minutes. On the device, open Parlor and choose "I have a code".`);
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
      `Can't read "${path}", which proves that you own this server: ${messageOf(cause)}. Is --data-dir correct?`,
      { cause },
    );
  }
}
