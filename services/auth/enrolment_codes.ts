/** Codes that allow a new device to add a passkey, and the limit of failed sign-ins and guessed codes. */
import { Buffer } from "node:buffer";
import { nodeCrypto, randomBytes } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { getClientKey } from "./hosts.ts";
import type { Log } from "../log.ts";

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
interface Invite {
  /** `"7K3M-QX2P"` */
  code: string;
  expiresAtMs: number;
}

/** Creates, checks and consumes codes. */
export interface EnrolmentCodes {
  /** Creates an invite. @param rpId The only RP ID for which it's valid; by default any. */
  invite(rpId?: string): Invite;
  /**
   * Checks a code that a user typed or a link contains.
   *
   * @param place.isInGrace The pairing code is valid only then.
   * @param address Address of the client; its wrong codes are counted.
   * @throws {AppError} `pairing_code_required` if the code is wrong, used or expired; `too_many_requests` with
   *   `Retry-After` after too many wrong codes from the address.
   */
  check(code: string, place: { rpId: string; isInGrace: boolean }, address: string): CodeTicket;
  /** Consumes a checked code. @throws {AppError} `pairing_code_required` if it was already used or replaced. */
  consume(ticket: CodeTicket): void;
}

interface Code extends CodeTicket {
  /** The code without its hyphen. */
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
    const code = { kind, text: createCode(), rpId, endsAtMs, wrongTries: 0 };
    codes.add(code);
    return code;
  }

  function addPairingCode(): void {
    if (announcePairingCode !== undefined) announcePairingCode(formatCode(add("pairing", undefined, Infinity).text));
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
      return { code: formatCode(text), expiresAtMs: endsAtMs };
    },
    check(typed, { rpId, isInGrace }, address) {
      const client = getClientKey(address);
      const tries = clients.get(client);
      if (tries !== undefined && tries.wrongTries >= MAX_WRONG_TRIES && tries.endsAtMs > now()) {
        throw new AppError("too_many_requests", "Too many wrong codes from this address. Try again later", {
          retryAfterSeconds: (tries.endsAtMs - now()) / 1000,
        });
      }
      const text = normalizeCode(typed);
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

function createCode(): string {
  return Array.from(randomBytes(CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

function formatCode(text: string): string {
  return `${text.slice(0, CODE_LENGTH / 2)}-${text.slice(CODE_LENGTH / 2)}`;
}

/** Normalizes a typed code: case, spaces and look-alike letters. */
function normalizeCode(typed: string): string {
  return typed.toUpperCase().replace(/[\s-]/g, "").replaceAll("O", "0").replace(/[IL]/g, "1");
}

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && nodeCrypto().timingSafeEqual(a, b);
}

const HOUR_MS = 60 * 60 * 1000;
/** Number of hours that `countRecent` covers. */
const HOURS = 24;
const WINDOW_MS = 5 * 60 * 1000;
/** Failures per address and window before a 429 response. */
const MAX_PER_CLIENT = 100;
/** The same for all addresses together: a flood from many of them. */
const MAX_IN_ALL = 2_000;

interface Window {
  count: number;
  endsAtMs: number;
}

/** Counts failed authentications. Valid credentials never count, so they're never locked out. */
export interface FailureLimiter {
  /**
   * Counts a failure.
   *
   * @param address Address of the client.
   * @param failure The error to return below the limit.
   * @param attempt The refused sign-in, for the log.
   * @returns `failure`, or `too_many_requests` above the limit.
   */
  count(address: string, failure: AppError, attempt: RefusedAttempt): AppError;
  /** Logs a refused sign-in that another limit covers. It counts for `countRecent` only. */
  record(address: string, attempt: RefusedAttempt): void;
  /** Returns how many sign-ins were refused in the last 24 hours, or since the start if that is later. */
  countRecent(): number;
}

/** A refused sign-in, for the log. */
interface RefusedAttempt {
  method: "passkey" | "token" | "code";
  /** Why, if it's known. */
  reason?: string;
}

/** Creates a limiter without failures. */
export function createFailureLimiter(now: () => number, log: Log): FailureLimiter {
  const clients = new Map<string, Window>();
  let all: Window = { count: 0, endsAtMs: 0 };
  /** Refusals by hour since 1970. */
  const hours = new Map<number, number>();

  const createWindow = (): Window => ({ count: 0, endsAtMs: now() + WINDOW_MS });
  // If the clock is set back, the window must not become longer.
  const isOver = ({ endsAtMs }: Window) => endsAtMs <= now() || endsAtMs > now() + WINDOW_MS;

  function record(address: string, { method, reason }: RefusedAttempt): void {
    // The address is the first field: clients can influence the others, and a line must not seem to be about another
    // address.
    log("warn", "Refused a sign-in", { client: address, method, ...(reason && { reason: reason.slice(0, 200) }) });
    const hour = Math.floor(now() / HOUR_MS);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
    for (const old of hours.keys()) if (old <= hour - HOURS || old > hour) hours.delete(old);
  }

  return {
    record,
    count(address, failure, attempt) {
      record(address, attempt);
      const key = getClientKey(address);
      let window = clients.get(key);
      if (window === undefined || isOver(window)) {
        clients.delete(key);
        if (clients.size >= MAX_CLIENTS) clients.delete(clients.keys().next().value!);
        clients.set(key, window = createWindow());
      }
      if (isOver(all)) all = createWindow();
      window.count++;
      all.count++;
      const full = window.count > MAX_PER_CLIENT ? window : all.count > MAX_IN_ALL ? all : undefined;
      if (full === undefined) return failure;
      return new AppError("too_many_requests", "Too many failed sign-ins. Try again later", {
        retryAfterSeconds: (full.endsAtMs - now()) / 1000,
        cause: failure,
      });
    },
    countRecent() {
      const oldest = Math.floor(now() / HOUR_MS) - HOURS;
      return [...hours].reduce((sum, [hour, count]) => hour > oldest ? sum + count : sum, 0);
    },
  };
}
