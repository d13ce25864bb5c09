/** Reads response bodies up to a limit. */

/** Reads a body as text. Text beyond `maxBytes` is dropped and the connection closed. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let sizeBytes = 0;
  for await (const chunk of response.body) {
    sizeBytes += chunk.length;
    const excess = Math.max(0, sizeBytes - maxBytes);
    text += decoder.decode(chunk.subarray(0, chunk.length - excess), { stream: true });
    if (sizeBytes >= maxBytes) break;
  }
  return text + decoder.decode();
}

/** Reads a whole body. Returns undefined and closes the connection if the body is longer than `maxBytes`. */
export async function readBytes(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return undefined;
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
