/** Reads error responses of speech servers (docs/protocols/tts.md#speech-errors). */
import { AppError } from "../errors.ts";
import { maskedText, readRefusal, reported } from "../http/error_response.ts";

/**
 * Reads a refusal and makes its error.
 *
 * @param place The server as shown to the owner.
 * @param apiKey Masked in the result.
 */
export async function refusalOf(place: string, response: Response, apiKey: string | undefined): Promise<AppError> {
  const said = await readRefusal(response, apiKey);
  const shown = said === undefined ? `status ${response.status}` : `${said} (status ${response.status})`;
  const advice = response.status === 401 || response.status === 403
    ? " – check its API key"
    : response.status === 404
    ? " – check the address and the model's name"
    : response.status === 503
    ? " – its model may still be loading"
    : "";
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new AppError("upstream_error", `The speech server at "${place}" reported an error: ${shown}${advice}`, {
    retryAfterSeconds: Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds) : undefined,
  });
}

/** The error for JSON or a page that came with status 200 in place of audio. */
export function notAudio(place: string, start: Uint8Array, apiKey: string | undefined): AppError {
  const text = maskedText(new TextDecoder().decode(start), apiKey).trim();
  const said = text.startsWith("{") ? reported(text) : undefined;
  const found = start.length === 0 ? "an empty answer" : said ?? "something that is no audio";
  return new AppError("upstream_error", `The speech server at "${place}" gave no audio: ${found}`);
}
