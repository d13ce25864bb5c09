/** Bodies that are one picture. What it really is, its content says; see services/attachments. */
import type { AppContext } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";

/** Types a picture may be sent under: its own, or that of bytes of which the sender knows no more (RFC 2046, section 4.5.1). */
const PICTURE_TYPE = /^(image\/|application\/octet-stream\s*(;|$))/i;

/** Types an image or a recording may be sent under. */
const ATTACHMENT_TYPE = /^((image|audio)\/|application\/octet-stream\s*(;|$))/i;

/** Refuses a body that doesn't say it could be an image or a recording. @throws {AppError} `unsupported_media_type` */
export function checkAttachmentType(c: AppContext): void {
  if (ATTACHMENT_TYPE.test(c.req.header("content-type") ?? "")) return;
  const example = "as Content-Type: image/png or audio/wav";
  throw new AppError("unsupported_media_type", `An image or a recording is sent with its own type, ${example}`);
}

/** Rejects a body whose content type can't be an image. @throws {AppError} `unsupported_media_type` */
export function checkPictureType(c: AppContext): void {
  if (PICTURE_TYPE.test(c.req.header("content-type") ?? "")) return;
  throw new AppError("unsupported_media_type", "A picture is sent with its own type, as Content-Type: image/png");
}

/** Reads a picture whole. @throws {AppError} `unsupported_media_type` */
export async function readPicture(c: AppContext): Promise<Uint8Array<ArrayBuffer>> {
  checkPictureType(c);
  return new Uint8Array(await c.req.arrayBuffer());
}
