/** Errors of tool servers. */
import { AppError } from "../errors.ts";
import type { JSONRPCErrorResponse, RequestId } from "./sdk_types.ts";

/** https://www.jsonrpc.org/specification#error_object */
const INTERNAL_ERROR = -32_603;

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

/**
 * The `data` of the JSON-RPC errors that a transport makes itself. A server's own errors may have any code, so codes don't tell
 * the two apart.
 */
export class TransportFault {
  /** @param why What the server did: `"its response isn't valid MCP"`. */
  constructor(readonly why: string) {}
}

/** Creates the response to a request that the server can't answer anymore. */
export function createFaultResponse(id: RequestId, why: string): JSONRPCErrorResponse {
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: why, data: new TransportFault(why) } };
}

/** Replaces secrets with `[secret]`. Values shorter than four characters are no secrets, and would garble the text. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  // A secret may be the start of another.
  for (const secret of secrets.toSorted((a, b) => b.length - a.length)) {
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
