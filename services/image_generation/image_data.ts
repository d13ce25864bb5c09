/** Decodes and checks image data from backends and requests. */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import { sniffImage } from "../attachments/images/image_type.ts";

/** Base64 characters decoded at a time; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/** Decodes base64 or a data URL, without blocking the event loop. Returns undefined if the bytes are not a supported image. */
export async function decodeImage(base64: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const start = base64.startsWith("data:") ? base64.indexOf(",", 0) + 1 : 0;
  const pieces: Uint8Array[] = [];
  for (let at = start; at < base64.length; at += STEP_CHARS) {
    pieces.push(Buffer.from(base64.slice(at, at + STEP_CHARS), "base64"));
    if (base64.length > STEP_CHARS) await yieldToEventLoop();
  }
  const bytes = new Uint8Array(Buffer.concat(pieces));
  return isSupportedImage(bytes) ? bytes : undefined;
}

/** Reports whether bytes start like an image of a supported type. */
export function isSupportedImage(bytes: Uint8Array): boolean {
  return sniffImage(bytes) !== undefined;
}

/** Encodes bytes as base64. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
