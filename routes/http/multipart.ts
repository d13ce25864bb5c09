/** Multipart bodies of the few routes that take files. */
import type { AppContext } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";
import { parseForm, type Part, refusedPart } from "./form_parts.ts";
import { fileOfForm } from "./form_stream.ts";

/** A parsed body: the file and the text parts, each there at most once. */
export interface UploadedForm {
  file: Uint8Array<ArrayBuffer>;
  /** What the client calls its file, without the ending; for people only. */
  stem: string;
  /** `undefined` for a part that was not sent. */
  text(name: string): string | undefined;
}

/**
 * Reads a multipart body with one file.
 *
 * @param fileName Name of the part that holds the file.
 * @throws {AppError} `unsupported_media_type`; `invalid_request` for a broken body, a missing or repeated part; `too_large`.
 */
export async function readUpload(c: AppContext, fileName: string): Promise<UploadedForm> {
  const type = formTypeOf(c);
  const parts = parseForm(await bodyOf(c), type);
  const one = (name: string): Part | undefined => {
    const found = parts.filter((part) => part.name === name);
    if (found.length > 1) throw refusedPart(name, "this part is there more than once");
    return found[0];
  };
  const file = one(fileName);
  if (file?.fileName === undefined) throw refusedPart(fileName, "this part has to be there, as a file");
  return {
    file: file.data,
    stem: file.fileName.replace(/^.*[\\/]/s, "").replace(/\.[^.]*$/, ""),
    text(name) {
      const part = one(name);
      if (part?.fileName !== undefined) throw refusedPart(name, "this part has to be text");
      return part && new TextDecoder().decode(part.data);
    },
  };
}

/**
 * Reads a multipart body with one file, which is not held, whatever its part is called.
 *
 * @param use Is given the file as it comes; it ends when the body did and was whole.
 * @throws {AppError} as `readUpload`, and what `use` throws
 */
export async function readStreamedUpload<T>(
  c: AppContext,
  use: (file: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const type = formTypeOf(c);
  return await use(fileOfForm(c.req.raw.body ?? ReadableStream.from([]), type));
}

function formTypeOf(c: AppContext): string {
  const type = c.req.header("content-type") ?? "";
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) return type;
  throw new AppError("unsupported_media_type", "The body of the request has to be multipart/form-data");
}

async function bodyOf(c: AppContext): Promise<ArrayBuffer> {
  try {
    return await c.req.arrayBuffer();
  } catch (cause) {
    // What counted the body says so itself.
    const own = [cause, cause instanceof Error ? cause.cause : undefined].find((error) => error instanceof AppError);
    if (own !== undefined) throw own;
    throw new AppError("invalid_request", "The body of the request is no whole multipart/form-data", { cause });
  }
}
