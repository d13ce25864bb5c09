/** `parlor auth invite`: a code by which another device may enrol, asked of the server that runs on this data folder. */
import { operatorProof } from "../crypto/operator_proof.ts";
import { AppError, messageOf } from "../errors.ts";
import { parseOptions } from "./options.ts";
import { type CliOutside, readPem } from "./cli_environment.ts";
import { openServerClient, Refusal, type ServerClient } from "./server_client.ts";

/** What of the configuration tells where the server is, and that we may ask it. */
export interface LocalServer {
  dataDir: string;
  /** `"http://localhost:8787"` */
  url: string;
  /** Its own certificate may be one that only it vouches for. */
  tlsCert: string | null;
}

/**
 * Prints a code.
 *
 * @param local Reads the configuration with the options that are not this command's own.
 * @throws {AppError} with a message for the terminal when no server answers, or the data folder is somebody else's.
 */
export async function authInvite(
  args: readonly string[],
  outside: CliOutside,
  local: (rest: string[]) => LocalServer,
): Promise<void> {
  const own = ["--base-url", "--ca-cert", "--rp-id"];
  const isOwn = (arg: string | undefined) => own.some((name) => arg === name || arg?.startsWith(`${name}=`));
  const mine = args.filter((arg, i) => isOwn(arg) || own.includes(args[i - 1] ?? ""));
  const options = parseOptions(mine, { "base-url": true, "ca-cert": true, "rp-id": true });
  const { dataDir, url, tlsCert } = local(args.filter((arg) => !mine.includes(arg)));

  const caCert = options.get("ca-cert") ?? tlsCert ?? undefined;
  const server = openServerClient(options.get("base-url") ?? url, caCert && await readPem(caCert));
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
    // Where this machine is a trusted proxy, whoever comes from it has to say for whom.
    if (error instanceof Refusal && error.code === "host_not_allowed") {
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
