/** What a speech server's refusal says, in the several shapes they have (tts.md, sections 1.2 and 3). */
import { AppError } from "../errors.ts";

const MAX_ERROR_BYTES = 64 * 1024;
const MAX_SAID = 500;

/**
 * Reads a refusal and makes its error.
 *
 * @param place The server as shown to the owner.
 * @param apiKey Taken out of whatever the server says (SECURITY-CASES.md, U03).
 */
export async function refusalOf(place: string, response: Response, apiKey: string | undefined): Promise<AppError> {
  const text = masked(await readStart(response), apiKey);
  const said = reported(text);
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
  const text = masked(new TextDecoder().decode(start), apiKey).trim();
  const said = text.startsWith("{") ? reported(text) : undefined;
  const found = start.length === 0 ? "an empty answer" : said ?? "something that is no audio";
  return new AppError("upstream_error", `The speech server at "${place}" gave no audio: ${found}`);
}

/** The error in the text of a body: nested, flat, or the `detail` of a validation. */
function reported(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim() === "" || text.trimStart().startsWith("<") ? undefined : text.trim().slice(0, MAX_SAID);
  }
  const found = messageIn(value, 0);
  return found === undefined ? undefined : found.trim().replace(/\.+$/, "").slice(0, MAX_SAID);
}

function messageIn(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (depth > 4 || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return messageIn(value[0], depth + 1);
  const fields = value as Record<string, unknown>;
  for (const name of ["error", "detail", "message", "msg"]) {
    const found = messageIn(fields[name], depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function readStart(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      size += chunk.length;
      if (size >= MAX_ERROR_BYTES) break;
    }
  } catch {
    // What came before the break says enough; the status is known in any case.
  }
  return text;
}

function masked(text: string, apiKey: string | undefined): string {
  return apiKey === undefined || apiKey.length < 4 ? text : text.replaceAll(apiKey, "[key]");
}
