/** Challenges of running ceremonies: valid once, for five minutes, in the ceremony and browser that started it. */
import { randomToken } from "../crypto/random.ts";
import { getClientKey } from "./hosts.ts";

/** Lifetime of a challenge (docs/protocols/auth.md#ceremonies). */
export const CHALLENGE_MS = 5 * 60 * 1000;
/** Maximum number of running ceremonies. Beyond it, the client with the most loses its oldest. */
const MAX_IN_ALL = 4_096;
/** The same for one client. */
const MAX_PER_CLIENT = 512;

/** What a challenge is valid for. */
export interface CeremonyScope {
  kind: "register" | "login";
  rpId: string;
  /** `scheme://host[:port]` */
  origin: string;
  /** Identifies the browser. */
  browser: string;
}

/** Stores challenges, each with the state of its ceremony. */
export interface Challenges<T> {
  /** @param address Address of the client, for the limits. @returns The challenge: 32 random bytes, base64url. */
  issue(scope: CeremonyScope, address: string, memory: T): string;
  /**
   * Uses a challenge up, whether it fits or not.
   *
   * @returns What `issue` was given, or `undefined` when it is unknown, over, or of another scope.
   */
  take(challenge: string, scope: CeremonyScope): T | undefined;
}

interface Entry<T> {
  scope: CeremonyScope;
  client: string;
  endsAtMs: number;
  memory: T;
}

/** Creates an empty store. */
export function createChallenges<T>(now: () => number): Challenges<T> {
  const entries = new Map<string, Entry<T>>();
  /** Challenges by client, oldest first. */
  const clients = new Map<string, Set<string>>();

  function remove(challenge: string): Entry<T> | undefined {
    const entry = entries.get(challenge);
    if (entry === undefined) return undefined;
    entries.delete(challenge);
    const own = clients.get(entry.client)!;
    own.delete(challenge);
    if (own.size === 0) clients.delete(entry.client);
    return entry;
  }

  function removeOldestOf(challenges: Set<string>): void {
    remove(challenges.values().next().value!);
  }

  function makeRoom(): void {
    // Entries are in the order of creation, so expired ones come first.
    for (const [challenge, { endsAtMs }] of entries) {
      if (endsAtMs > now()) break;
      remove(challenge);
    }
    if (entries.size < MAX_IN_ALL) return;
    let most = new Set<string>();
    for (const own of clients.values()) if (own.size > most.size) most = own;
    removeOldestOf(most);
  }

  return {
    issue(scope, address, memory) {
      makeRoom();
      const client = getClientKey(address);
      const own = clients.get(client) ?? new Set();
      if (own.size >= MAX_PER_CLIENT) removeOldestOf(own);
      const challenge = randomToken(32);
      clients.set(client, own.add(challenge));
      entries.set(challenge, { scope, client, endsAtMs: now() + CHALLENGE_MS, memory });
      return challenge;
    },
    take(challenge, scope) {
      const entry = remove(challenge);
      if (entry === undefined || entry.endsAtMs <= now()) return undefined;
      const isSame = entry.scope.kind === scope.kind && entry.scope.rpId === scope.rpId &&
        entry.scope.origin === scope.origin && entry.scope.browser === scope.browser;
      return isSame ? entry.memory : undefined;
    },
  };
}
