/** Pictures as data URLs, as parts of messages carry them before they are stored. */
import { Buffer } from "node:buffer";
import { sniffImage } from "../attachments/images/image_type.ts";

/** Gives a picture as a data URL; `undefined` for bytes that are none of the kinds we take. */
export function dataUrlOf(bytes: Uint8Array): string | undefined {
  const type = sniffImage(bytes)?.type;
  if (type === undefined) return undefined;
  return `data:${type};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")}`;
}
