/** Keys as header values. */
import { AppError } from "../errors.ts";

/**
 * Gives a key ready for a header, or `undefined` when there is none.
 *
 * Checked here because the runtime's own complaint about a bad header value quotes the value.
 *
 * @throws {AppError} `invalid_request` when the key holds characters that no header can carry
 */
export function headerKey(apiKey: string | undefined): string | undefined {
  const key = apiKey?.trim();
  if (key === undefined || key === "") return undefined;
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new AppError(
      "invalid_request",
      "Cannot use the API key: it holds spaces or characters other than plain ASCII",
    );
  }
  return key;
}
