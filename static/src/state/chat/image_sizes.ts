/** Sizes of the images of messages, so that each has its place before it's loaded, and what is read stands still. */
import type { RecentConversation } from "../../api/types.ts";

/** In pixels, as shown. */
export interface ImageSize {
  width: number;
  height: number;
}

const sizes = new Map<string, ImageSize>();

/** Notes what the server says of the images in messages. */
export function noteImageSizes(found: RecentConversation["image_sizes"]): void {
  for (const [name, size] of Object.entries(found ?? {})) noteImageSize(`/api/attachments/${name}`, size);
}

/** Notes the size of an image. Returns false if it was known. */
export function noteImageSize(url: string, size: ImageSize): boolean {
  const known = sizes.get(url);
  if (known?.width === size.width && known.height === size.height) return false;
  sizes.set(url, size);
  return true;
}

/** Returns the size of an image; undefined if it isn't known. */
export function findImageSize(url: string): ImageSize | undefined {
  return sizes.get(url);
}
