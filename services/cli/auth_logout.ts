/** `parlor auth logout`: revokes the token on its server and forgets it here. */
import { messageOf } from "../errors.ts";
import { parseOptions } from "./options.ts";
import { type CliOutside, readPem } from "./cli_environment.ts";
import { openServerClient, Refusal } from "./server_client.ts";

/** Signs out; where the server cannot be asked, the token is forgotten all the same, and that it still counts is said. */
export async function authLogout(args: readonly string[], outside: CliOutside): Promise<void> {
  parseOptions(args, {});
  const account = await outside.account.load();
  if (account === undefined) {
    await outside.account.forget();
    outside.print("Not signed in");
    return;
  }
  const { base_url, token, token_id, ca_cert } = account;
  try {
    const server = openServerClient(base_url, ca_cert === undefined ? undefined : await readPem(ca_cert));
    try {
      const headers = { Authorization: `Bearer ${token}` };
      await server.send("DELETE", `/api/auth/tokens/${encodeURIComponent(token_id)}`, { headers });
    } finally {
      server.close();
    }
    outside.print(`Signed out of ${base_url}`);
  } catch (error) {
    const isGone = error instanceof Refusal && (error.status === 401 || error.status === 404);
    if (isGone) outside.print(`Signed out of ${base_url}; the token was already revoked`);
    else {
      outside.tell(`parlor: ${messageOf(error)}`);
      outside.print(
        `Signed out on this machine. The token stays valid until you revoke it in the settings of ${base_url}`,
      );
    }
  }
  await outside.account.forget();
}
