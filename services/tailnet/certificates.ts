/** Requests the HTTPS certificate of the node before its https URL is shown (docs/protocols/tailscale.md, "HTTPS certificates"). */
import { messageOf } from "../errors.ts";
import type { LocalApi } from "./local_api.ts";
import type { NodeTimes } from "./node_status.ts";

/** State of the certificate. */
export type CertificateState =
  | { kind: "asked" }
  | { kind: "ready" }
  /** `reason` is a complete sentence for the owner. */
  | { kind: "refused"; reason: string };

/** Consequence of both refusals. */
const CONSEQUENCE = "so the address is plain HTTP, where browsers make no passkeys";

/** Requests one certificate at a time. */
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
   * Returns the state for a name. Requests the certificate if needed.
   *
   * @param domains Names the tailnet issues certificates for.
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

  /** @param state The state until the response arrives. */
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
