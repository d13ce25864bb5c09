/** Multipart bodies of the few routes that take files. */
import type { AppContext } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { parseForm, type Part } from "./form_parts.ts";

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
 * @param options.takesAnyName The only file of the form is that file, whatever its part is called.
 * @throws {AppError} `unsupported_media_type`; `invalid_request` for a broken body, a missing or repeated part; `too_large`.
 */
export async function readUpload(
  c: AppContext,
  fileName: string,
  { takesAnyName = false }: { takesAnyName?: boolean } = {},
): Promise<UploadedForm> {
  const type = c.req.header("content-type") ?? "";
  if (!/^multipart\/form-data\s*(;|$)/i.test(type)) {
    throw new AppError("unsupported_media_type", "The body of the request has to be multipart/form-data");
  }
  const parts = parseForm(await bodyOf(c), type);
  const one = (name: string): Part | undefined => {
    const found = parts.filter((part) => part.name === name);
    if (found.length > 1) throw refused(name, "this part is there more than once");
    return found[0];
  };
  const files = parts.filter((part) => part.fileName !== undefined && /^[a-z]/i.test(part.name));
  const file = one(fileName) ?? (takesAnyName && files.length === 1 ? files[0] : undefined);
  if (file?.fileName === undefined) throw refused(fileName, "this part has to be there, as a file");
  return {
    file: file.data,
    stem: file.fileName.replace(/^.*[\\/]/s, "").replace(/\.[^.]*$/, ""),
    text(name) {
      const part = one(name);
      if (part?.fileName !== undefined) throw refused(name, "this part has to be text");
      return part && new TextDecoder().decode(part.data);
    },
  };
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

function refused(path: string, message: string): AppError {
  const place = path === "" ? "" : `${path}: `;
  return new AppError("invalid_request", `The body of the request is not as the API describes it: ${place}${message}`, {
    issues: [{ path, message }],
  });
}
