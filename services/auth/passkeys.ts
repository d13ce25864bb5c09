/** The WebAuthn ceremonies: checks who may enroll a passkey, registers passkeys, and signs in. */
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/server";
import { randomToken } from "../crypto/random.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Identity } from "./access_policy.ts";
import {
  ALGORITHMS,
  type CeremonyScope,
  CHALLENGE_MS,
  type Challenges,
  createChallenges,
  getChallenge,
  type LoginCredential,
  type RegistrationCredential,
  verifyLogin,
  verifyRegistration,
} from "./ceremonies.ts";
import type { CredentialRecord, CredentialStore } from "./credential_stores.ts";
import type { CodeTicket, EnrolmentCodes, FailureLimiter } from "./enrolment_codes.ts";
import type { HostPolicy } from "./hosts.ts";

/** Maximum number of RP IDs of hosts outside the allowlist, where anyone can enroll. */
const MAX_UNLISTED_RP_IDS = 16;

/** Maximum number of passkeys per RP ID: more than anyone has devices, few enough to keep the file small. */
const MAX_PER_RP_ID = 50;

/** The caller of a ceremony. */
export interface CeremonyCaller {
  rpId: string;
  /** `scheme://host[:port]` */
  origin: string;
  /** Canonical address of the client. */
  clientAddress: string;
  /** Whether the host is on the allowlist; other hosts may be open to ceremonies only. */
  isHostListed: boolean;
  identity: Identity;
  /** Identifies the browser. */
  browser: string;
}

/** Input of a registration. */
export interface RegistrationRequest {
  name?: string;
  /** Pairing code or invite. */
  code?: string;
}

/** Passkey registration and sign-in. */
export interface Passkeys {
  /**
   * Starts a registration.
   *
   * @throws {AppError} `unauthenticated`, `session_required` (a bearer token isn't enough) or `pairing_code_required`
   *   if the caller isn't allowed to; `too_many_requests` after too many wrong codes, or if too many hosts outside the
   *   allowlist have passkeys.
   */
  beginRegistration(
    caller: CeremonyCaller,
    request: RegistrationRequest,
  ): Promise<PublicKeyCredentialCreationOptionsJSON>;
  /**
   * Finishes a registration.
   *
   * @throws {AppError} Like `beginRegistration`; `invalid_request` if the response doesn't match a running ceremony;
   *   `conflict` if another device added the first passkey in the meantime, or this one is already enrolled.
   */
  finishRegistration(
    caller: CeremonyCaller,
    answer: RegistrationCredential,
    name: string | undefined,
  ): Promise<CredentialRecord>;
  /** Starts a sign-in. The options don't list passkeys, so that strangers don't learn about them. */
  beginLogin(caller: CeremonyCaller): PublicKeyCredentialRequestOptionsJSON;
  /**
   * Signs in.
   *
   * @throws {AppError} `unauthenticated`, the same for every reason, or `too_many_requests` after too many failures.
   */
  finishLogin(caller: CeremonyCaller, answer: LoginCredential): Promise<CredentialRecord>;
}

/** Why the caller can add a passkey. Checked again at the end of the ceremony. */
type EnrolmentRight = { kind: "grace" | "session" | "bypass" } | { kind: "code"; ticket: CodeTicket };

interface PendingRegistration {
  right: EnrolmentRight;
  name: string | undefined;
  userHandle: string;
}

/** @param options.pairing With `"code"`, the grace period alone doesn't allow adding passkeys. */
export function createPasskeys(options: {
  credentials: CredentialStore;
  codes: EnrolmentCodes;
  hosts: HostPolicy;
  failures: FailureLimiter;
  pairing: "open" | "code";
  log: Log;
  now(): number;
}): Passkeys {
  const { credentials, codes, hosts, failures, pairing, log, now } = options;
  const registrations: Challenges<PendingRegistration> = createChallenges(now);
  const logins: Challenges<true> = createChallenges(now);

  async function getEnrolmentRight(caller: CeremonyCaller, code: string | undefined): Promise<EnrolmentRight> {
    const { identity, rpId, clientAddress } = caller;
    if (identity.method === "session") return { kind: "session" };
    if (hasBypass(identity)) return { kind: "bypass" };
    const isInGrace = !await credentials.isGated(rpId);
    if (isInGrace) await assertUnlistedLimit(caller);
    if (isInGrace && pairing === "open") return { kind: "grace" };
    if (code !== undefined) {
      try {
        return { kind: "code", ticket: codes.check(code, { rpId, isInGrace }, clientAddress) };
      } catch (error) {
        failures.record(clientAddress, { method: "code" });
        throw error;
      }
    }
    if (isInGrace) {
      throw new AppError(
        "pairing_code_required",
        "Adding a passkey here requires the code in the server's terminal, or an invite",
      );
    }
    if (identity.method === "token") {
      throw new AppError(
        "session_required",
        "A bearer token can't add a passkey. Sign in with a passkey, or use an invite",
      );
    }
    throw new AppError(
      "unauthenticated",
      "This address already has a passkey. To add another one, sign in or use an invite",
    );
  }

  async function assertUnlistedLimit({ isHostListed, rpId }: CeremonyCaller): Promise<void> {
    if (isHostListed) return;
    const held = (await credentials.listGatedRpIds()).filter((each) => !hosts.ownsRpId(each));
    if (!held.includes(rpId) && held.length >= MAX_UNLISTED_RP_IDS) {
      throw new AppError(
        "too_many_requests",
        "Too many hosts outside allowed_hosts have passkeys. Add this host to allowed_hosts first",
      );
    }
  }

  /** Checks that the right to enroll, which the caller had when the ceremony started, still exists. */
  async function assertRightHolds({ kind }: EnrolmentRight, { identity, rpId }: CeremonyCaller): Promise<void> {
    if (kind === "grace" && await credentials.isGated(rpId)) {
      throw new AppError("conflict", `Can't add the passkey: another device just added the first one for "${rpId}"`);
    }
    const holds = kind === "session" ? identity.method === "session" : kind !== "bypass" || hasBypass(identity);
    if (!holds) throw new AppError("unauthenticated", "Your permission to add a passkey has ended. Sign in again");
  }

  return {
    async beginRegistration(caller, { name, code }) {
      const right = await getEnrolmentRight(caller, code);
      const known = await credentials.load();
      const own = known.filter(({ rp_id }) => rp_id === caller.rpId);
      if (own.length >= MAX_PER_RP_ID) {
        throw new AppError(
          "conflict",
          `Can't add a passkey: "${caller.rpId}" already has ${own.length}, the maximum. Revoke one first`,
        );
      }
      // All passkeys have the same user, so that an authenticator shows one account. Anyone can start a registration
      // under an unlisted host, so such a host gets its own user: the owner's handle stays secret.
      const ofSameUser = own[0] ?? (caller.isHostListed ? known.find(({ rp_id }) => hosts.ownsRpId(rp_id)) : undefined);
      const userHandle = ofSameUser?.user_handle ?? randomToken(32);
      const challenge = registrations.issue(getScope("register", caller), caller.clientAddress, {
        right,
        name,
        userHandle,
      });
      const userName = `Parlor on ${new URL(caller.origin).host}`;
      return {
        challenge,
        rp: { id: caller.rpId, name: "Parlor" },
        user: { id: userHandle, name: userName, displayName: userName },
        pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: "public-key" })),
        timeout: CHALLENGE_MS,
        attestation: "none",
        authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
        excludeCredentials: own.map(({ id }) => ({ id, type: "public-key" })),
      };
    },

    async finishRegistration(caller, answer, name) {
      const challenge = getChallenge(answer.response.clientDataJSON);
      const pending = registrations.take(challenge, getScope("register", caller));
      if (pending === undefined) {
        await getEnrolmentRight(caller, undefined);
        throw new AppError(
          "invalid_request",
          "Can't add the passkey: the registration is unknown or expired. Start again",
        );
      }
      await assertRightHolds(pending.right, caller);
      const { id, publicKey, counter, transports } = await verifyRegistration(
        answer,
        createExpectation(caller, challenge),
      )
        .catch((error) => {
          const reason = getErrorMessage(error instanceof AppError ? error.cause : error);
          log("warn", "Refused to register a passkey", { client: caller.clientAddress, reason: reason.slice(0, 200) });
          throw error;
        });
      if (pending.right.kind === "code") codes.consume(pending.right.ticket);
      const record: CredentialRecord = {
        id,
        rp_id: caller.rpId,
        name: name ?? pending.name ?? "Passkey",
        public_key: publicKey,
        counter,
        transports,
        user_handle: pending.userHandle,
        created_at: new Date(now()).toISOString(),
        last_used_at: null,
      };
      await credentials.add(record, pending.right.kind === "grace");
      return record;
    },

    beginLogin(caller) {
      const challenge = logins.issue(getScope("login", caller), caller.clientAddress, true);
      return {
        challenge,
        rpId: caller.rpId,
        timeout: CHALLENGE_MS,
        userVerification: "required",
        allowCredentials: [],
      };
    },

    async finishLogin(caller, answer) {
      const challenge = getChallenge(answer.response.clientDataJSON);
      const isUnderWay = logins.take(challenge, getScope("login", caller)) !== undefined;
      const found = await credentials.find(answer.id);
      const credential = found?.rp_id === caller.rpId ? found : undefined;
      const result = isUnderWay
        ? await verifyLogin(answer, createExpectation(caller, challenge), credential)
        : { refusal: "the ceremony is unknown, used or expired" };
      const refuse = (reason: string) => {
        const refusal = new AppError("unauthenticated", "Can't sign in: the passkey wasn't accepted");
        return failures.count(caller.clientAddress, refusal, { method: "passkey", reason });
      };
      if ("refusal" in result || credential === undefined) throw refuse("refusal" in result ? result.refusal : "");
      const usedAt = new Date(now()).toISOString();
      const refusal = await credentials.recordSignIn(credential.id, result.counter, usedAt);
      if (refusal !== undefined) throw refuse(refusal);
      return { ...credential, counter: result.counter, last_used_at: usedAt };
    },
  };
}

function hasBypass(identity: Identity): boolean {
  return identity.method === null && (identity.bypass === "loopback" || identity.bypass === "auth_disabled");
}

function getScope(kind: CeremonyScope["kind"], { rpId, origin, browser }: CeremonyCaller): CeremonyScope {
  return { kind, rpId, origin, browser };
}

function createExpectation({ origin, rpId }: CeremonyCaller, challenge: string) {
  return { challenge, origin, rpId };
}
