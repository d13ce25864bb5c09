/** Files as answers, whole or in the part that a Range header names: players of audio ask for it. */
import { AppError } from "../../services/errors.ts";
import { matchesStrongly, parseTagList } from "../../services/storage/preconditions.ts";
import { etag } from "./etag.ts";

/** A file to answer with. */
export interface RangedFile {
  sizeBytes: number;
  /** Changes whenever the bytes do. */
  version: string;
  /** Headers of the request. */
  asked: { range?: string; "if-range"?: string };
  headers: Record<string, string>;
}

/**
 * Answers with a file and closes it at the end.
 *
 * Several ranges at once, a range that can't be read, and one of another version (`If-Range`) are answered with the whole
 * file, as RFC 9110, sections 13.1.5 and 14.2 say.
 *
 * @throws {AppError} `range_not_satisfiable` for a range that begins at or beyond the end; the file is closed
 */
export async function fileAnswer(file: Deno.FsFile, options: RangedFile): Promise<Response> {
  const { sizeBytes, version, asked } = options;
  const headers = new Headers({ ...options.headers, "Accept-Ranges": "bytes", "ETag": etag(version) });
  const ifRange = asked["if-range"];
  // A date never equals a tag: without Last-Modified there is nothing to compare it with.
  const isSameVersion = ifRange === undefined || matchesStrongly(parseTagList(ifRange), version);
  const part = isSameVersion ? rangeOf(asked.range, sizeBytes) : undefined;
  if (part === undefined) {
    headers.set("Content-Length", String(sizeBytes));
    return new Response(file.readable, { headers });
  }
  if (part === "beyond") {
    file.close();
    throw new AppError(
      "range_not_satisfiable",
      `The range starts after the end of the file, which has ${sizeBytes} bytes`,
      {
        contentRange: `bytes */${sizeBytes}`,
      },
    );
  }
  const length = part.end - part.start + 1;
  headers.set("Content-Length", String(length));
  headers.set("Content-Range", `bytes ${part.start}-${part.end}/${sizeBytes}`);
  try {
    await file.seek(part.start, Deno.SeekMode.Start);
  } catch (cause) {
    file.close();
    throw new AppError("internal", "Can't read this range of the file", { cause });
  }
  return new Response(file.readable.pipeThrough(firstBytes(length)), { status: 206, headers });
}

/** Reads `bytes=a-b`, `bytes=a-` and `bytes=-n`; both ends are part of it. */
function rangeOf(
  header: string | undefined,
  sizeBytes: number,
): { start: number; end: number } | "beyond" | undefined {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})$/i.exec(header?.trim() ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return undefined;
  const [first, last] = [match[1]!, match[2]!];
  if (first === "") {
    const start = Math.max(0, sizeBytes - Number(last));
    return start < sizeBytes ? { start, end: sizeBytes - 1 } : "beyond";
  }
  if (last !== "" && Number(last) < Number(first)) return undefined;
  if (Number(first) >= sizeBytes) return "beyond";
  return { start: Number(first), end: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
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
