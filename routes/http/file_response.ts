/** File responses: as a download, as JSON, or the range of a Range header. */
import { writeJsonIncrementally } from "../../services/json/incremental_write.ts";
import type { AppContext } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";
import { normalized } from "../../services/json/text.ts";
import { toFileName } from "../../services/storage/ids.ts";
import { matchesStrongly, parseTagList } from "../../services/storage/preconditions.ts";
import { passRawResponse } from "./raw_response.ts";
import { formatEtag } from "./etag.ts";

/** A file in a response. */
export interface RangedFile {
  sizeBytes: number;
  /** Changes whenever the bytes change. */
  version: string;
  /** Headers of the request. */
  asked: { range?: string; "if-range"?: string };
  headers: Record<string, string>;
}

/**
 * Responds with a file, and closes it at the end.
 *
 * Several ranges at once, a range that can't be read, and one of another version (`If-Range`) get the whole file (RFC
 * 9110, sections 13.1.5 and 14.2).
 *
 * @throws {AppError} `range_not_satisfiable` if the range starts at or after the end of the file, which is then closed
 */
export async function sendFile(file: Deno.FsFile, options: RangedFile): Promise<Response> {
  let answer: RangedResponse;
  try {
    answer = toRangedResponse(options);
    if (answer.part !== undefined) await seekTo(file, answer.part.start);
  } catch (error) {
    file.close();
    throw error;
  }
  const { status, headers, part } = answer;
  const body = part === undefined ? file.readable : file.readable.pipeThrough(limitStream(part.end - part.start + 1));
  return new Response(body, { status, headers });
}

/** Status and headers of a response, and the part of the file to send. `part` is omitted for the whole file. */
export interface RangedResponse {
  status: 200 | 206;
  headers: Headers;
  part?: { start: number; end: number };
}

/** Decides which part of a file to send; see `sendFile`. @throws {AppError} `range_not_satisfiable` */
export function toRangedResponse({ sizeBytes, version, asked, headers: given }: RangedFile): RangedResponse {
  const headers = new Headers({ ...given, "Accept-Ranges": "bytes", "ETag": formatEtag(version) });
  const ifRange = asked["if-range"];
  // A date never matches, because responses have no Last-Modified.
  const isSameVersion = ifRange === undefined || matchesStrongly(parseTagList(ifRange), version);
  const part = isSameVersion ? parseRange(asked.range, sizeBytes) : undefined;
  if (part === undefined) {
    headers.set("Content-Length", String(sizeBytes));
    return { status: 200, headers };
  }
  if (part === "beyond") {
    throw new AppError(
      "range_not_satisfiable",
      `The range starts after the end of the file, which has ${sizeBytes} bytes`,
      { contentRange: `bytes */${sizeBytes}` },
    );
  }
  headers.set("Content-Length", String(part.end - part.start + 1));
  headers.set("Content-Range", `bytes ${part.start}-${part.end}/${sizeBytes}`);
  return { status: 206, headers, part };
}

async function seekTo(file: Deno.FsFile, offset: number): Promise<void> {
  try {
    await file.seek(offset, Deno.SeekMode.Start);
  } catch (cause) {
    throw new AppError("internal", "Can't read this range of the file", { cause });
  }
}

/** Parses `bytes=a-b`, `bytes=a-` and `bytes=-n`. Both ends are inclusive. */
function parseRange(
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

function limitStream(length: number): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let left = length;
  return new TransformStream({
    transform(chunk, controller) {
      const sent = chunk.subarray(0, left);
      left -= sent.length;
      if (sent.length > 0) controller.enqueue(sent);
      if (left === 0) controller.terminate();
    },
  });
}

/** Responds with an indented JSON file to save. */
export async function sendJsonFile(c: AppContext, fileName: string, json: unknown): Promise<never> {
  const headers = { "Content-Type": "application/json", "Content-Disposition": formatAttachmentHeader(fileName) };
  return passRawResponse(c.body(await writeJsonIncrementally(json, 4), 200, headers));
}

/** Value of `X-Parlor-Warning` on an export that exceeds the import limit of its kind. */
export const TOO_LARGE_TO_IMPORT = "larger_than_import_limit";

/**
 * Returns a Content-Disposition header that saves a file. The name may contain any characters.
 *
 * @see RFC 6266, section 4.3 and appendix D: an ASCII name for old clients, then the full name
 */
export function formatAttachmentHeader(fileName: string): string {
  const name = toFileName(fileName);
  const plain = normalized(name, "NFKD").replace(/\p{M}+/gu, "").replace(/[^\x20-\x7e]+/g, "_");
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
