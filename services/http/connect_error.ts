/** Explains the runtime's connection errors. */

/** Why there was no complete response. */
export type ConnectFailureKind =
  | "refused" // connection refused
  | "unresolved" // unknown host name
  | "unreachable" // no response in time, no route
  | "certificate" // TLS certificate not trusted
  | "protocol" // not HTTP, or TLS where the server speaks plain HTTP
  | "interrupted" // closed before or during the response
  | "blocked" // a bad port of the Fetch standard, https://fetch.spec.whatwg.org/#port-blocking
  | "failed"; // anything else

// The runtime throws a TypeError for all of them; only its message or its cause's tells them apart (Deno 2.6 and 2.9).
const REASONS: [RegExp, ConnectFailureKind, string][] = [
  [/refused/i, "refused", "connection refused"],
  [/dns error|lookup|resolve/i, "unresolved", "unknown host name"],
  [/certificate|UnknownIssuer|NotValidForName/i, "certificate", "its TLS certificate isn't trusted"],
  [/InvalidContentType|corrupt message|tls|handshake|\bssl\b/i, "protocol", "it doesn't speak HTTPS"],
  [/invalid HTTP|parsed|parse error/i, "protocol", "it doesn't speak HTTP"],
  [/closed before message|reset|broken pipe/i, "interrupted", "the connection was closed before a response"],
  [/reading a body/i, "interrupted", "the response was cut off"],
  [/are blocked/i, "blocked", "HTTP clients block this port"],
  [/timed out|unreachable|no route/i, "unreachable", "no response from this address"],
];

/**
 * Explains an error of `fetch` or of reading a response body.
 *
 * @returns `reason` completes the sentence `Can't reach "…": `.
 */
export function explainConnectError(thrown: unknown): { kind: ConnectFailureKind; reason: string } {
  const text = joinMessages(thrown);
  const found = REASONS.find(([pattern]) => pattern.test(text));
  return found ? { kind: found[1], reason: found[2] } : { kind: "failed", reason: "the request failed" };
}

/** Joins the messages of an error and its causes. URLs are removed: a host named "reset" must not match a pattern. */
function joinMessages(thrown: unknown): string {
  let text = "";
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 4; depth++) {
    text += ` ${current.message}`;
    current = current.cause;
  }
  return text.replace(/https?:\/\/\S+/g, "");
}
