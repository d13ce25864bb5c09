/**
 * Reads request bodies that contain files: one image or recording, or `multipart/form-data` (RFC 7578; RFC 2046,
 * section 5.1.1), piece by piece.
 *
 * The runtime's own parser reads byte by byte and blocks the thread for 280 ms per 20 MB.
 *
 * @see docs/decisions/0046-form-reader.md
 */
import { Buffer } from "node:buffer";
import type { z } from "@hono/zod-openapi";
import type { AppContext } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";
import { createSchemaError } from "./router.ts";
import { joinBytes } from "../../services/storage/atomic_file.ts";

/** A form in memory: one file, and text fields. Each name occurs at most once. */
export interface UploadedForm {
  file: Uint8Array<ArrayBuffer>;
  /** File name without its extension, as the client sent it. For display only. */
  stem: string;
  /** Returns a text field; `undefined` if it wasn't sent. @throws {AppError} `invalid_request` if it's a file or repeated */
  text(name: string): string | undefined;
}

/** One part of a form. Its data must be read or skipped before the next part. */
interface FormPart {
  /** Name of the field. */
  name: string;
  /** File name that the client sent; `undefined` for a text field. */
  fileName: string | undefined;
  data: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

/** More parts than any form of the API has. */
const MAX_PARTS = 50;
/** Bytes of one part's header. */
const MAX_HEADER_BYTES = 8 * 1024;
const CRLF = "\r\n";
const HEADER_END = Buffer.from(CRLF + CRLF);
const INCOMPLETE = "it's incomplete or isn't of the declared type";

/**
 * Reads a form with one file into memory.
 *
 * @param fileField Name of the field with the file.
 * @throws {AppError} `unsupported_media_type`; `invalid_request` for a broken form, or a missing or repeated part; `too_large`
 */
export async function readUpload(c: AppContext, fileField: string): Promise<UploadedForm> {
  const type = getFormType(c);
  const parts: { name: string; fileName: string | undefined; bytes: Uint8Array<ArrayBuffer> }[] = [];
  for await (const { name, fileName, data } of readParts(toPieces(await readBody(c)), type)) {
    const pieces = await Array.fromAsync(data);
    parts.push({ name, fileName, bytes: pieces.length === 1 ? pieces[0]! : joinBytes(pieces) });
  }
  const findPart = (name: string) => {
    const found = parts.filter((part) => part.name === name);
    if (found.length > 1) throw createPartError(name, "this part occurs more than once");
    return found[0];
  };
  const file = findPart(fileField);
  if (file?.fileName === undefined) throw createPartError(fileField, "this part is required and must be a file");
  return {
    file: file.bytes,
    stem: file.fileName.replace(/^.*[\\/]/s, "").replace(/\.[^.]*$/, ""),
    text(name) {
      const part = findPart(name);
      if (part?.fileName !== undefined) throw createPartError(name, "this part must be text");
      return part && new TextDecoder().decode(part.bytes);
    },
  };
}

/** Validates a text field as the router validates bodies. @throws {AppError} `invalid_request` */
export function parseFormField<T extends z.ZodType>(field: T, name: string, value: string | undefined): z.output<T> {
  const parsed = field.safeParse(value);
  if (parsed.success) return parsed.data;
  throw createSchemaError("form", parsed.error.issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
}

/**
 * Streams the only file of a form, whatever the name of its field, without holding it in memory.
 *
 * @param use Receives the file, and a function that returns its name as the client sent it once its first bytes have
 *   arrived. The iteration ends only if the whole form was received and is valid.
 * @throws {AppError} Like `readUpload`; and what `use` throws
 */
export async function readStreamedUpload<T>(
  c: AppContext,
  use: (file: AsyncIterable<Uint8Array<ArrayBuffer>>, getName: () => string | undefined) => Promise<T>,
): Promise<T> {
  let name: string | undefined;
  const file = streamFile(c.req.raw.body ?? ReadableStream.from([]), getFormType(c), (found) => name = found);
  return await use(file, () => name);
}

async function* streamFile(
  body: AsyncIterable<Uint8Array<ArrayBuffer>>,
  contentType: string,
  onName: (name: string) => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let hasFile = false;
  for await (const { fileName, data } of readParts(body, contentType)) {
    if (fileName === undefined) continue;
    if (hasFile) throw createFormError("it has more than one file");
    hasFile = true;
    onName(fileName.replaceAll("%22", '"')); // as browsers write it (HTML, "multipart/form-data encoding algorithm")
    yield* data;
  }
  if (!hasFile) throw createFormError("it has no file");
}

/** Reads the parts of a form. Data that wasn't read is skipped. */
async function* readParts(body: AsyncIterable<Uint8Array<ArrayBuffer>>, contentType: string): AsyncGenerator<FormPart> {
  const delimiter = Buffer.from(`${CRLF}--${parseBoundary(contentType)}`);
  const reader = new FormReader(body);
  try {
    await reader.skipToFirst(delimiter);
    for (let count = 0; await reader.peek(2) !== "--"; count++) {
      if (count === MAX_PARTS) throw createFormError(`it has more than ${MAX_PARTS} parts`);
      const names = parsePartHeader(await readHeader(reader));
      const data = reader.readUntil(delimiter);
      yield { ...names, data };
      await drain(data);
    }
  } finally {
    await reader.close();
  }
}

/** Reads a body up to one delimiter after another. */
class FormReader {
  readonly #body: AsyncIterator<Uint8Array<ArrayBuffer>>;
  /** Received but not read yet. */
  #pending: Buffer<ArrayBuffer> = Buffer.alloc(0);

  constructor(body: AsyncIterable<Uint8Array<ArrayBuffer>>) {
    this.#body = body[Symbol.asyncIterator]();
  }

  /** Skips the first delimiter and what's before it. Only the first has no line break before it if it starts the body. */
  async skipToFirst(delimiter: Buffer): Promise<void> {
    const start = delimiter.subarray(CRLF.length);
    if (await this.peek(start.length) === start.toString("latin1")) {
      this.#pending = this.#pending.subarray(start.length);
    } else await drain(this.readUntil(delimiter));
  }

  /** Reads up to a delimiter, and skips it. */
  async *readUntil(delimiter: Buffer): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (;;) {
      const at = this.#pending.indexOf(delimiter);
      // The end of the received bytes could be the start of the delimiter.
      const end = at >= 0 ? at : Math.max(0, this.#pending.length - delimiter.length + 1);
      // Not a Buffer, whose slice() doesn't copy.
      const piece = new Uint8Array(this.#pending.buffer, this.#pending.byteOffset, end);
      this.#pending = this.#pending.subarray(at >= 0 ? at + delimiter.length : end);
      if (piece.length > 0) yield piece;
      if (at >= 0) return;
      await this.#receive();
    }
  }

  /** Returns the next bytes without reading them. */
  async peek(length: number): Promise<string> {
    while (this.#pending.length < length) await this.#receive();
    return this.#pending.toString("latin1", 0, length);
  }

  async close(): Promise<void> {
    await this.#body.return?.();
  }

  async #receive(): Promise<void> {
    const { done, value } = await this.#body.next();
    if (done) throw createFormError(INCOMPLETE);
    this.#pending = this.#pending.length === 0
      ? Buffer.from(value.buffer, value.byteOffset, value.length)
      : Buffer.concat([this.#pending, value]);
  }
}

async function readHeader(reader: FormReader): Promise<string> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of reader.readUntil(HEADER_END)) {
    pieces.push(piece);
    sizeBytes += piece.length;
    if (sizeBytes > MAX_HEADER_BYTES) throw createFormError("the header of a part is too long");
  }
  return Buffer.concat(pieces).toString("utf8");
}

async function drain(pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
  for await (const _ of pieces);
}

async function readBody(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await c.req.arrayBuffer());
  } catch (cause) {
    // The body limit throws its own error, which the runtime may wrap.
    const own = [cause, cause instanceof Error ? cause.cause : undefined].find((error) => error instanceof AppError);
    throw own ?? createFormError(INCOMPLETE);
  }
}

async function* toPieces(bytes: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield bytes;
}

function getFormType(c: AppContext): string {
  const type = c.req.header("content-type") ?? "";
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) return type;
  throw new AppError("unsupported_media_type", "The body of the request must be multipart/form-data");
}

/** @throws {AppError} `invalid_request` if the content type has no boundary */
function parseBoundary(contentType: string): string {
  const match = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i
    .exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw createFormError("its Content-Type has no boundary");
  return boundary;
}

/** @throws {AppError} `invalid_request` for a part without a name */
function parsePartHeader(header: string): { name: string; fileName: string | undefined } {
  const line = header.split(CRLF).find((one) => /^content-disposition\s*:/i.test(one)) ?? "";
  const [name, fileName] = ["name", "filename"].map((field) => {
    const match = new RegExp(`;\\s*${field}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, "i").exec(line);
    return match?.[1] ?? match?.[2];
  });
  if (name === undefined) throw createFormError("a part has no name");
  return { name, fileName };
}

function createFormError(reason: string): AppError {
  return new AppError("invalid_request", `Can't read the form in the body of the request: ${reason}`);
}

/** Creates the error for a part that isn't what its route expects. */
function createPartError(path: string, message: string): AppError {
  return new AppError("invalid_request", `The body of the request doesn't match the API: ${path}: ${message}`, {
    issues: [{ path, message }],
  });
}

/** Types under which images may be sent: their own, or the generic type of bytes (RFC 2046, section 4.5.1). */
const IMAGE_TYPE = /^(image\/|application\/octet-stream\s*(;|$))/i;

/** Types under which images and recordings may be sent. */
const ATTACHMENT_TYPE = /^((image|audio)\/|application\/octet-stream\s*(;|$))/i;

/** Rejects a body whose content type can't be an image or a recording. @throws {AppError} `unsupported_media_type` */
export function checkAttachmentType(c: AppContext): void {
  if (ATTACHMENT_TYPE.test(c.req.header("content-type") ?? "")) return;
  const example = "as Content-Type: image/png or audio/wav";
  throw new AppError("unsupported_media_type", `An image or a recording must be sent with its own type, ${example}`);
}

/** Rejects a body whose content type can't be an image. @throws {AppError} `unsupported_media_type` */
function checkImageType(c: AppContext): void {
  if (IMAGE_TYPE.test(c.req.header("content-type") ?? "")) return;
  throw new AppError("unsupported_media_type", "An image must be sent with its own type, as Content-Type: image/png");
}

/** Reads a whole image. @throws {AppError} `unsupported_media_type` */
export async function readImage(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  checkImageType(c);
  return new Uint8Array(await c.req.arrayBuffer());
}
