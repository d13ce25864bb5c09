/** Pictures out of base64 and out of answers: checked by their first bytes, decoded without holding anybody up. */
import { yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import { Buffer } from "node:buffer";
import { sniffImage } from "../attachments/images/image_type.ts";

/** Text decoded at a time; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/** Decodes base64, with or without a data URL before it; `undefined` where the bytes are no picture. */
export async function pictureFrom(base64: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const begin = base64.startsWith("data:") ? base64.indexOf(",", 0) + 1 : 0;
  const pieces: Uint8Array[] = [];
  for (let at = begin; at < base64.length; at += STEP_CHARS) {
    pieces.push(Buffer.from(base64.slice(at, at + STEP_CHARS), "base64"));
    if (base64.length > STEP_CHARS) await yieldToEventLoop();
  }
  const bytes = new Uint8Array(Buffer.concat(pieces));
  return isPicture(bytes) ? bytes : undefined;
}

/** Says whether bytes begin as a picture of a kind that Parlor keeps. */
export function isPicture(bytes: Uint8Array): boolean {
  return sniffImage(bytes) !== undefined;
}

/** Encodes a picture. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Gives a picture as data URL; `undefined` for what is none. */
export function dataUrlOf(bytes: Uint8Array): string | undefined {
  const type = sniffImage(bytes)?.type;
  return type === undefined ? undefined : `data:${type};base64,${base64Of(bytes)}`;
}
