/** HTTP client of the command line, with error messages for the terminal. */
import { type LocalServer, openLocalClient } from "../diagnostics/local_server.ts";
import { AppError } from "../errors.ts";
import { explainConnectError } from "../http/upstream_error.ts";

/** A server. Redirects aren't followed: a token is sent only to its own server. */
export interface ServerClient {
  readonly baseUrl: string;
  /**
   * Sends a request; a body goes as JSON.
   *
   * @throws {AppError} `upstream_error` if the server can't be reached or isn't Parlor; for a refusal the server's own
   *   code and message.
   */
  send(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  close(): void;
}

/** What a request carries. */
export interface RequestOptions {
  body?: unknown;
  headers?: Record<string, string>;
}

/** A successful response. */
export interface Answer {
  json: Record<string, unknown>;
  headers: Headers;
}

const ANSWER_WITHIN_MS = 30_000;

/** An error response of the server, with its status. */
export class ServerRefusal extends AppError {
  constructor(readonly status: number, code: AppError["code"], message: string) {
    super(code, message);
  }
}

/**
 * @param baseUrl As typed. A trailing slash is removed.
 * @param options.caCert PEM text of a certificate authority to trust in addition to the public ones.
 * @param options.connectTo Address to connect to instead of the URL's host.
 * @throws {AppError} `invalid_request` when it is no http or https address.
 */
export function openServerClient(
  baseUrl: string,
  options: { caCert?: string; connectTo?: LocalServer["connectTo"] } = {},
): ServerClient {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new AppError(
      "invalid_request",
      `Bad value for --base-url: expected an address such as https://chat.example.org`,
    );
  }
  const base = url.href.replace(/\/$/, "");
  const local = openLocalClient(options);

  return {
    baseUrl: base,
    close: () => local[Symbol.dispose](),
    async send(method, path, { body, headers = {} } = {}) {
      let response: Response;
      let text: string;
      try {
        response = await fetch(base + path, {
          method,
          client: local.client,
          redirect: "manual",
          headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" },
          body: body === undefined ? undefined : JSON.stringify(body),
          signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        });
        text = await response.text();
      } catch (cause) {
        throw new AppError("upstream_error", `Can't reach Parlor at "${base}": ${parseReason(cause)}`, { cause });
      }
      const json = parseObject(text);
      if (response.ok && (json !== undefined || text === "")) return { json: json ?? {}, headers: response.headers };
      const error = json?.error as { code?: AppError["code"]; message?: string } | undefined;
      if (typeof error?.code === "string") throw new ServerRefusal(response.status, error.code, error.message ?? "");
      throw new AppError("upstream_error", `"${base}" isn't a Parlor server: status ${response.status}`);
    },
  };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return { items: value };
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : undefined;
  } catch {
    return undefined;
  }
}

function parseReason(cause: unknown): string {
  if (cause instanceof DOMException && cause.name === "TimeoutError") {
    return `no response after ${ANSWER_WITHIN_MS / 1000} s`;
  }
  const { kind, reason } = explainConnectError(cause);
  if (kind === "refused") return `${reason}, is Parlor running?`;
  return kind === "certificate" ? `${reason}. Use --ca-cert FILE for a private certificate authority` : reason;
}
