/** The addresses on which Parlor itself listens. No outbound request may lead to them. */
import { unwrapAddress } from "./guard/target_policy.ts";

/** One listening socket. */
export interface OwnListener {
  /** An address; `"0.0.0.0"`, `"::"` and names stand for all addresses of this machine. */
  hostname: string;
  port: number;
}

/** The content as JSON. */
export interface OwnListenersCopy {
  listeners: OwnListener[];
  nodeAddresses: string[];
}

const LOOPBACK = /^(127\.|::1$)/;
const UNSPECIFIED = new Set(["0.0.0.0", "::"]);

/** Knows what Parlor listens on. */
export class OwnListeners {
  readonly #listeners: Set<OwnListener>;
  #nodeAddresses: readonly string[] = [];

  constructor({ listeners = [], nodeAddresses = [] }: Partial<OwnListenersCopy> = {}) {
    this.#listeners = new Set(listeners);
    this.#nodeAddresses = nodeAddresses;
  }

  /** Adds a listener. @returns Removes it. */
  add(listener: OwnListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Sets the addresses of the tailnet node, which forwards all its ports to this machine. */
  setNodeAddresses(addresses: readonly string[]): void {
    this.#nodeAddresses = addresses.flatMap(unwrapAddress);
  }

  /** Returns a copy for Workers. */
  toJSON(): OwnListenersCopy {
    return { listeners: [...this.#listeners], nodeAddresses: [...this.#nodeAddresses] };
  }

  /**
   * Reports whether a connection ends at one of the listeners.
   *
   * @param address An IP address in any form, also IPv4 inside IPv6.
   */
  includes(address: string, port: number): boolean {
    const forms = unwrapAddress(address);
    if (forms.some((form) => this.#nodeAddresses.includes(form))) return true;
    for (const listener of this.#listeners) {
      if (listener.port === port && forms.some((form) => reaches(form, listener.hostname))) return true;
    }
    return false;
  }
}

function reaches(address: string, hostname: string): boolean {
  // The system sends the unspecified address to this machine.
  if (UNSPECIFIED.has(address)) return true;
  const host = hostname === "localhost" ? ["127.0.0.1", "::1"] : unwrapAddress(hostname.replace(/^\[|\]$/g, ""));
  if (host.includes(address)) return true;
  const isEveryAddress = host.length === 0 || UNSPECIFIED.has(host[0]!);
  return isEveryAddress && (LOOPBACK.test(address) || isOnThisMachine(address));
}

/** Only addresses of this machine can be bound. Unlike a list of its interfaces, this needs no permission and is never old. */
function isOnThisMachine(address: string): boolean {
  try {
    Deno.listen({ hostname: address, port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}
