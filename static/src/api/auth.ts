/** API calls for authentication: passkey ceremonies, passkeys, tokens, invites, the command line. */
import type { AddressCheck, AuthStatus, Invite, MintedToken, Passkey, Token } from "./types.ts";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/browser";
import type { ApiClient } from "./client.ts";

/** All calls throw `ApiError`. */
export interface AccessApi {
  /** @param token Asks with this token, to check whether it is valid. */
  status(token?: string): Promise<AuthStatus>;
  beginRegistration(request: { name: string; code?: string }): Promise<PublicKeyCredentialCreationOptionsJSON>;
  finishRegistration(answer: RegistrationResponseJSON & { name: string }): Promise<void>;
  beginLogin(): Promise<PublicKeyCredentialRequestOptionsJSON>;
  finishLogin(answer: AuthenticationResponseJSON): Promise<void>;
  logout(): Promise<void>;
  listPasskeys(): Promise<Passkey[]>;
  revokePasskey(id: string): Promise<void>;
  listTokens(): Promise<Token[]>;
  /** @param scope The scope of the token; full access by default. @param allow What a limited token may use */
  mintToken(label: string, scope?: Token["scope"], allow?: Partial<Token["allow"]>): Promise<MintedToken>;
  revokeToken(id: string): Promise<void>;
  invite(): Promise<Invite>;
  /** Has the server check an address from outside. */
  checkAddress(url: string): Promise<AddressCheck>;
  /** Returns the one-time code. @param challenge SHA-256 of the command line's verifier, base64url. */
  approveCli(challenge: string): Promise<{ code: string }>;
}

/** Returns the calls, bound to a client. */
export function createAccessApi(client: ApiClient): AccessApi {
  async function json<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await client.send(method, `/api/auth/${path}`, { body, headers });
    return await response.json() as T;
  }
  async function done(method: string, path: string, body?: unknown): Promise<void> {
    const response = await client.send(method, `/api/auth/${path}`, { body });
    await response.body?.cancel();
  }
  return {
    status: (token) =>
      json("GET", "status", undefined, token === undefined ? {} : { authorization: `Bearer ${token}` }),
    beginRegistration: (request) => json("POST", "register/begin", request),
    finishRegistration: (answer) => done("POST", "register/finish", answer),
    beginLogin: () => json("POST", "login/begin", {}),
    finishLogin: (answer) => done("POST", "login/finish", answer),
    logout: () => done("POST", "logout"),
    listPasskeys: () => json("GET", "credentials"),
    revokePasskey: (id) => done("DELETE", `credentials/${encodeURIComponent(id)}`),
    listTokens: () => json("GET", "tokens"),
    mintToken: (label, scope, allow) => json("POST", "token", { label, scope, allow }),
    revokeToken: (id) => done("DELETE", `tokens/${encodeURIComponent(id)}`),
    invite: () => json("POST", "invites", {}),
    checkAddress: (url) => json("POST", "check_address", { url }),
    approveCli: (challenge) => json("POST", "cli/approve", { challenge }),
  };
}
