/** Images that go out with the next message. */
import { computed, signal } from "@preact/signals";
import { newId } from "../app/ids.ts";

/** One image in the composer. */
export interface AttachedImage {
  id: number;
  name: string;
  /** URL to show it here, stored or not. */
  shownUrl: string;
  /** URL for the message; undefined during the upload. */
  url: string | undefined;
}

/** Stores an image under a name and returns its URL. */
export type StoreImage = (name: string, picture: Blob) => Promise<string>;

/** Formats that models and the page support. */
const ENDINGS: Record<string, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

/** The longer side that an image is reduced to, in pixels: models see no more, and photos of phones are far larger. */
const MAX_SIDE_PX = 2048;

/** Images up to this size are sent unchanged. */
const MAX_PLAIN_BYTES = 1_000_000;

const JPEG_QUALITY = 0.88;

/** The images of one composer. */
export class ImageAttachments {
  readonly items = signal<AttachedImage[]>([]);
  /** True during an upload. */
  readonly isBusy = computed(() => this.items.value.some(({ url }) => url === undefined));
  #store: StoreImage | undefined;
  #nextId = 1;

  /** @param store Undefined if nothing may be stored: images are then embedded in the message. */
  constructor(store: StoreImage | undefined) {
    this.#store = store;
  }

  /** Adds an image. @throws {Error} if the browser can't decode it, {ApiError} if the server refuses it. */
  async add(file: File): Promise<void> {
    const picture = await reduced(file);
    const shownUrl = await readAsUrl(picture);
    const id = this.#nextId++;
    const url = this.#store ? undefined : shownUrl;
    this.items.value = [...this.items.peek(), { id, name: file.name, shownUrl, url }];
    if (!this.#store) return;
    try {
      const stored = await this.#store(`${newId()}.${ENDINGS[picture.type]}`, picture);
      this.items.value = this.items.peek().map((each) => each.id === id ? { ...each, url: stored } : each);
    } catch (thrown) {
      this.remove(id);
      throw thrown;
    }
  }

  /** Removes an image. */
  remove(id: number): void {
    this.items.value = this.items.peek().filter((picture) => picture.id !== id);
  }

  /** Empties the list after sending. */
  take(): AttachedImage[] {
    const pictures = this.items.peek();
    this.items.value = [];
    return pictures;
  }

  /** Restores images that could not be sent. */
  putBack(pictures: readonly AttachedImage[]): void {
    this.items.value = [...pictures, ...this.items.peek()];
  }
}

/** Stores an image that may be as large as a camera's, and returns its URL. @throws as `ImageAttachments.add` */
export async function storeImage(store: StoreImage, file: File): Promise<string> {
  const picture = await reduced(file);
  return await store(`${newId()}.${ENDINGS[picture.type]}`, picture);
}

/** True for image files that can be sent. */
export function isImageFile(file: File): boolean {
  return Object.hasOwn(ENDINGS, file.type);
}

async function reduced(file: File): Promise<Blob> {
  if (file.size <= MAX_PLAIN_BYTES || file.type === "image/gif") return file;
  const bitmap = await createImageBitmap(file);
  try {
    const scale = Math.min(1, MAX_SIDE_PX / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(bitmap.width * scale);
    canvas.height = Math.round(bitmap.height * scale);
    canvas.getContext("2d")!.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", JPEG_QUALITY));
    return blob && blob.size < file.size ? blob : file;
  } finally {
    bitmap.close();
  }
}

function readAsUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error(`Can't read a picture of ${blob.size} bytes`));
    reader.readAsDataURL(blob);
  });
}
