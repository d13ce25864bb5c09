/** What the runtime's connection errors mean in plain words. */
import { UpstreamError, type UpstreamErrorKind } from "./upstream_error.ts";

// The runtime gives one TypeError for all of them; the words stand in its message or its cause's (Deno 2.6 and 2.9).
const FINDINGS: [RegExp, UpstreamErrorKind, string][] = [
  [/refused/i, "refused", "connection refused, nothing listens there"],
  [/dns error|lookup|resolve/i, "unresolved", "the host name is unknown"],
  [/certificate|UnknownIssuer|NotValidForName/i, "certificate", "its TLS certificate is not trusted"],
  [/InvalidContentType|corrupt message|tls|handshake|\bssl\b/i, "protocol", "it does not speak HTTPS"],
  [/invalid HTTP|parsed|parse error/i, "protocol", "it does not speak HTTP"],
  [/closed before message|reset|broken pipe/i, "interrupted", "the connection was closed without an answer"],
  [/reading a body/i, "interrupted", "its answer broke off"],
  [/are blocked/i, "failed", "this port is closed to HTTP by convention"],
  [/timed out|unreachable|no route/i, "unreachable", "no answer from that address"],
];

/** Makes the error for a call that got no answer at all. */
export function connectFailure(place: string, thrown: unknown): UpstreamError {
  const text = textOf(thrown);
  const found = FINDINGS.find(([pattern]) => pattern.test(text));
  const [kind, finding]: [UpstreamErrorKind, string] = found ? [found[1], found[2]] : ["failed", "the call failed"];
  return new UpstreamError(kind, `Cannot reach the model at "${place}": ${finding}`);
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
