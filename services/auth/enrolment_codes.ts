/** The codes that let a new device enrol: the pairing code on the terminal, and invites made by whoever is in already. */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "../crypto/node_crypto.ts";
import { randomBytes } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { clientKey } from "./client_key.ts";

/** Lifetime of an invite. */
const INVITE_MS = 10 * 60 * 1000;
/** Wrong tries after which every code there is gets replaced, and after which an address is heard no more. */
const MAX_WRONG_TRIES = 10;
/** How long an address that tried too often is not heard. */
const BLOCKED_MS = 10 * 60 * 1000;
/** Addresses remembered; the oldest is forgotten first. */
const MAX_CLIENTS = 10_000;
/** Invites open at a time; the oldest is forgotten first. */
const MAX_INVITES = 64;
/** Crockford's base 32: no I, L, O, U to be mistaken. 8 characters are 40 bits, with ten tries to guess them. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_LENGTH = 8;

/** A code that was right when it was checked. */
export interface CodeTicket {
  readonly kind: "pairing" | "invite";
}

/** An invite as it is shown, once. */
export interface Invite {
  /** `"7K3M-QX2P"` */
  code: string;
  expiresAtMs: number;
}

/** Makes, checks and consumes codes. */
export interface EnrolmentCodes {
  /** Makes an invite. @param rpId Only there it counts; anywhere if undefined. */
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
  /** Uses a checked code up. @throws {AppError} `pairing_code_required` when somebody else did, or it was replaced. */
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
 * @param options.announcePairingCode Set under `pairing = "code"`: shows the code to whoever sees the terminal. Called at
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
      const client = clientKey(address);
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

/** Undoes what people do to codes: lower case, blanks, look-alikes. */
function normalized(given: string): string {
  return given.toUpperCase().replace(/[\s-]/g, "").replaceAll("O", "0").replace(/[IL]/g, "1");
}

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && nodeCrypto().timingSafeEqual(a, b);
}
