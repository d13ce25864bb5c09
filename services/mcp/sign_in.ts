/**
 * Signs in to tool servers: OAuth 2.1 with PKCE, through the SDK. Between start and callback, a sign-in is only in
 * memory.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization
 */
import { randomToken } from "../crypto/random.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { maskSecrets, type SignInChallenge } from "./mcp_result.ts";
import { auth, OAuthError, refreshAuthorization } from "./sdk.ts";
import type { OAuthClientInformationMixed, OAuthClientProvider, OAuthDiscoveryState, OAuthTokens } from "./sdk.ts";
import type { ServerFetch, SignInFetch } from "./server_fetch.ts";
import { type HttpContent, listSecrets } from "./tool_server.ts";
import { listSignInSecrets, type StoredSignIn } from "./tool_servers.ts";

/** A pending sign-in. */
export interface PendingSignIn {
  serverId: string;
  /** Page of the authorization server, for the owner's browser. */
  authUrl: string;
  /** State parameter, which the callback returns. Unique to this sign-in. */
  state: string;
  /** In ms since 1970. */
  expiresAtMs: number;
  /**
   * Exchanges the code of the callback for tokens.
   *
   * @param issuer The parameter `iss` of the callback (RFC 9207).
   * @throws {AppError} `upstream_error`
   */
  finish(code: string, issuer: string | null): Promise<StoredSignIn>;
}

/** Options of a sign-in. */
export interface SignInOptions extends SignInFetch {
  serverId: string;
  server: HttpContent;
  stored: StoredSignIn | undefined;
  challenge: SignInChallenge;
  redirectUrl: string;
  nowMs: number;
}

/** How long a sign-in stays pending. */
const SIGN_IN_MS = 15 * 60_000;

/**
 * Starts a sign-in: finds the authorization server and registers a client there, unless the owner has entered one.
 *
 * @throws {AppError} `upstream_error` if the server doesn't support sign-in
 */
export async function startSignIn(options: SignInOptions): Promise<PendingSignIn> {
  const { serverId, server, fetch, challenge } = options;
  const provider = new SignInProvider(options);
  const run = async (code?: string) => {
    try {
      return await auth(provider, {
        serverUrl: server.url,
        ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
        ...(challenge.scope && { scope: challenge.scope }),
        ...(code !== undefined && { authorizationCode: code }),
        fetchFn: fetch,
      });
    } catch (error) {
      const secrets = [...listSecrets(server), ...listSignInSecrets(provider.toStored()), provider.codeVerifier()];
      throw toSignInError(server.name, error, code === undefined ? secrets : [...secrets, code]);
    }
  };
  await run();
  const { authUrl, state } = provider;
  if (authUrl === undefined) {
    throw new AppError("upstream_error", `Can't sign in to "${server.name}": it has no sign-in page`);
  }
  return {
    serverId,
    authUrl: authUrl.href,
    state: state(),
    expiresAtMs: options.nowMs + SIGN_IN_MS,
    async finish(code, issuer) {
      provider.assertIssuer(issuer);
      await run(code);
      return provider.toStored();
    },
  };
}

/**
 * Gets new tokens for stored ones.
 *
 * @returns `undefined` if the owner must sign in again.
 * @throws {AppError} `upstream_error`, `upstream_timeout` if the authorization server can't be reached
 */
export async function refreshSignIn(
  server: HttpContent,
  stored: StoredSignIn,
  fetch: ServerFetch,
): Promise<StoredSignIn | undefined> {
  const { client, tokens, discovery } = stored;
  const clientInformation = toClient(server, client);
  if (tokens?.refresh_token === undefined || clientInformation === undefined || discovery === undefined) {
    return undefined;
  }
  try {
    const renewed = await refreshAuthorization(discovery.authorizationServerUrl, {
      metadata: discovery.authorizationServerMetadata,
      clientInformation,
      refreshToken: tokens.refresh_token,
      ...(discovery.resourceMetadata && { resource: discovery.resourceMetadata.resource }),
      fetchFn: fetch,
    });
    return { ...stored, tokens: { ...renewed, ...(tokens.issuer && { issuer: tokens.issuer }) } };
  } catch (error) {
    if (error instanceof OAuthError) return undefined;
    throw toSignInError(server.name, error, [...listSecrets(server), ...listSignInSecrets(stored)]);
  }
}

/** Returns the OAuth client: the one that the owner registered, or else the automatically registered one. */
function toClient(
  { clientId, clientSecret }: HttpContent,
  stored: OAuthClientInformationMixed | undefined,
): OAuthClientInformationMixed | undefined {
  if (clientId === undefined) return stored;
  const issuer = stored?.client_id === clientId ? stored.issuer : undefined;
  return { client_id: clientId, ...(clientSecret && { client_secret: clientSecret }), ...(issuer && { issuer }) };
}

/** Provides what the SDK needs during a sign-in. */
class SignInProvider implements OAuthClientProvider {
  readonly redirectUrl: string;
  authUrl: URL | undefined;
  readonly #options: SignInOptions;
  readonly #state = randomToken(32);
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | undefined;
  #discovery: OAuthDiscoveryState | undefined;
  #verifier = "";

  constructor(options: SignInOptions) {
    const { server, stored, redirectUrl } = options;
    this.#options = options;
    this.redirectUrl = redirectUrl;
    const isSameClient = stored?.redirectUrl === redirectUrl || server.clientId !== undefined;
    this.#client = toClient(server, isSameClient ? stored?.client : undefined);
  }

  get clientMetadata() {
    return {
      client_name: "Parlor",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    };
  }

  readonly state = () => this.#state;
  readonly clientInformation = () => this.#client;
  // No stored tokens: they were rejected, or are for fewer scopes.
  readonly tokens = () => undefined;
  readonly codeVerifier = () => this.#verifier;
  readonly discoveryState = () => this.#discovery;

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    if (url.protocol !== "https:" && url.protocol !== "http:") {
      throw new AppError("upstream_error", `Can't sign in: the sign-in page starts with "${url.protocol}"`);
    }
    await this.#options.checkPage(url);
    this.authUrl = url;
  }

  invalidateCredentials(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): void {
    const isGiven = this.#options.server.clientId !== undefined;
    if ((scope === "all" || scope === "client") && !isGiven) this.#client = undefined;
    if (scope === "all" || scope === "discovery") this.#discovery = undefined;
  }

  /** Checks the issuer. @see RFC 9207, section 2.4 @throws {AppError} `upstream_error` */
  assertIssuer(issuer: string | null): void {
    const metadata = this.#discovery?.authorizationServerMetadata as Record<string, unknown> | undefined;
    const isRequired = metadata?.authorization_response_iss_parameter_supported === true;
    const isRight = issuer === null ? !isRequired : metadata === undefined || issuer === metadata.issuer;
    if (!isRight) {
      throw new AppError("upstream_error", "Can't sign in: the response is from another authorization server");
    }
  }

  toStored(): StoredSignIn {
    return {
      url: this.#options.server.url,
      redirectUrl: this.redirectUrl,
      ...(this.#client && { client: this.#client }),
      ...(this.#tokens && { tokens: this.#tokens }),
      ...(this.#discovery && { discovery: this.#discovery }),
    };
  }
}

/** Creates the error of a sign-in. Masks secrets, because authorization servers may quote what they were sent. */
function toSignInError(name: string, error: unknown, secrets: readonly string[]): unknown {
  if (error instanceof AppError || (error instanceof DOMException && error.name === "AbortError")) return error;
  const reason = maskSecrets(getErrorMessage(error), secrets).slice(0, 500);
  return new AppError("upstream_error", `Can't sign in to "${name}": ${reason}`, { cause: error });
}
