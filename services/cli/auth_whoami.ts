/** `parlor auth whoami`: which server the token is for, and whether it still counts there. */
import { AppError } from "../errors.ts";
import { parseOptions } from "./options.ts";
import { type CliOutside, readPem } from "./cli_environment.ts";
import { openServerClient } from "./server_client.ts";

/** @throws {AppError} `unauthenticated` when nobody is signed in, or the server does not know the token any more. */
export async function authWhoami(args: readonly string[], outside: CliOutside): Promise<void> {
  parseOptions(args, {});
  const account = await outside.account.load();
  if (account === undefined) throw new AppError("unauthenticated", "Not signed in. Run parlor auth login");
  const { base_url, token, token_id, ca_cert } = account;
  const server = openServerClient(base_url, ca_cert === undefined ? undefined : await readPem(ca_cert));
  try {
    const headers = { Authorization: `Bearer ${token}` };
    const { json: status } = await server.send("GET", "/api/auth/status", { headers });
    if (status.method !== "token") {
      throw new AppError("unauthenticated", `${base_url} no longer accepts the token. Run parlor auth login`);
    }
    const { json } = await server.send("GET", "/api/auth/tokens", { headers });
    const tokens = json.items as { id: string; label: string; created_at: string }[];
    const own = tokens.find(({ id }) => id === token_id);
    outside.print(`${base_url} as "${own?.label ?? "a token"}"${own ? `, since ${own.created_at.slice(0, 10)}` : ""}`);
  } finally {
    server.close();
  }
}
