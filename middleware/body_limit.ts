/** Limits the size of request bodies. Bytes are counted while reading; Content-Length is only a hint. */
import type { MiddlewareHandler } from "hono";
import { type ByteBudget, type Reservation, UNCOUNTED_BYTES } from "../services/async/byte_budget.ts";
import { AppError } from "../services/errors.ts";
import { joinBytes } from "../services/storage/atomic_file.ts";
import { isNestedDeeper, isValueDeeper, parseJsonIncrementally } from "../services/json/incremental_parse.ts";
import {
  createEncodingError,
  createNestingError,
  MAX_JSON_DEPTH,
  MAX_PARSED_BYTES,
  UnparsedJson,
} from "../services/json/json_body.ts";
import type { Env } from "./env.ts";
import type { RouteFacts, RouteTable } from "./route_table.ts";

/** How long to wait for the next bytes of a body, so that slow clients don't hold memory forever. */
const DEFAULT_IDLE_MS = 30_000;

/** Bodies up to this size with a declared length are read in one step and don't count against the byte budget. */
const SMALL_BYTES = UNCOUNTED_BYTES;
/** Bytes of a large body per read. */
const READ_BYTES = 256 * 1024;
/** Larger JSON bodies are parsed in steps. At once, this size would block all streams for about 3 ms, and 64 MiB for 300 ms. */
const LONG_BYTES = 512 * 1024;

/**
 * Memory that a JSON body needs per byte while its request runs: the bytes, the parsed values, their text as stored, the
 * encrypted text, and garbage. Measured with conversations of 38 MB.
 */
const JSON_WEIGHT = 5;
/** The same for other bodies: the bytes, and what they're converted to. */
const RAW_WEIGHT = 2;

/**
 * Reads the whole body before its route runs, so that a body that's too large has no effect, even if the route ignores it.
 * Routes marked as streaming read the body themselves; it's counted as they read.
 *
 * Large bodies wait for space in the byte budget and count against it until the route has responded.
 *
 * @param options.defaultLimitBytes Limit for paths without a route.
 * @throws {AppError} `too_large`; `busy` if there is no space for the body; `invalid_json` if a JSON body isn't UTF-8;
 *   `invalid_request` if it's incomplete or nested too deep
 */
export function bodyLimit(options: {
  routes: () => RouteTable;
  defaultLimitBytes: number;
  budget: ByteBudget;
  idleMs?: number;
}): MiddlewareHandler<Env> {
  const { routes, defaultLimitBytes, budget, idleMs = DEFAULT_IDLE_MS } = options;
  return async (c, next) => {
    const request = c.req.raw;
    const route = routes().find(c.req.method, c.req.path);
    const limitBytes = route?.bodyLimitBytes ?? defaultLimitBytes;
    const declared = request.headers.get("content-length");
    if (declared !== null && Number(declared) > limitBytes) throw createTooLargeError(limitBytes);
    let reservation: Reservation | undefined;
    try {
      if (request.method === "GET" || request.method === "HEAD") {
        // The runtime doesn't expose the body of a GET, so one without a declared length can't be counted.
        if (request.headers.has("transfer-encoding")) {
          throw new AppError("too_large", "A GET request can't have a body");
        }
      } else if (request.body !== null && declared !== "0") {
        if (route?.isBodyStreamed) {
          c.req.raw = new Request(request, { body: limitBody(request.body, limitBytes, idleMs) });
        } else {
          const reserve = async (bytes: number) => {
            const weight = isJson(route) ? JSON_WEIGHT : RAW_WEIGHT;
            reservation = await budget.reserve(bytes * weight, { signal: request.signal });
          };
          const sizeBytes = declared === null ? undefined : Number(declared);
          const bytes = sizeBytes === undefined
            ? await readChunks(request.body, { limitBytes, idleMs, reserve: () => reserve(limitBytes) })
            : sizeBytes <= SMALL_BYTES
            ? await readSmall(request, idleMs)
            : (await reserve(sizeBytes), await readDeclared(request.body, sizeBytes, idleMs));
          const isEmpty = bytes.byteLength === 0;
          await cacheBody(c.req, bytes, route);
          if (isEmpty && hasOptionalBody(route)) removeContentType(c.req);
        }
      } else if (hasOptionalBody(route)) removeContentType(c.req);
      await next();
    } finally {
      reservation?.release();
    }
  };
}

function isJson(route: RouteFacts | undefined): boolean {
  return route?.bodyTypes.length === 1 && route.bodyTypes[0] === "application/json";
}

/** Returns whether the body of a route is optional, so that a request without one can have any Content-Type. */
function hasOptionalBody(route: RouteFacts | undefined): boolean {
  return route !== undefined && !route.isBodyRequired && route.bodyTypes.length > 0;
}

/** Removes Content-Type: many clients send it even without a body. */
function removeContentType(req: { raw: Request }): void {
  if (!req.raw.headers.has("content-type")) return;
  const headers = new Headers(req.raw.headers);
  headers.delete("content-type");
  req.raw = new Request(req.raw.url, { method: req.raw.method, headers, signal: req.raw.signal });
}

/** Caches the body where the router's validators look for it. */
async function cacheBody(
  req: { raw: Request; bodyCache: Partial<Record<string, unknown>>; json(): Promise<unknown> },
  bytes: Uint8Array<ArrayBuffer>,
  route: RouteFacts | undefined,
): Promise<void> {
  if (!isJson(route)) {
    req.bodyCache.arrayBuffer = Promise.resolve(bytes.buffer);
    return;
  }
  const isEmpty = bytes.byteLength === 0;
  const isPassedOn = route?.passesLongJson === true && bytes.byteLength > MAX_PARSED_BYTES;
  const isLong = !isPassedOn && bytes.byteLength > LONG_BYTES;
  try {
    if (isPassedOn) req.json = () => Promise.resolve(new UnparsedJson(bytes));
    else if (isLong) {
      const parsing = parseJsonIncrementally(bytes, MAX_JSON_DEPTH);
      req.json = () => parsing;
      await parsing;
      // Free the memory now: garbage collection would take much longer.
      bytes.buffer.transfer(0);
    } else {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      req.bodyCache.text = Promise.resolve(text);
      const json: unknown = JSON.parse(text);
      if (isValueDeeper(json, MAX_JSON_DEPTH)) throw createNestingError();
      req.json = () => Promise.resolve(json);
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof RangeError || (!isLong && isNestedDeeper(bytes, MAX_JSON_DEPTH))) throw createNestingError();
    // Invalid JSON is reported by the validators, after the path and the headers.
    if (!(cause instanceof SyntaxError)) throw createEncodingError(cause);
  }
  // The CORS middleware lets through any type that no HTML form can send. This path expects JSON, whatever its type says.
  if (!isEmpty && req.raw.headers.get("content-type") !== "application/json") {
    const headers = new Headers(req.raw.headers);
    headers.set("content-type", "application/json");
    req.raw = new Request(req.raw.url, { method: req.raw.method, headers, signal: req.raw.signal });
  }
}

/** Reads a small body in one step. The declared length is right: HTTP ensures that. */
async function readSmall(request: Request, idleMs: number): Promise<Uint8Array<ArrayBuffer>> {
  return await within(idleMs, request.bytes(), () => {});
}

/** Reads a body into one buffer of the size that its header declares. */
async function readDeclared(
  body: ReadableStream<Uint8Array>,
  sizeBytes: number,
  idleMs: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = openByteReader(body);
  if (reader === undefined) {
    const bytes = await readChunks(body, { limitBytes: sizeBytes, idleMs, createError: createIncompleteError });
    if (bytes.byteLength < sizeBytes) throw createIncompleteError();
    return bytes;
  }
  let buffer = new ArrayBuffer(sizeBytes);
  let at = 0;
  while (at < sizeBytes) {
    const { done, value } = await within(
      idleMs,
      reader.read(new Uint8Array(buffer, at, Math.min(READ_BYTES, sizeBytes - at))),
      () => reader.cancel().catch(() => {}),
    );
    if (value === undefined || done) throw createIncompleteError();
    buffer = value.buffer;
    at += value.byteLength;
  }
  // Also read the end of the body: otherwise the runtime closes the connection after the response.
  await within(idleMs, reader.read(new Uint8Array(1)), () => reader.cancel().catch(() => {}));
  return new Uint8Array(buffer);
}

/**
 * Opens a reader that uses one buffer for all reads, so that chunks aren't copied. Returns `undefined` if the body isn't a byte
 * stream, for example because the runtime already holds all of it.
 */
function openByteReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: "byob" });
  } catch (error) {
    if (error instanceof TypeError && !body.locked) return undefined;
    throw error;
  }
}

/**
 * Reads a body to its end.
 *
 * @param options.reserve Called once, before more than a small body is kept.
 */
async function readChunks(
  body: ReadableStream<Uint8Array>,
  options: { limitBytes: number; idleMs: number; createError?: () => AppError; reserve?: () => Promise<void> },
): Promise<Uint8Array<ArrayBuffer>> {
  const { limitBytes, idleMs, createError, reserve } = options;
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of limitBody(body, limitBytes, idleMs, createError)) {
    const before = sizeBytes;
    sizeBytes += chunk.byteLength;
    if (before <= SMALL_BYTES && sizeBytes > SMALL_BYTES) await reserve?.();
    chunks.push(chunk);
  }
  return joinBytes(chunks);
}

/** Passes a body on, and ends it with an error once it's too long or too slow. */
function limitBody(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  idleMs: number,
  createError = () => createTooLargeError(limitBytes),
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let size = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const result = await readWithin(reader, idleMs);
      if (result.done) return controller.close();
      size += result.value.byteLength;
      if (size > limitBytes) {
        await reader.cancel().catch(() => {});
        throw createError();
      }
      controller.enqueue(result.value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  idleMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  return within(idleMs, reader.read(), () => reader.cancel().catch(() => {}));
}

/** Waits for part of a body. @param onTimeout Called on timeout. */
async function within<T>(idleMs: number, reading: Promise<T>, onTimeout: () => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AppError("invalid_request", `Can't read the body of the request: no data for ${idleMs} ms`));
      onTimeout();
    }, idleMs);
  });
  try {
    return await Promise.race([reading, tooSlow]);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw createIncompleteError(cause);
  } finally {
    clearTimeout(timer);
  }
}

function createIncompleteError(cause?: unknown): AppError {
  return new AppError("invalid_request", "Can't read the body of the request: it's incomplete", { cause });
}

function createTooLargeError(limitBytes: number): AppError {
  return new AppError("too_large", `The body of the request is larger than this path's limit of ${limitBytes} bytes`);
}
