/** Checks from outside whether other devices can use an address of this server. */
import { AppError } from "../errors.ts";
import { parseOwnerUrl } from "../http/base_url.ts";
import { type HttpClient, openHttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { asObject, type JsonObject } from "../json/type_guards.ts";
import { isLoopbackName, parseAddress } from "./hosts.ts";

/** Possible results of a check, in the order in which they are tested. */
export const ADDRESS_CHECK_RESULTS = [
  "unresolved",
  "unreachable",
  "certificate",
  "host_not_allowed",
  "other_server",
  "proxy_headers",
  "host_changed",
  "ok",
] as const;

/** Result of a check. */
type AddressCheckResult = typeof ADDRESS_CHECK_RESULTS[number];

const LIMIT_MS = 5_000;
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Checks an address from outside, like a phone would. No credentials are sent.
 *
 * Some routers don't route their own network to their public address, so `unreachable` doesn't mean that others can't
 * reach it.
 *
 * @param client By default a new one.
 * @throws {AppError} `invalid_request` unless it's HTTPS and a name that other devices can resolve;
 *   `address_not_allowed`
 */
export async function checkPublicAddress(address: string, client?: HttpClient): Promise<AddressCheckResult> {
  const url = parseOwnerUrl(address);
  if (url.protocol !== "https:" || isLoopbackName(url.hostname) || parseAddress(url.hostname) !== undefined) {
    const message =
      "Can't check the address: it must start with https:// and have a name that other devices can resolve";
    throw new AppError("invalid_request", message, { issues: [{ path: "url", message }] });
  }
  const used = client ?? openHttpClient({ keepsConnections: false });
  try {
    const status = await readJson(used, url.origin, "/api/auth/status");
    if (isHostRefusal(status)) return "host_not_allowed";
    const { rp_id: rpId, origin: seen, hint } = status;
    if (typeof rpId !== "string" || typeof seen !== "string" || !URL.canParse(seen)) return "other_server";
    const seenUrl = new URL(seen);
    if (hint !== undefined || seenUrl.protocol !== "https:") return "proxy_headers";
    if (seenUrl.hostname !== url.hostname) return "host_changed";
    // The setup status is open on every host, so that a new host can get its first passkey. All other paths require an
    // allowed host.
    return isHostRefusal(await readJson(used, url.origin, "/api/setup/status")) ? "host_not_allowed" : "ok";
  } catch (error) {
    if (error instanceof UpstreamError) return toResult(error);
    throw error;
  } finally {
    if (client === undefined) used.close();
  }
}

async function readJson(client: HttpClient, origin: string, path: string): Promise<JsonObject> {
  const timeouts = { connectMs: LIMIT_MS, firstByteMs: LIMIT_MS, idleMs: LIMIT_MS };
  const request = { url: origin + path, headers: { accept: "application/json" }, redirect: "manual" } as const;
  const response = await client.fetch("the server", { baseUrl: origin, timeouts }, request);
  const text = await readText(response, MAX_BODY_BYTES);
  try {
    return asObject(JSON.parse(text));
  } catch {
    return {}; // For example an HTML page of another server.
  }
}

function isHostRefusal(body: JsonObject): boolean {
  return asObject(body.error).code === "host_not_allowed";
}

function toResult({ kind }: UpstreamError): AddressCheckResult {
  return kind === "unresolved" || kind === "certificate" ? kind : "unreachable";
}
