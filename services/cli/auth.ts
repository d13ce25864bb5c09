/** `parlor auth …`: one switch over its commands. */
import { AppError } from "../errors.ts";
import { authInvite, type LocalServer } from "./auth_invite.ts";
import { authLogin } from "./auth_login.ts";
import { authLogout } from "./auth_logout.ts";
import { authWhoami } from "./auth_whoami.ts";
import { openOutside } from "./cli_environment.ts";

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
 * @param local Reads the server's configuration from the options given.
 * @throws {AppError} with a message for the terminal.
 */
export async function runAuth(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  local: (rest: string[]) => LocalServer,
): Promise<void> {
  const [command, ...rest] = args;
  const outside = openOutside(environment);
  switch (command) {
    case "login":
      return await authLogin(rest, outside, () => local([]).url);
    case "logout":
      return await authLogout(rest, outside);
    case "whoami":
      return await authWhoami(rest, outside);
    case "invite":
      return await authInvite(rest, outside, local);
    case undefined:
      throw new AppError(
        "invalid_request",
        "Usage: parlor auth login | logout | whoami | invite. See parlor auth --help",
      );
    default:
      throw new AppError("invalid_request", `Unknown command "auth ${command}". See parlor auth --help`);
  }
}
