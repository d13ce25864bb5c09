/** Decodes compressed responses. `fetch` only decodes what it asked for itself, and some gateways compress regardless. */
import { Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";

// Flushes what has arrived, and accepts a body that ends without a trailer.
const SYNC = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

/**
 * Returns a response whose body is decoded by its `Content-Encoding`: gzip, deflate, br and zstd, also several of them. An
 * unknown coding is left as it is.
 *
 * @param createError Creates the error for a body that can't be decoded.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-8.4
 */
export function decodeBody(response: Response, createError: (coding: string) => Error): Response {
  const codings = (response.headers.get("content-encoding") ?? "").toLowerCase().split(",")
    .map((coding) => coding.trim()).filter((coding) => coding !== "" && coding !== "identity");
  if (codings.length === 0 || response.body === null || !codings.every(isKnown)) return response;
  const decoded = codings.reduceRight<AsyncIterable<Uint8Array>>(
    (source, coding) => decode(source, coding, createError),
    response.body,
  )[Symbol.asyncIterator]();
  const headers = new Headers(response.headers);
  headers.delete("content-encoding");
  headers.delete("content-length");
  const body = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const { done, value } = await decoded.next();
      if (!done) return controller.enqueue(new Uint8Array(value));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    async cancel() {
      await decoded.return?.();
    },
  });
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

function isKnown(coding: string): boolean {
  return /^(x-)?gzip$|^deflate$|^br$|^zstd$/.test(coding);
}

async function* decode(
  source: AsyncIterable<Uint8Array>,
  coding: string,
  createError: (coding: string) => Error,
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done) return;
  const decoder = createDecoder(coding, first.value);
  let failure: unknown;
  const input = Readable.from(prepend(first.value, chunks));
  input.on("error", (error) => {
    failure = error;
    decoder.destroy(error);
  });
  input.pipe(decoder);
  try {
    for await (const chunk of decoder) yield chunk;
  } catch {
    throw failure ?? createError(coding);
  } finally {
    input.destroy();
    decoder.destroy();
  }
}

async function* prepend(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    for (;;) {
      const { done, value } = await rest.next();
      if (done) return;
      yield value;
    }
  } finally {
    await rest.return?.();
  }
}

function createDecoder(coding: string, first: Uint8Array): Transform {
  if (coding === "br") return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH });
  if (coding === "zstd") return createZstdDecompress();
  // Some servers omit the zlib header of "deflate": its low four bits are 8.
  if (coding === "deflate") return (first[0]! & 0x0f) === 8 ? createInflate(SYNC) : createInflateRaw(SYNC);
  return createGunzip(SYNC);
}
