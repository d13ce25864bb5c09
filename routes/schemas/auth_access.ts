/** Passkeys, tokens, invites and the command line's login on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { CredentialRecord } from "../../services/auth/credential_store.ts";
import type { TokenRecord } from "../../services/auth/token_store.ts";
import { ERRORS, IdParams, json, jsonBody, optionalJsonBody, Time } from "./common.ts";

const tags = ["auth"];
const Base64Url = (min: number, max: number) =>
  z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${min},${max}}$`), "expected base64url");

const Credential = z.object({
  id: z.string(),
  rp_id: z.string(),
  name: z.string(),
  created_at: Time,
  last_used_at: Time.nullable(),
  current: z.boolean().openapi({ description: "The calling session was opened by it" }),
}).openapi("Passkey");

const Token = z.object({ id: z.string(), label: z.string(), created_at: Time, last_used_at: Time.nullable() })
  .openapi("Token");

const MintedToken = z.object({ id: z.string(), label: z.string(), token: z.string(), created_at: Time })
  .openapi("MintedToken");

const Invite = z.object({
  code: z.string(),
  url: z.string().openapi({ description: "Opens the page that asks for the code, with the code filled in" }),
  expires_at: Time,
}).openapi("Invite");

/** `GET /api/auth/credentials` */
export const credentialsRoute = createRoute({
  method: "get",
  path: "/api/auth/credentials",
  tags,
  summary: "List enrolled passkeys of every RPID, newest first; none to a caller in grace",
  responses: { 200: json(z.array(Credential), "The passkeys"), ...ERRORS },
});

/** `DELETE /api/auth/credentials/{id}` */
export const revokeCredentialRoute = createRoute({
  method: "delete",
  path: "/api/auth/credentials/{id}",
  tags,
  summary: "Revoke a passkey and end its sessions; its RPID stays gated",
  request: { params: z.object({ id: Base64Url(1, 1364) }) },
  responses: { 204: { description: "Revoked" }, ...ERRORS },
});

/** `POST /api/auth/token` */
export const mintTokenRoute = createRoute({
  method: "post",
  path: "/api/auth/token",
  tags,
  summary: "Mint a bearer token; needs a session",
  request: {
    body: optionalJsonBody(z.object({ label: z.string().trim().min(1).max(100).optional() }).openapi("TokenRequest")),
  },
  responses: { 201: json(MintedToken, "The token, shown this once"), ...ERRORS },
});

/** `GET /api/auth/tokens` */
export const tokensRoute = createRoute({
  method: "get",
  path: "/api/auth/tokens",
  tags,
  summary: "List bearer tokens, newest first",
  responses: { 200: json(z.array(Token), "The tokens, without what they are made of"), ...ERRORS },
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

/** `POST /api/auth/invites` */
export const inviteRoute = createRoute({
  method: "post",
  path: "/api/auth/invites",
  tags,
  summary: "Make a code by which another device may enrol, once, within ten minutes",
  request: {
    body: optionalJsonBody(
      z.object({
        rp_id: z.string().min(1).max(253).optional().openapi({
          description: "Only there it counts; else anywhere",
        }),
      }).openapi("InviteRequest"),
    ),
  },
  responses: { 201: json(Invite, "The invite, shown this once"), ...ERRORS },
});

/** `POST /api/auth/cli/approve` */
export const approveCliRoute = createRoute({
  method: "post",
  path: "/api/auth/cli/approve",
  tags,
  summary: "Let a command line in: a one-time code for the PKCE challenge it gave; needs a session",
  request: {
    body: jsonBody(
      z.object({ challenge: Base64Url(43, 43).openapi({ description: "SHA-256 of the verifier (RFC 7636, S256)" }) })
        .openapi("CliApproval"),
    ),
  },
  responses: {
    201: json(z.object({ code: z.string() }).openapi("CliCode"), "The code, good for two minutes"),
    ...ERRORS,
  },
});

/** `POST /api/auth/cli/redeem` */
export const redeemCliRoute = createRoute({
  method: "post",
  path: "/api/auth/cli/redeem",
  tags,
  summary: "Trade the code and the verifier for a session of a few minutes",
  request: {
    body: jsonBody(z.object({ code: z.string().max(64), verifier: Base64Url(43, 128) }).openapi("CliRedemption")),
  },
  responses: {
    200: json(z.object({ authenticated: z.literal(true) }).openapi("CliSession"), "The cookie is set"),
    ...ERRORS,
  },
});

/** Names a passkey on the wire. @param currentId That of the calling session. */
export function credentialAnswer(record: CredentialRecord, currentId: string | undefined): z.infer<typeof Credential> {
  const { id, rp_id, name, created_at, last_used_at } = record;
  return { id, rp_id, name, created_at, last_used_at, current: id === currentId };
}

/** Names a token on the wire: never its hash. */
export function tokenAnswer({ id, label, created_at, last_used_at }: TokenRecord): z.infer<typeof Token> {
  return { id, label, created_at, last_used_at };
}

/** A passkey, as the API returns it. */
export type PasskeyJson = z.output<typeof Credential>;

/** A bearer token without its text. */
export type TokenJson = z.output<typeof Token>;

/** A new bearer token. */
export type MintedTokenJson = z.output<typeof MintedToken>;

/** A new invite. */
export type InviteJson = z.output<typeof Invite>;
