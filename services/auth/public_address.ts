/** The check of an address that other devices are to use, made from outside as a phone would. */
import { AppError } from "../errors.ts";
import { parseOwnerUrl } from "../http/base_url.ts";
import { type HttpClient, openHttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { asObject, type JsonObject } from "../json/type_guards.ts";
import { isLoopbackName, parseAddress } from "./hosts.ts";

/** What a check can find, in the order in which it looks. */
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

/** What a check found. */
type AddressCheckResult = typeof ADDRESS_CHECK_RESULTS[number];

const LIMIT_MS = 5_000;
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Checks an address from outside, by the way that a phone takes. No credentials are sent.
 *
 * A router may not lead its own network to its public address, so `unreachable` doesn't mean that others can't reach it.
 *
 * @param client Default: one of its own, for this check.
 * @throws {AppError} `invalid_request` unless it is HTTPS and a name that others can have; `address_not_allowed`
 */
export async function checkPublicAddress(address: string, client?: HttpClient): Promise<AddressCheckResult> {
  const url = parseOwnerUrl(address);
  if (url.protocol !== "https:" || isLoopbackName(url.hostname) || parseAddress(url.hostname) !== undefined) {
    const message = "the address must start with https:// and have a name that other devices can resolve";
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
    // The status is open on every host, so that a new one can get its first passkey. Everything else isn't.
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
    return {}; // A page, say: another server.
  }
}

function isHostRefusal(body: JsonObject): boolean {
  return asObject(body.error).code === "host_not_allowed";
}

function toResult({ kind }: UpstreamError): AddressCheckResult {
  return kind === "unresolved" || kind === "certificate" ? kind : "unreachable";
}
