/** Authentication: status, passkey ceremonies, access tokens, invites and sign-in of the command line. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Identity } from "../../services/auth/access_policy.ts";
import { type CredentialRecord, TOKEN_SCOPES, type TokenRecord } from "../../services/auth/credential_stores.ts";
import { ADDRESS_CHECK_RESULTS } from "../../services/auth/public_address.ts";
import { ERRORS, Id, IdParams, json, jsonBody, optionalJsonBody, Time } from "./common.ts";

const AuthStatus = z.object({
  rp_id: z.string(),
  origin: z.string(),
  paired: z.boolean(),
  authenticated: z.boolean(),
  method: z.enum(["session", "token"]).nullable(),
  bypass: z.enum(["auth_disabled", "loopback", "grace"]).nullable(),
  passkeys_supported: z.boolean(),
  pairing: z.enum(["open", "code"]),
  hint: z.enum(["bare_proxy", "untrusted_proxy"]).optional().openapi({
    description: "Why this request counts as it does: `bare_proxy`, a proxy on the server's machine forwards without " +
      "saying so and the loopback bypass is off until restart; `untrusted_proxy`, forwarding headers came from a peer " +
      "that is not in trusted_proxies",
  }),
}).openapi("AuthStatus");

/** What the calling origin and browser may do, as `GET /api/auth/status` says it. */
export type AuthStatus = z.infer<typeof AuthStatus>;

/** `GET /api/auth/status` */
export const statusRoute = createRoute({
  method: "get",
  path: "/api/auth/status",
  tags: ["auth"],
  summary: "Get the authentication status of the calling origin and browser; needs no authentication",
  responses: { 200: json(AuthStatus, "The status of the caller"), ...ERRORS },
});

/** Returns the fields that describe an identity. */
export function toIdentityFields(identity: Identity): Pick<AuthStatus, "authenticated" | "method"> {
  return { authenticated: identity.method !== null, method: identity.method };
}

/** base64url. The longest valid value is an attestation object of a few KiB. */
const Base64Url = z.string().regex(/^[A-Za-z0-9_-]*={0,2}$/, "expected base64url").max(64 * 1024);
/** WebAuthn allows 1023 bytes. */
const CredentialId = z.string().regex(/^[A-Za-z0-9_-]{1,1364}$/, "a credential ID must be base64url");
const PasskeyName = z.string().trim().min(1).max(100);

const Descriptor = z.object({ id: z.string(), type: z.string().openapi({ example: "public-key" }) });

const CreationOptions = z.looseObject({
  challenge: z.string(),
  rp: z.object({ id: z.string().optional(), name: z.string() }),
  user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.object({ alg: z.number(), type: z.string() })),
  excludeCredentials: z.array(Descriptor).optional(),
}).openapi("PasskeyCreationOptions", { description: "WebAuthn's PublicKeyCredentialCreationOptionsJSON" });

const RequestOptions = z.looseObject({
  challenge: z.string(),
  rpId: z.string().optional(),
  allowCredentials: z.array(Descriptor).optional(),
}).openapi("PasskeyRequestOptions", { description: "WebAuthn's PublicKeyCredentialRequestOptionsJSON" });

const CeremonyResponseBase = {
  id: CredentialId,
  rawId: CredentialId,
  type: z.literal("public-key"),
  authenticatorAttachment: z.string().max(40).nullish(),
  clientExtensionResults: z.looseObject({}).optional(),
};

const RegistrationResponse = z.object({
  ...CeremonyResponseBase,
  response: z.object({
    clientDataJSON: Base64Url,
    attestationObject: Base64Url,
    transports: z.array(z.string().max(40)).max(10).optional(),
  }),
  name: PasskeyName.optional(),
}).openapi("PasskeyRegistration");

const LoginResponse = z.object({
  ...CeremonyResponseBase,
  response: z.object({
    clientDataJSON: Base64Url,
    authenticatorData: Base64Url,
    signature: Base64Url,
    userHandle: Base64Url.nullish(),
  }),
}).openapi("PasskeyLogin");

const Enrolled = z.object({
  id: z.string(),
  rp_id: z.string(),
  name: z.string(),
  created_at: Time,
  authenticated: z.boolean().openapi({
    description: "A session was created; over plain HTTP this is possible only on this machine",
  }),
}).openapi("EnrolledPasskey");

const SignedIn = z.object({ credential_id: z.string(), rp_id: z.string(), authenticated: z.literal(true) })
  .openapi("SignedIn");

/** `POST /api/auth/register/begin` */
export const beginRegistrationRoute = createRoute({
  method: "post",
  path: "/api/auth/register/begin",
  tags: ["auth"],
  summary: "Start enrolling a passkey; open to everyone while the origin's RP ID is in grace",
  request: {
    body: optionalJsonBody(
      z.object({
        name: PasskeyName.optional(),
        code: z.string().max(64).optional().openapi({ description: "Pairing code or invite code, if one is required" }),
      }).openapi("PasskeyRegistrationRequest"),
    ),
  },
  responses: { 200: json(CreationOptions, "Options for navigator.credentials.create"), ...ERRORS },
});

/** `POST /api/auth/register/finish` */
export const finishRegistrationRoute = createRoute({
  method: "post",
  path: "/api/auth/register/finish",
  tags: ["auth"],
  summary: "Finish enrolling with the browser's response and a name for the passkey; also creates a session",
  request: { body: jsonBody(RegistrationResponse) },
  responses: { 200: json(Enrolled, "The enrolled passkey"), ...ERRORS },
});

/** `POST /api/auth/login/begin` */
export const beginLoginRoute = createRoute({
  method: "post",
  path: "/api/auth/login/begin",
  tags: ["auth"],
  summary: "Start signing in",
  responses: { 200: json(RequestOptions, "Options for navigator.credentials.get"), ...ERRORS },
});

/** `POST /api/auth/login/finish` */
export const finishLoginRoute = createRoute({
  method: "post",
  path: "/api/auth/login/finish",
  tags: ["auth"],
  summary: "Finish signing in; sets the session cookie",
  request: { body: jsonBody(LoginResponse) },
  responses: { 200: json(SignedIn, "Signed in"), ...ERRORS },
});

/** `POST /api/auth/logout` */
export const logoutRoute = createRoute({
  method: "post",
  path: "/api/auth/logout",
  tags: ["auth"],
  summary: "End the calling session, here and on the server",
  responses: { 204: { description: "The session has ended" }, ...ERRORS },
});

const tags = ["auth"];
const Base64UrlOfLength = (min: number, max: number) =>
  z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${min},${max}}$`), "expected base64url");

const Credential = z.object({
  id: z.string(),
  rp_id: z.string(),
  name: z.string(),
  created_at: Time,
  last_used_at: Time.nullable(),
  current: z.boolean().openapi({ description: "Whether the calling session was created with this passkey" }),
}).openapi("Passkey");

const TokenScope = z.enum(TOKEN_SCOPES).openapi({
  description: "all; or openai: only the OpenAI-compatible API below /api/v1, with at most 8 concurrent calls",
});

const AllowedIds = z.union([z.literal("all"), z.array(Id).max(1000)]);

const TokenAllowance = z.object({
  characters: AllowedIds.openapi({ description: "Characters it may use as models; all by default" }),
  connections: AllowedIds.openapi({ description: "Connections whose models it may use; all by default" }),
  notes: z.boolean().openapi({ description: "Whether prompts of characters contain your memories; false by default" }),
  persona: z.boolean().openapi({
    description: "Whether prompts of characters contain your persona and name; false by default",
  }),
  write: z.boolean().openapi({ description: "Whether it may write into existing conversations; false by default" }),
}).strict().openapi("TokenAllowance");

const Token = z.object({
  id: z.string(),
  label: z.string(),
  scope: TokenScope,
  allow: TokenAllowance.optional().openapi({ description: "What it may use, with the scope openai" }),
  created_at: Time,
  last_used_at: Time.nullable(),
}).openapi("Token");

const MintedToken = z.object({
  id: z.string(),
  label: z.string(),
  scope: TokenScope,
  allow: TokenAllowance.optional(),
  token: z.string(),
  created_at: Time,
}).openapi("MintedToken");

const Invite = z.object({
  code: z.string(),
  url: z.string().openapi({ description: "URL of the page that asks for the code, with the code filled in" }),
  expires_at: Time,
}).openapi("Invite");

/** `GET /api/auth/credentials` */
export const credentialsRoute = createRoute({
  method: "get",
  path: "/api/auth/credentials",
  tags,
  summary: "List the enrolled passkeys of all RP IDs, newest first; callers in grace get an empty list",
  responses: { 200: json(z.array(Credential), "The passkeys"), ...ERRORS },
});

/** `DELETE /api/auth/credentials/{id}` */
export const revokeCredentialRoute = createRoute({
  method: "delete",
  path: "/api/auth/credentials/{id}",
  tags,
  summary: "Revoke a passkey and end its sessions; its RP ID still requires sign-in",
  request: { params: z.object({ id: Base64UrlOfLength(1, 1364) }) },
  responses: { 204: { description: "Revoked" }, ...ERRORS },
});

/** `POST /api/auth/token` */
export const mintTokenRoute = createRoute({
  method: "post",
  path: "/api/auth/token",
  tags,
  summary: "Create a bearer token; requires a session",
  request: {
    body: optionalJsonBody(
      z.object({
        label: z.string().trim().min(1).max(100).optional(),
        scope: TokenScope.optional(),
        allow: TokenAllowance.partial().optional(),
      }).refine(({ scope, allow }) => allow === undefined || scope === "openai", {
        path: ["allow"],
        message: "Only a token of the scope openai can be limited further",
      }).openapi("TokenRequest"),
    ),
  },
  responses: { 201: json(MintedToken, "The token, which is shown only this once"), ...ERRORS },
});

/** `GET /api/auth/tokens` */
export const tokensRoute = createRoute({
  method: "get",
  path: "/api/auth/tokens",
  tags,
  summary: "List bearer tokens, newest first",
  responses: { 200: json(z.array(Token), "The tokens, without their secret text"), ...ERRORS },
});

/** `DELETE /api/auth/tokens/{id}` */
export const revokeTokenRoute = createRoute({
  method: "delete",
  path: "/api/auth/tokens/{id}",
  tags,
  summary: "Revoke one bearer token",
  request: { params: IdParams },
  responses: { 204: { description: "Revoked" }, ...ERRORS },
});

const AddressCheck = z.object({
  result: z.enum(ADDRESS_CHECK_RESULTS).openapi({
    description: "`proxy_headers`: the proxy doesn't send X-Forwarded-Proto and X-Forwarded-For, or isn't in " +
      "trusted_proxies. `host_changed`: the proxy doesn't forward the Host header. `unreachable` only means that this server gets " +
      "no response; some routers don't support requests from their own network to their public address",
  }),
}).openapi("AddressCheck");

/** What a check of an address found. */
export type AddressCheckJson = z.output<typeof AddressCheck>;

/** `POST /api/auth/check_address` */
export const checkAddressRoute = createRoute({
  method: "post",
  path: "/api/auth/check_address",
  tags,
  summary: "Check whether an address leads to this server and fulfills all conditions for signing in",
  request: { body: jsonBody(z.object({ url: z.string().min(1).max(2000) }).openapi("AddressCheckRequest")) },
  responses: { 200: json(AddressCheck, "The result of the check"), ...ERRORS },
});

/** `POST /api/auth/invites` */
export const inviteRoute = createRoute({
  method: "post",
  path: "/api/auth/invites",
  tags,
  summary: "Create a code that lets another device enroll a passkey, once, within ten minutes",
  request: {
    body: optionalJsonBody(
      z.object({
        rp_id: z.string().min(1).max(253).optional().openapi({
          description: "RP ID where the code is valid; by default, any",
        }),
      }).openapi("InviteRequest"),
    ),
  },
  responses: { 201: json(Invite, "The invite, which is shown only this once"), ...ERRORS },
});

/** `POST /api/auth/cli/approve` */
export const approveCliRoute = createRoute({
  method: "post",
  path: "/api/auth/cli/approve",
  tags,
  summary: "Approve the sign-in of a command line: creates a one-time code for its PKCE challenge; requires a session",
  request: {
    body: jsonBody(
      z.object({
        challenge: Base64UrlOfLength(43, 43).openapi({ description: "SHA-256 of the verifier (RFC 7636, S256)" }),
      })
        .openapi("CliApproval"),
    ),
  },
  responses: {
    201: json(z.object({ code: z.string() }).openapi("CliCode"), "The code, which is valid for two minutes"),
    ...ERRORS,
  },
});

/** `POST /api/auth/cli/redeem` */
export const redeemCliRoute = createRoute({
  method: "post",
  path: "/api/auth/cli/redeem",
  tags,
  summary: "Exchange the code and the verifier for a session of a few minutes",
  request: {
    body: jsonBody(
      z.object({ code: z.string().max(64), verifier: Base64UrlOfLength(43, 128) }).openapi("CliRedemption"),
    ),
  },
  responses: {
    200: json(z.object({ authenticated: z.literal(true) }).openapi("CliSession"), "The cookie is set"),
    ...ERRORS,
  },
});

/** Converts a passkey to its JSON form. @param currentId ID of the passkey of the calling session */
export function toPasskeyJson(record: CredentialRecord, currentId: string | undefined): z.infer<typeof Credential> {
  const { id, rp_id, name, created_at, last_used_at } = record;
  return { id, rp_id, name, created_at, last_used_at, current: id === currentId };
}

/** Converts a token to its JSON form, without its hash. */
export function toTokenJson({ id, label, scope, allow, created_at, last_used_at }: TokenRecord): z.infer<typeof Token> {
  return { id, label, scope, allow, created_at, last_used_at };
}

/** A passkey, as the API returns it. */
export type PasskeyJson = z.output<typeof Credential>;

/** A bearer token without its secret text. */
export type TokenJson = z.output<typeof Token>;

/** A new bearer token. */
export type MintedTokenJson = z.output<typeof MintedToken>;

/** A new invite. */
export type InviteJson = z.output<typeof Invite>;
