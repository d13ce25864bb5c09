/** Switches and reports of the fake tailscaled. */

/** Switches of the fake. */
export interface Switches {
  /** Prints a message and exits with this code at start. */
  exitsWith?: number;
  /** Never opens its socket. */
  isMute?: boolean;
  /** Accepts requests without responding. */
  hangs?: boolean;
  /** Ignores SIGTERM. */
  isStubborn?: boolean;
  /** The control server cannot be reached: no sign-in address, a health message alone. */
  isControlDown?: boolean;
  /** An admin has to approve the node after the sign-in. */
  needsApproval?: boolean;
  /** Domain of the tailnet. */
  domain?: string;
  /** What control appends to a taken name. */
  nameSuffix?: string;
  /** `CertDomains` has the node's name, and this is what asking for the certificate gives. */
  certificate?: "good" | "refused" | "limited";
  /** Before the certificate's answer. */
  certificateMs?: number;
  logout?: "fails" | "hangs";
  /** Refuses every serve-config. */
  refusesServing?: boolean;
}

/** A call of its LocalAPI. */
export interface NodeCall {
  /** `"POST start"`, without a query. */
  call: string;
  status: number;
  /** Of a JSON object, but for a serve-config. */
  body?: Record<string, unknown>;
}

/** The state of the fake. */
export interface NodeFacts {
  pid: number;
  args: string[];
  environment: Record<string, string>;
  state: string;
  prefs: Record<string, unknown>;
  /** Ports that serve takes, and the keys of what it serves. */
  servedPorts: number;
  servedNames: string[];
  /** Target of serve. */
  target: string | null;
}

/** Where its forwarders listen on 127.0.0.1. */
export interface ForwarderPorts {
  /** The tailnet's port 80 and 443 of the node, the latter behind its TLS. */
  plain: number;
  secure: number;
  /** Every other way: a line with a port number, then the bytes for it. */
  raw: number;
}
