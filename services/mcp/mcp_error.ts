/** Errors of tool servers. */
import { AppError } from "../errors.ts";

/** What a 401 or 403 of a server said about signing in. */
export interface SignInChallenge {
  /** Where the server describes its authorization server (RFC 9728). */
  resourceMetadataUrl?: URL;
  /** Scopes it asks for, separated by spaces. */
  scope?: string;
}

/** The server wants the owner to sign in. */
export class SignInNeededError extends AppError {
  readonly challenge: SignInChallenge;

  constructor(serverName: string, challenge: SignInChallenge) {
    super("upstream_error", `The tool server "${serverName}" needs you to sign in. Settings → Tools has the button`);
    this.name = "SignInNeededError";
    this.challenge = challenge;
  }
}

/** The code of the JSON-RPC errors that a transport makes itself; `failure` of the transport has the reason. */
export const TRANSPORT_FAILURE = -32_099;

/** As `TRANSPORT_FAILURE`: the response isn't a JSON-RPC message. */
export const INVALID_RESPONSE = -32_098;

/** Replaces secrets with `[secret]`. Values shorter than four characters are no secrets, and would garble the text. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  for (const secret of secrets) {
    if (secret.length < 4) continue;
    for (const form of new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])) {
      masked = masked.replaceAll(form, "[secret]");
    }
  }
  return masked;
}

/** Formats a number of bytes: `"8 MiB"`. */
export function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024 * 10) / 10} MiB`;
}
