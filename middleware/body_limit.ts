/** Behind the seven links: no body is larger than its route allows. Counted while reading, Content-Length is but a hint. */
import type { MiddlewareHandler } from "hono";
import { type ByteBudget, type Reservation, UNCOUNTED_BYTES } from "../services/async/byte_budget.ts";
import { AppError } from "../services/errors.ts";
import { joinedBytes } from "../services/storage/concat_bytes.ts";
import { parseJsonInTurns } from "../services/json/incremental_parse.ts";
import { isNestedDeeper } from "../services/json/json_scan.ts";
import type { Env } from "./env.ts";
import type { RouteFacts, RouteTable } from "./route_table.ts";

/** A body that makes no progress for this long is given up: a slow writer must not hold memory for ever. */
const DEFAULT_IDLE_MS = 30_000;

/** Deeper than any document is; what compares or writes one goes a step down the stack for each level. */
const MAX_JSON_DEPTH = 500;

/** A body up to this size with a declared length is read in one step and isn't counted against the byte budget. */
const SMALL_BYTES = UNCOUNTED_BYTES;
/** Bytes of a large body that are read at a time. */
const READ_BYTES = 256 * 1024;
/** A larger JSON body is parsed in turns with others: it would hold up every stream for some 3 ms, and one of 64 MiB for 300. */
const LONG_BYTES = 512 * 1024;

/**
 * Memory that a JSON body needs for each of its bytes while its request runs: the bytes, the parsed values, their text as
 * it is stored, the same sealed, and garbage that isn't collected yet. Measured with conversations of 38 MB.
 */
const JSON_WEIGHT = 5;
/** The same for other bodies: the bytes, and what is made of them. */
const RAW_WEIGHT = 2;

/**
 * Reads a body whole before its route runs, so that one too large has no effect, on routes that ignore it too. Routes
 * marked as streaming get the body counted as they read it.
 *
 * Larger bodies are read once the byte budget has space for them, and count against it until the route has answered.
 *
 * @param options.defaultLimitBytes Where no route is reached, and so no limit of its own holds.
 * @throws {AppError} `too_large`; `busy` when there is no space for the body; `invalid_json` for a JSON body that is no UTF-8; `invalid_request` for one that was cut
 *   off or is nested too deep.
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
    if (declared !== null && Number(declared) > limitBytes) throw tooLarge(limitBytes);
    let reservation: Reservation | undefined;
    try {
      if (request.method === "GET" || request.method === "HEAD") {
        // The runtime gives no body of a GET, so one of unsaid length cannot be counted.
        if (request.headers.has("transfer-encoding")) throw new AppError("too_large", "A GET takes no body");
      } else if (request.body !== null && declared !== "0") {
        if (route?.isBodyStreamed) {
          c.req.raw = new Request(request, { body: counted(request.body, limitBytes, idleMs) });
        } else {
          const reserve = async (bytes: number) => {
            const weight = isJson(route) ? JSON_WEIGHT : RAW_WEIGHT;
            reservation = await budget.reserve(bytes * weight, { signal: request.signal });
          };
          const sizeBytes = declared === null ? undefined : Number(declared);
          const bytes = sizeBytes === undefined
            ? await readUndeclared(request.body, { limitBytes, idleMs, reserve: () => reserve(limitBytes) })
            : sizeBytes <= SMALL_BYTES
            ? await readSmall(request, idleMs)
            : (await reserve(sizeBytes), await readDeclared(request.body, sizeBytes, idleMs));
          const isEmpty = bytes.byteLength === 0;
          await keepBody(c.req, bytes, route);
          if (isEmpty && isLeftOut(route)) withoutType(c.req);
        }
      } else if (isLeftOut(route)) withoutType(c.req);
      await next();
    } finally {
      reservation?.release();
    }
  };
}

function isJson(route: RouteFacts | undefined): boolean {
  return route?.bodyTypes.length === 1 && route.bodyTypes[0] === "application/json";
}

/** Says whether a route asks for no body, so that a request without one may have any type on it. */
function isLeftOut(route: RouteFacts | undefined): boolean {
  return route !== undefined && !route.isBodyRequired && route.bodyTypes.length > 0;
}

/** Takes the type off a request: many clients say which one they mean whether there is a body or not. */
function withoutType(req: { raw: Request }): void {
  if (!req.raw.headers.has("content-type")) return;
  const headers = new Headers(req.raw.headers);
  headers.delete("content-type");
  req.raw = new Request(req.raw.url, { method: req.raw.method, headers, signal: req.raw.signal });
}

/** Puts the body where the router's validators look for it. */
async function keepBody(
  req: { raw: Request; bodyCache: Partial<Record<string, unknown>>; json(): Promise<unknown> },
  bytes: Uint8Array<ArrayBuffer>,
  route: RouteFacts | undefined,
): Promise<void> {
  if (!isJson(route)) {
    req.bodyCache.arrayBuffer = Promise.resolve(bytes.buffer);
    return;
  }
  const isEmpty = bytes.byteLength === 0;
  const isLong = bytes.byteLength > LONG_BYTES;
  if (!isLong && isNestedDeeper(bytes, MAX_JSON_DEPTH)) throw nestedTooDeep();
  try {
    if (isLong) {
      const parsing = parseJsonInTurns(bytes, MAX_JSON_DEPTH);
      req.json = () => parsing;
      await parsing;
      // Freed here: the garbage collector would only get to it much later.
      bytes.buffer.transfer(0);
    } else req.bodyCache.text = Promise.resolve(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    if (cause instanceof RangeError) throw nestedTooDeep();
    // What is no JSON is told where the validators read it, after what they find in the path and the headers.
    if (!(cause instanceof SyntaxError)) {
      throw new AppError("invalid_json", "The body of the request is not JSON: it is no UTF-8", { cause });
    }
  }
  // The CORS link let through any type that no form can send; this path takes JSON, whatever it was called.
  if (!isEmpty && req.raw.headers.get("content-type") !== "application/json") {
    const headers = new Headers(req.raw.headers);
    headers.set("content-type", "application/json");
    req.raw = new Request(req.raw.url, { method: req.raw.method, headers, signal: req.raw.signal });
  }
}

/** Reads a body of a few KiB in the one step that the runtime has for it; the length said holds, HTTP sees to that. */
async function readSmall(request: Request, idleMs: number): Promise<Uint8Array<ArrayBuffer>> {
  return await within(idleMs, request.bytes(), () => {});
}

/** Reads a body into one buffer of the size that its header declares. */
async function readDeclared(
  body: ReadableStream<Uint8Array>,
  sizeBytes: number,
  idleMs: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = byteReaderOf(body);
  if (reader === undefined) return await readChunks(body, sizeBytes, idleMs);
  let buffer = new ArrayBuffer(sizeBytes);
  let at = 0;
  while (at < sizeBytes) {
    const { done, value } = await within(
      idleMs,
      reader.read(new Uint8Array(buffer, at, Math.min(READ_BYTES, sizeBytes - at))),
      () => reader.cancel().catch(() => {}),
    );
    if (value === undefined || done) throw cutOff();
    buffer = value.buffer;
    at += value.byteLength;
  }
  // The runtime closes the connection after the answer unless the end of the body was read, too.
  await within(idleMs, reader.read(new Uint8Array(1)), () => reader.cancel().catch(() => {}));
  return new Uint8Array(buffer);
}

/**
 * Opens a reader that moves one buffer through all reads, so that no chunk is copied or left as garbage. Most bodies of the
 * runtime are byte streams; one that it already holds whole isn't.
 */
function byteReaderOf(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: "byob" });
  } catch (error) {
    if (error instanceof TypeError && !body.locked) return undefined;
    throw error;
  }
}

async function readChunks(
  body: ReadableStream<Uint8Array>,
  sizeBytes: number,
  idleMs: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const bytes = new Uint8Array(sizeBytes);
  let at = 0;
  for (;;) {
    const { done, value } = await readWithin(reader, idleMs);
    if (done) break;
    if (at + value.byteLength > sizeBytes) throw cutOff();
    bytes.set(value, at);
    at += value.byteLength;
  }
  if (at < sizeBytes) throw cutOff();
  return bytes;
}

/** Reads a body without a declared length. @param options.reserve Called once, before more than a small body is kept. */
async function readUndeclared(
  body: ReadableStream<Uint8Array>,
  { limitBytes, idleMs, reserve }: { limitBytes: number; idleMs: number; reserve(): Promise<void> },
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await readWithin(reader, idleMs);
    if (done) break;
    const before = size;
    size += value.byteLength;
    if (size > limitBytes) {
      await reader.cancel().catch(() => {});
      throw tooLarge(limitBytes);
    }
    if (before <= SMALL_BYTES && size > SMALL_BYTES) await reserve();
    chunks.push(value);
  }
  return joinedBytes(chunks);
}

/** The same stream, ended by an error once it is too long or too slow. */
function counted(body: ReadableStream<Uint8Array>, limitBytes: number, idleMs: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let size = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const result = await readWithin(reader, idleMs);
      if (result.done) return controller.close();
      size += result.value.byteLength;
      if (size > limitBytes) {
        await reader.cancel().catch(() => {});
        throw tooLarge(limitBytes);
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

/** Waits for part of a body. @param giveUp Called when it took too long. */
async function within<T>(idleMs: number, reading: Promise<T>, giveUp: () => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AppError("invalid_request", `Cannot read the body of the request: nothing came for ${idleMs} ms`));
      giveUp();
    }, idleMs);
  });
  try {
    return await Promise.race([reading, tooSlow]);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw cutOff(cause);
  } finally {
    clearTimeout(timer);
  }
}

function cutOff(cause?: unknown): AppError {
  return new AppError("invalid_request", "Cannot read the body of the request: it was cut off", { cause });
}

function nestedTooDeep(): AppError {
  return new AppError("invalid_request", `The body of the request is nested deeper than ${MAX_JSON_DEPTH} levels`);
}

function tooLarge(limitBytes: number): AppError {
  return new AppError("too_large", `The body of the request is larger than the ${limitBytes} bytes this path takes`);
}
