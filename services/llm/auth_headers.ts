/** The header that carries the key of a connection. */
import { toHeaderKey } from "../http/api_key.ts";
import { getTargetDialect, type UpstreamTarget } from "./provider.ts";

/** Returns the header in the dialect of the server, or no header without a key. @throws {AppError} `invalid_request` */
export function createAuthHeaders(target: UpstreamTarget): Record<string, string> {
  const key = toHeaderKey(target.apiKey);
  if (key === undefined) return {};
  const { keyHeader } = getTargetDialect(target);
  return keyHeader === "authorization" ? { authorization: `Bearer ${key}` } : { [keyHeader]: key };
}
