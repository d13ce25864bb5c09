/** Text of an answer, however long it claims to be. */

/** Reads a body as text up to a cap; what lies beyond is dropped and the connection with it. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    text += decoder.decode(size > maxBytes ? chunk.subarray(0, chunk.length - (size - maxBytes)) : chunk, {
      stream: true,
    });
    if (size >= maxBytes) break;
  }
  return text + decoder.decode();
}
