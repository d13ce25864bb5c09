/** Codes that allow a new device to add a passkey: the pairing code in the terminal, and invites from signed-in devices. */
import { Buffer } from "node:buffer";
import { nodeCrypto, randomBytes } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { getClientKey } from "./hosts.ts";

/** Lifetime of an invite. */
const INVITE_MS = 10 * 60 * 1000;
/** Wrong tries after which all codes are replaced, and after which an address is blocked. */
const MAX_WRONG_TRIES = 10;
/** How long an address stays blocked. */
const BLOCKED_MS = 10 * 60 * 1000;
/** Maximum number of addresses to remember. The oldest is dropped first. */
const MAX_CLIENTS = 10_000;
/** Maximum number of open invites. The oldest is dropped first. */
const MAX_INVITES = 64;
/** Crockford's Base32, without the ambiguous I, L, O and U. 8 characters are 40 bits, with ten tries to guess them. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_LENGTH = 8;

/** A code that was valid when it was checked. */
export interface CodeTicket {
  readonly kind: "pairing" | "invite";
}

/** A new invite. It's shown only once. */
export interface Invite {
  /** `"7K3M-QX2P"` */
  code: string;
  expiresAtMs: number;
}

/** Creates, checks and consumes codes. */
export interface EnrolmentCodes {
  /** Creates an invite. @param rpId The only RP ID for which it's valid; any if undefined. */
  invite(rpId?: string): Invite;
  /**
   * Checks a code, typed by a person or taken from an address.
   *
   * @param place.isInGrace Only then the pairing code counts.
   * @param address Of the client; its wrong tries are counted.
   * @throws {AppError} `pairing_code_required` when it is wrong, spent or over; `too_many_requests` with `Retry-After`
   *   when the address has had too many wrong ones.
   */
  check(code: string, place: { rpId: string; isInGrace: boolean }, address: string): CodeTicket;
  /** Consumes a checked code. @throws {AppError} `pairing_code_required` if it was already used or replaced. */
  consume(ticket: CodeTicket): void;
}

interface Code extends CodeTicket {
  /** Without hyphen. */
  text: string;
  rpId: string | undefined;
  endsAtMs: number;
  wrongTries: number;
}

/**
 * @param options.announcePairingCode Set if `pairing = "code"`: prints the code to the terminal. Called at
 *   once, and again with each new code.
 */
export function createEnrolmentCodes(options: {
  now(): number;
  announcePairingCode?: (code: string) => void;
}): EnrolmentCodes {
  const { now, announcePairingCode } = options;
  const codes = new Set<Code>();
  const clients = new Map<string, { wrongTries: number; endsAtMs: number }>();

  function add(kind: Code["kind"], rpId: string | undefined, endsAtMs: number): Code {
    const code = { kind, text: randomCode(), rpId, endsAtMs, wrongTries: 0 };
    codes.add(code);
    return code;
  }

  function addPairingCode(): void {
    if (announcePairingCode !== undefined) announcePairingCode(shown(add("pairing", undefined, Infinity).text));
  }

  function remove(code: Code): void {
    codes.delete(code);
    if (code.kind === "pairing") addPairingCode();
  }

  function countWrongTry(client: string): void {
    for (const code of [...codes]) {
      if (++code.wrongTries >= MAX_WRONG_TRIES) remove(code);
    }
    const known = clients.get(client);
    if (known === undefined || known.endsAtMs <= now()) {
      clients.delete(client);
      if (clients.size >= MAX_CLIENTS) clients.delete(clients.keys().next().value!);
      clients.set(client, { wrongTries: 1, endsAtMs: now() + BLOCKED_MS });
    } else known.wrongTries++;
  }

  addPairingCode();
  return {
    invite(rpId) {
      for (const code of [...codes]) if (code.endsAtMs <= now()) codes.delete(code);
      const invites = [...codes].filter(({ kind }) => kind === "invite");
      if (invites.length >= MAX_INVITES) codes.delete(invites[0]!);
      const { text, endsAtMs } = add("invite", rpId, now() + INVITE_MS);
      return { code: shown(text), expiresAtMs: endsAtMs };
    },
    check(given, { rpId, isInGrace }, address) {
      const client = getClientKey(address);
      const tries = clients.get(client);
      if (tries !== undefined && tries.wrongTries >= MAX_WRONG_TRIES && tries.endsAtMs > now()) {
        throw new AppError("too_many_requests", "Too many wrong codes from this address. Try again later", {
          retryAfterSeconds: (tries.endsAtMs - now()) / 1000,
        });
      }
      const text = normalized(given);
      const code = [...codes].find((each) =>
        isSameText(each.text, text) && each.endsAtMs > now() && (each.rpId ?? rpId) === rpId &&
        (each.kind === "invite" || isInGrace)
      );
      if (code === undefined) {
        countWrongTry(client);
        throw new AppError("pairing_code_required", "The code is invalid, already used or expired. Request a new one");
      }
      return code;
    },
    consume(ticket) {
      const code = [...codes].find((each) => each === ticket);
      if (code === undefined) {
        throw new AppError("pairing_code_required", "The code was already used or replaced. Request a new one");
      }
      remove(code);
    },
  };
}

function randomCode(): string {
  return Array.from(randomBytes(CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

function shown(text: string): string {
  return `${text.slice(0, CODE_LENGTH / 2)}-${text.slice(CODE_LENGTH / 2)}`;
}

/** Normalizes a typed code: lower case, spaces, look-alike letters. */
function normalized(given: string): string {
  return given.toUpperCase().replace(/[\s-]/g, "").replaceAll("O", "0").replace(/[IL]/g, "1");
}

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && nodeCrypto().timingSafeEqual(a, b);
}
