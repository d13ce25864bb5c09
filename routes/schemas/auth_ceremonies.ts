/** The WebAuthn ceremonies on the wire: options and answers as SimpleWebAuthn's browser package takes and gives them. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, json, jsonBody, optionalJsonBody, Time } from "./common.ts";

/** base64url; the longest real answer is an attestation object of a few KiB. */
const Base64Url = z.string().regex(/^[A-Za-z0-9_-]*={0,2}$/, "expected base64url").max(64 * 1024);
/** WebAuthn allows 1023 bytes. */
const CredentialId = z.string().regex(/^[A-Za-z0-9_-]{1,1364}$/, "a credential id is base64url");
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

const AnswerBase = {
  id: CredentialId,
  rawId: CredentialId,
  type: z.literal("public-key"),
  authenticatorAttachment: z.string().max(40).nullish(),
  clientExtensionResults: z.looseObject({}).optional(),
};

const RegistrationAnswer = z.object({
  ...AnswerBase,
  response: z.object({
    clientDataJSON: Base64Url,
    attestationObject: Base64Url,
    transports: z.array(z.string().max(40)).max(10).optional(),
  }),
  name: PasskeyName.optional(),
}).openapi("PasskeyRegistration");

const LoginAnswer = z.object({
  ...AnswerBase,
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
    description: "A session was opened; over plain HTTP off this machine none can be",
  }),
}).openapi("EnrolledPasskey");

const SignedIn = z.object({ credential_id: z.string(), rp_id: z.string(), authenticated: z.literal(true) })
  .openapi("SignedIn");

/** `POST /api/auth/register/begin` */
export const beginRegistrationRoute = createRoute({
  method: "post",
  path: "/api/auth/register/begin",
  tags: ["auth"],
  summary: "Start enrolling a passkey; open to anyone while the origin's RPID is in grace",
  request: {
    body: optionalJsonBody(
      z.object({
        name: PasskeyName.optional(),
        code: z.string().max(64).optional().openapi({ description: "Pairing code or invite, where one is needed" }),
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
  summary: "Finish enrolling: the browser's answer, and a name for the passkey; opens a session, too",
  request: { body: jsonBody(RegistrationAnswer) },
  responses: { 200: json(Enrolled, "The passkey, enrolled"), ...ERRORS },
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
  request: { body: jsonBody(LoginAnswer) },
  responses: { 200: json(SignedIn, "Signed in"), ...ERRORS },
});

/** `POST /api/auth/logout` */
export const logoutRoute = createRoute({
  method: "post",
  path: "/api/auth/logout",
  tags: ["auth"],
  summary: "End the calling session, here and on the server",
  responses: { 204: { description: "No session any more" }, ...ERRORS },
});
