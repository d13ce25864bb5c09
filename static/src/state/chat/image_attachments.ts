/** Pictures that will go out with the next message. */
import { computed, signal } from "@preact/signals";
import { newId } from "../app/ids.ts";

/** One picture beside the composer. */
export interface AttachedImage {
  id: number;
  name: string;
  /** Shows it here, whether it is stored or not. */
  shownUrl: string;
  /** What the message will name; undefined while it is on its way. */
  url: string | undefined;
}

/** Stores a picture under a name and gives its address. */
export type StoreImage = (name: string, picture: Blob) => Promise<string>;

/** Formats that models and our own page understand. */
const ENDINGS: Record<string, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

/** The longer side a picture is reduced to: models see no more, and a phone's photograph is far larger. In pixels. */
const MAX_SIDE_PX = 2048;

/** What is at most this large goes as it is. */
const MAX_PLAIN_BYTES = 1_000_000;

const JPEG_QUALITY = 0.88;

/** The pictures of one composer. */
export class ImageAttachments {
  readonly items = signal<AttachedImage[]>([]);
  /** True while one of them is on its way to the server. */
  readonly isBusy = computed(() => this.items.value.some(({ url }) => url === undefined));
  #store: StoreImage | undefined;
  #nextId = 1;

  /** @param store Undefined where nothing may be stored: pictures then stand in the message itself. */
  constructor(store: StoreImage | undefined) {
    this.#store = store;
  }

  /** Takes a picture in. @throws {Error} when the browser cannot read it, {ApiError} when the server does not take it. */
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

  /** Takes one out again. */
  remove(id: number): void {
    this.items.value = this.items.peek().filter((picture) => picture.id !== id);
  }

  /** Empties it: its pictures were sent. */
  take(): AttachedImage[] {
    const pictures = this.items.peek();
    this.items.value = [];
    return pictures;
  }

  /** Puts back what could not be sent. */
  putBack(pictures: readonly AttachedImage[]): void {
    this.items.value = [...pictures, ...this.items.peek()];
  }
}

/** True for files that are pictures we can send. */
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
    reader.onerror = () => reject(reader.error ?? new Error(`Cannot read a picture of ${blob.size} bytes`));
    reader.readAsDataURL(blob);
  });
}
