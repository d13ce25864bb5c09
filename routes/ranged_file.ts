/** Files as answers, whole or in the part that a Range header names: players of audio ask for it. */
import { AppError } from "../services/errors.ts";

/**
 * Answers with a file and closes it at the end.
 *
 * A range that cannot be had, or several at once, are answered with the whole file, as RFC 9110, section 14.2 allows.
 *
 * @param range The Range header.
 */
export async function fileAnswer(
  file: Deno.FsFile,
  options: { sizeBytes: number; range: string | undefined; headers: Record<string, string> },
): Promise<Response> {
  const { sizeBytes } = options;
  const headers = new Headers({ ...options.headers, "Accept-Ranges": "bytes" });
  const part = rangeOf(options.range, sizeBytes);
  if (part === undefined) {
    headers.set("Content-Length", String(sizeBytes));
    return new Response(file.readable, { headers });
  }
  const length = part.end - part.start + 1;
  headers.set("Content-Length", String(length));
  headers.set("Content-Range", `bytes ${part.start}-${part.end}/${sizeBytes}`);
  try {
    await file.seek(part.start, Deno.SeekMode.Start);
  } catch (cause) {
    file.close();
    throw new AppError("internal", "Cannot read the file at the place asked for", { cause });
  }
  return new Response(file.readable.pipeThrough(firstBytes(length)), { status: 206, headers });
}

/** Reads `bytes=a-b`, `bytes=a-` and `bytes=-n`; both ends are part of it. */
function rangeOf(header: string | undefined, sizeBytes: number): { start: number; end: number } | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return undefined;
  const [first, last] = [match[1]!, match[2]!];
  const start = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  return start <= end ? { start, end } : undefined;
}

function firstBytes(length: number): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let left = length;
  return new TransformStream({
    transform(chunk, controller) {
      const taken = chunk.subarray(0, left);
      left -= taken.length;
      if (taken.length > 0) controller.enqueue(taken);
      if (left === 0) controller.terminate();
    },
  });
}
