/** Images as data URLs. */
import { Buffer } from "node:buffer";
import { sniffImage } from "./image_type.ts";

/** Returns an image as a data URL, or undefined if the bytes are not an image of a supported type. */
export function toDataUrl(bytes: Uint8Array): string | undefined {
  const type = sniffImage(bytes)?.type;
  if (type === undefined) return undefined;
  return `data:${type};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")}`;
}
