/** Bodies that are one picture. What it really is, its content says; see services/attachments. */
import type { AppContext } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";

/** Types a picture may be sent under: its own, or that of bytes of which the sender knows no more (RFC 2046, section 4.5.1). */
const PICTURE_TYPE = /^(image\/|application\/octet-stream\s*(;|$))/i;

/** Refuses a body that does not even say it could be a picture. @throws {AppError} `unsupported_media_type` */
export function checkPictureType(c: AppContext): void {
  if (PICTURE_TYPE.test(c.req.header("content-type") ?? "")) return;
  throw new AppError("unsupported_media_type", "A picture is sent with its own type, as Content-Type: image/png");
}

/** Reads a picture whole. @throws {AppError} `unsupported_media_type` */
export async function readPicture(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  checkPictureType(c);
  return new Uint8Array(await c.req.arrayBuffer());
}
