/** The certificate of the node's name: asked for before anybody is sent to an https address. */
import { messageOf } from "../errors.ts";
import type { LocalApi } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";

/** How it stands. */
export type CertificateState =
  | { kind: "asked" }
  | { kind: "ready" }
  /** `reason` is a whole sentence for the owner. */
  | { kind: "refused"; reason: string };

/** Why the plain address is no good for signing in, for both refusals. */
const CONSEQUENCE = "so the address is plain HTTP, where browsers make no passkeys";

/** Asks for one at a time. */
export class Certificates {
  readonly #api: LocalApi;
  readonly #times: NodeTimes;
  readonly #onChange: () => void;
  #known: { fqdn: string; state: CertificateState; againAtMs: number } | undefined;

  constructor(api: LocalApi, times: NodeTimes, onChange: () => void) {
    this.#api = api;
    this.#times = times;
    this.#onChange = onChange;
  }

  /**
   * Says how it stands for a name, and asks where nobody has.
   *
   * @param domains Names for which the tailnet gives certificates.
   */
  stateFor(fqdn: string, domains: readonly string[], signal: AbortSignal): CertificateState {
    if (!domains.includes(fqdn)) {
      this.#known = undefined;
      const how = "its admin console can switch on MagicDNS and HTTPS certificates";
      return { kind: "refused", reason: `The tailnet gives no HTTPS certificates, ${CONSEQUENCE}; ${how}` };
    }
    if (this.#known?.fqdn !== fqdn) this.#ask(fqdn, { kind: "asked" }, signal);
    else if (performance.now() >= this.#known.againAtMs) this.#ask(fqdn, this.#known.state, signal);
    return this.#known!.state;
  }

  /** @param state What holds until the answer is there. */
  #ask(fqdn: string, state: CertificateState, signal: AbortSignal): void {
    const asked = { fqdn, state, againAtMs: Infinity };
    this.#known = asked;
    this.#api.fetchCertificate(fqdn, this.#times.certificateMs, signal).then(
      () => void (asked.state = { kind: "ready" }),
      (error) => {
        asked.state = {
          kind: "refused",
          reason: `There is no HTTPS certificate for ${fqdn}, ${CONSEQUENCE}: ${messageOf(error)}`,
        };
        asked.againAtMs = performance.now() + this.#times.certificateAgainMs;
      },
    ).finally(this.#onChange);
  }
}
