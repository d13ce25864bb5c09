/**
 * A notification server of the owner.
 *
 * @see https://docs.ntfy.sh/publish/
 * @see https://gotify.net/docs/pushmsg
 */
import { AppError } from "../errors.ts";
import { type BoundKey, normalizeBaseUrl, toBearerHeader, updateBoundKey } from "../http/base_url.ts";
import { type HttpRequest, type HttpTarget, openHttpClient } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { createResponseError, findErrorMessage, readErrorText } from "../http/read_body.ts";

/** The supported programs. */
export const NOTIFY_KINDS = ["ntfy", "gotify"] as const;

/** A notification server. */
export interface NotifyServer {
  kind: typeof NOTIFY_KINDS[number];
  /** With ntfy, the URL of the topic; with Gotify, that of the server. */
  url: string;
  token?: BoundKey;
  /** True if it came with an import. It isn't used until the owner saves it. */
  isHeld?: true;
}

/**
 * A change of the notification server. Without a token, the stored one stays, unless the origin changes; `null` removes
 * it.
 */
export interface NotifyServerInput {
  kind: NotifyServer["kind"];
  url: string;
  token?: string | null;
}

/** Why a notification is sent. */
export type NoticeKind = "reply" | "approval" | "damage";

/** Complete texts of notifications. */
const TEXTS: Record<NoticeKind, string> = {
  reply: "A reply is ready",
  approval: "A reply needs you",
  damage: "Stored data is damaged or missing",
};
/** Gotify's app shows messages of priority 0, the default, nowhere; from 4 on they make a sound. @see https://github.com/gotify/android#message-priorities */
const GOTIFY_PRIORITY = 5;
const TIMEOUTS = { connectMs: 10_000, firstByteMs: 20_000, idleMs: 20_000 };

/** Applies a change. @throws {AppError} `invalid_request`, `address_not_allowed` */
export function updateNotifyServer({ kind, url, token }: NotifyServerInput, before: NotifyServer | null): NotifyServer {
  const address = normalizeBaseUrl(url);
  if (kind === "ntfy" && new URL(address).pathname === "/") {
    throw new AppError(
      "invalid_request",
      "Can't use the address: an ntfy address needs a topic, such as https://ntfy.sh/your-topic",
    );
  }
  const { key } = updateBoundKey(address, token, before?.token);
  return { kind, url: address, ...(key && { token: key }) };
}

/** Sends a notification. @throws {AppError} `upstream_error`, `upstream_timeout`; the caller's abort reason */
export async function sendNotice(
  { kind, url, token }: NotifyServer,
  notice: NoticeKind,
  signal: AbortSignal,
  ownListeners?: OwnListeners,
): Promise<void> {
  const client = openHttpClient({ ownListeners, keepsConnections: false });
  try {
    const target = { baseUrl: url, apiKey: token?.value, timeouts: TIMEOUTS } satisfies HttpTarget;
    const request = kind === "ntfy"
      ? {
        url,
        method: "POST" as const,
        headers: { ...toBearerHeader(token?.value), title: "Parlor" },
        body: TEXTS[notice],
      } satisfies HttpRequest
      : {
        url: `${url}/message`,
        method: "POST" as const,
        headers: { ...(token && { "x-gotify-key": token.value }), "content-type": "application/json" },
        body: JSON.stringify({ title: "Parlor", message: TEXTS[notice], priority: GOTIFY_PRIORITY }),
      } satisfies HttpRequest;
    const response = await client.fetch("the notification server", target, request, signal);
    if (response.ok) return await response.body?.cancel();
    const message = findErrorMessage(await readErrorText(response, token?.value));
    throw createResponseError("The notification server", target, response, message, {
      401: "check its token",
      403: "check its token",
      404: "check its address",
    });
  } finally {
    client.close();
  }
}
