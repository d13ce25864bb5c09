/** What the runtime's connection errors mean in plain words. */

/** Why no answer came at all. */
export type ConnectFailureKind =
  | "refused" // nothing listens there
  | "unresolved" // no such host name
  | "unreachable" // no answer in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where none is spoken
  | "interrupted" // closed before or in the middle of an answer
  | "blocked" // a port that is closed to HTTP (Fetch standard, "bad port")
  | "failed"; // anything else

// The runtime gives one TypeError for all of them; the words stand in its message or its cause's (Deno 2.6 and 2.9).
const FINDINGS: [RegExp, ConnectFailureKind, string][] = [
  [/refused/i, "refused", "connection refused, nothing listens there"],
  [/dns error|lookup|resolve/i, "unresolved", "the host name is unknown"],
  [/certificate|UnknownIssuer|NotValidForName/i, "certificate", "its TLS certificate is not trusted"],
  [/InvalidContentType|corrupt message|tls|handshake|\bssl\b/i, "protocol", "it does not speak HTTPS"],
  [/invalid HTTP|parsed|parse error/i, "protocol", "it does not speak HTTP"],
  [/closed before message|reset|broken pipe/i, "interrupted", "the connection was closed without an answer"],
  [/reading a body/i, "interrupted", "its answer broke off"],
  [/are blocked/i, "blocked", "this port is closed to HTTP by convention"],
  [/timed out|unreachable|no route/i, "unreachable", "no answer from that address"],
];

/** Says what an error of `fetch` or of reading a body means; `finding` ends the sentence "Cannot reach …: ". */
export function connectFinding(thrown: unknown): { kind: ConnectFailureKind; finding: string } {
  const text = textOf(thrown);
  const found = FINDINGS.find(([pattern]) => pattern.test(text));
  return found ? { kind: found[1], finding: found[2] } : { kind: "failed", finding: "the call failed" };
}

/** The messages of an error and its causes, without the address, whose words must not be taken for findings. */
function textOf(thrown: unknown): string {
  let text = "";
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 4; depth++) {
    text += ` ${current.message}`;
    current = current.cause;
  }
  return text.replace(/https?:\/\/\S+/g, "");
}
