/** Reads error responses of speech and image servers (docs/protocols/tts.md#speech-errors, docs/protocols/images.md#a1111-errors). */

const MAX_ERROR_BYTES = 64 * 1024;
const MAX_SAID = 500;

/**
 * Reads what a refusal says in words; `undefined` where it says nothing or is a page.
 *
 * @param apiKey Masked in the result.
 */
export async function readRefusal(response: Response, apiKey: string | undefined): Promise<string | undefined> {
  return reported(maskedText(await readStart(response), apiKey));
}

/** Finds the error in the text of a body: nested, flat, or the `detail` of a validation. */
export function reported(text: string): string | undefined {
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

/** Takes a key out of what a server said. */
export function maskedText(text: string, apiKey: string | undefined): string {
  return apiKey === undefined || apiKey.length < 4 ? text : text.replaceAll(apiKey, "[key]");
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
