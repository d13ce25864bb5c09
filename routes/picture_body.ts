/** Bodies that are a picture and nothing else. */
import type { AppContext } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";

/** Refuses a body that does not say that it is a picture. @throws {AppError} `unsupported_media_type`. */
export function checkPictureType(c: AppContext): void {
  if (!/^image\//i.test(c.req.header("content-type") ?? "")) {
    throw new AppError("unsupported_media_type", "A picture is sent with its own type, as Content-Type: image/png");
  }
}

/** Reads a picture whole. @throws {AppError} `unsupported_media_type`. */
export async function readPicture(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  checkPictureType(c);
  return new Uint8Array(await c.req.arrayBuffer());
}
