/** Attachments of the next message: documents and their pages, images, recordings. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { type ApiClient, ApiError, asApiError } from "../../api/client.ts";
import type { DocumentUse, Message, StoredDocument } from "../../api/types.ts";
import { texts } from "../../texts/texts.ts";
import { newId } from "../app/ids.ts";
import { documentKey, type Outbox } from "../app/outbox.ts";

/** One document in the composer. */
export interface AttachedDocument {
  key: number;
  /** Chosen here, so that a message can name a document that waits in the outbox. */
  id: string;
  name: string;
  /** True if it waits in the outbox. */
  isWaiting: boolean;
  /** Undefined until the server has it. */
  document: StoredDocument | undefined;
  use: NonNullable<DocumentUse["use"]>;
  /** With the use `pages`: which, such as `3-5,12`. */
  pages?: DocumentUse["pages"];
}

/** Interval between checks whether the text has been read, in milliseconds. */
const POLL_MS = 700;

/** The documents of one composer. */
export class DocumentAttachments {
  readonly items = signal<AttachedDocument[]>([]);
  /** True during an upload. The server waits for text that is still being read. */
  readonly isBusy = computed(() =>
    this.items.value.some(({ document, isWaiting }) => document === undefined && !isWaiting)
  );
  readonly #client: ApiClient;
  readonly #outbox: Pick<Outbox, "entries" | "discard">;
  readonly #conversationId: string;
  #nextKey = 1;

  constructor(client: ApiClient, outbox: Pick<Outbox, "entries" | "discard">, conversationId: string) {
    this.#client = client;
    this.#outbox = outbox;
    this.#conversationId = conversationId;
  }

  /** Uploads a file. @throws {ApiError} if the server refuses it. */
  async add(file: File): Promise<void> {
    await this.#send(file.name, (id) => uploadDocument(this.#client, file, id, this.#conversationId));
  }

  /** Adds a link, which the server fetches. @throws {ApiError} if the server refuses it. */
  async addLink(url: string): Promise<void> {
    await this.#send(url, async (id) => {
      const response = await this.#client.send("POST", documentPath(id), {
        body: { url },
        outbox: { conversationId: this.#conversationId, text: url },
      });
      return await response.json();
    });
  }

  /** Removes a document from the message. One that was only just uploaded goes to the trash. */
  remove(key: number): void {
    const removed = this.#find(key);
    this.#drop(key);
    if (removed === undefined) return;
    if (this.#isWaiting(removed)) void this.#outbox.discard(documentKey(removed.id));
    else if (removed.document || removed.isWaiting) {
      void this.#client.send("DELETE", `/api/documents/${removed.id}`).catch(() => {});
    }
  }

  /** Chooses what is sent of a document. */
  setUse(key: number, { use = "auto", pages }: Pick<DocumentUse, "use" | "pages">): void {
    this.#change(key, { use, pages });
  }

  /** Follows a document that is read again. */
  async follow(id: string): Promise<void> {
    const item = this.items.peek().find(({ document }) => document?.id === id);
    if (item === undefined) return;
    this.#change(item.key, { document: { ...item.document!, state: "extracting" } });
    await this.#follow(item.key);
  }

  /** Empties the list after sending. */
  take(): AttachedDocument[] {
    const taken = this.items.peek();
    this.items.value = [];
    return taken;
  }

  /** Restores documents that could not be sent. */
  putBack(items: readonly AttachedDocument[]): void {
    // Those of an earlier visit have keys that are taken.
    const added = items.map((item) => ({ ...item, key: this.#nextKey++ }));
    this.items.value = [...added, ...this.items.peek()];
    for (const { key } of added) void this.#follow(key);
  }

  async #send(name: string, send: (id: string) => Promise<StoredDocument>): Promise<void> {
    const [key, id] = [this.#nextKey++, newId()];
    this.items.value = [...this.items.peek(), { key, id, name, isWaiting: false, document: undefined, use: "auto" }];
    try {
      this.#change(key, { document: await send(id) });
    } catch (thrown) {
      if (!asApiError(thrown).isQueued) {
        this.#drop(key);
        throw thrown;
      }
      this.#change(key, { isWaiting: true });
      void this.#follow(key);
      return;
    }
    await this.#follow(key);
  }

  /** Polls until the server has it and has read its text, or the message is sent. */
  async #follow(key: number): Promise<void> {
    for (;;) {
      const item = this.#find(key);
      if (item === undefined || (!item.isWaiting && item.document?.state !== "extracting")) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (this.#isWaiting(item)) continue;
      try {
        const response = await this.#client.send("GET", `/api/documents/${item.id}`);
        const document = await response.json() as StoredDocument;
        this.#change(key, { document, name: document.name, isWaiting: false });
      } catch (thrown) {
        // It was discarded or refused. Otherwise the next request may succeed.
        if (asApiError(thrown).status === 404) this.#drop(key);
      }
    }
  }

  #isWaiting({ id }: AttachedDocument): boolean {
    return this.#outbox.entries.peek().some((entry) => entry.key === documentKey(id));
  }

  #find(key: number): AttachedDocument | undefined {
    return this.items.peek().find((item) => item.key === key);
  }

  #drop(key: number): void {
    this.items.value = this.items.peek().filter((item) => item.key !== key);
  }

  #change(key: number, changes: Partial<AttachedDocument>): void {
    this.items.value = this.items.peek().map((item) => item.key === key ? { ...item, ...changes } : item);
  }
}

/** Extensions of files that only the server can read: other formats than text, and text that may have any encoding. */
const DOCUMENT_EXTENSIONS = [
  ...["pdf", "epub", "html", "htm", "xhtml", "mhtml", "mht", "eml", "msg", "ipynb", "rtf", "odt", "ods", "odp"],
  ...["ott", "ots", "otp", "fodt", "fods", "fodp"],
  ...["docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "pptx", "pptm", "ppsx", "ppsm", "potx", "potm"],
  ...["srt", "vtt", "csv", "tsv", "md", "txt", "log"],
];

/** Types that the server reads, for the `accept` of a file input. */
export const ACCEPTED_DOCUMENTS = [...DOCUMENT_EXTENSIONS.map((extension) => `.${extension}`), "text/*"].join(",");

/** Reports whether only the server can read a file. */
export function isDocumentName(name: string): boolean {
  return DOCUMENT_EXTENSIONS.includes(name.slice(name.lastIndexOf(".") + 1).toLowerCase()) && name.includes(".");
}

/** Reads a document again. Its text stays until the new one is complete. @throws {ApiError} */
export async function readDocumentAgain(client: ApiClient, id: string, encoding?: string): Promise<void> {
  const body = encoding === undefined ? {} : { encoding };
  const response = await client.send("POST", `/api/documents/${encodeURIComponent(id)}/read`, { body });
  await response.body?.cancel();
}

/**
 * Uploads a file under an id. Its text is read afterward.
 *
 * @throws {ApiError} if the server refuses it; `queued` if it's uploaded later
 */
export async function uploadDocument(
  client: ApiClient,
  file: File,
  id: string,
  conversationId?: string,
): Promise<StoredDocument> {
  const form = new FormData();
  form.append("file", file);
  const response = await client.send("POST", documentPath(id), { form, outbox: { conversationId, text: file.name } });
  return await response.json() as StoredDocument;
}

function documentPath(id: string): string {
  return documentKey(id).split(" ")[1]!;
}

/** Returns the documents in the message's format. */
export function toDocumentUses(items: readonly AttachedDocument[]): Message["documents"] {
  const uses = items.flatMap(({ id, document, isWaiting, use, pages }) =>
    document === undefined && !isWaiting ? [] : [{ id, use, ...(use === "pages" && { pages: pages ?? "" }) }]
  );
  return uses.length === 0 ? undefined : uses;
}

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
type StoreImage = (name: string, image: Blob) => Promise<string>;

/** Formats that models and the page support. */
const ENDINGS: Record<string, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

/** Formats that many browsers read, but models don't: converted here. */
const CONVERTED = ["image/avif", "image/bmp"];

/** Format of iPhones, which only Safari reads. Other browsers don't know its type. */
const HEIC = /\.(heic|heif)$/i;

/** The images that can be sent, for the `accept` of a file input. Without HEIC, iPhones send photos as JPEG. */
export const ACCEPTED_IMAGES = [...Object.keys(ENDINGS), ...CONVERTED].join(",");

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
    const image = await reduceImage(file);
    const shownUrl = await readAsUrl(image);
    const id = this.#nextId++;
    const url = this.#store ? undefined : shownUrl;
    this.items.value = [...this.items.peek(), { id, name: file.name, shownUrl, url }];
    if (!this.#store) return;
    try {
      const stored = await this.#store(`${newId()}.${ENDINGS[image.type]}`, image);
      this.items.value = this.items.peek().map((each) => each.id === id ? { ...each, url: stored } : each);
    } catch (thrown) {
      this.remove(id);
      throw thrown;
    }
  }

  /** Removes an image. */
  remove(id: number): void {
    this.items.value = this.items.peek().filter((image) => image.id !== id);
  }

  /** Empties the list after sending. */
  take(): AttachedImage[] {
    const images = this.items.peek();
    this.items.value = [];
    return images;
  }

  /** Restores images that could not be sent. */
  putBack(images: readonly AttachedImage[]): void {
    this.items.value = [...images.map((image) => ({ ...image, id: this.#nextId++ })), ...this.items.peek()];
  }
}

/** Stores an image that may be as large as a camera's, and returns its URL. @throws as `ImageAttachments.add` */
export async function storeImage(store: StoreImage, file: File): Promise<string> {
  const image = await reduceImage(file);
  return await store(`${newId()}.${ENDINGS[image.type]}`, image);
}

/** True for image files that can be sent, or that the browser may be able to convert. */
export function isImageFile(file: File): boolean {
  return Object.hasOwn(ENDINGS, file.type) || CONVERTED.includes(file.type) || isHeic(file);
}

/**
 * Converts an image in another format to PNG, if the browser can read it.
 *
 * @returns The file itself if it has a format that can be sent.
 * @throws {ApiError} With what to do, if the browser can't read it.
 */
export async function convertImage(file: File): Promise<File> {
  if (Object.hasOwn(ENDINGS, file.type)) return file;
  const fail = () => {
    const message = isHeic(file) ? texts.composer.heicImage(file.name) : texts.composer.badImage(file.name);
    throw new ApiError(0, { code: "unsupported_media_type", message });
  };
  const bitmap = await createImageBitmap(file).catch(fail);
  try {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
    canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
    // There is none if the image is larger than a canvas can be.
    const png = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png")) ?? fail();
    return new File([png], file.name.replace(/\.[^.]*$/, "") + ".png", { type: "image/png" });
  } finally {
    bitmap.close();
  }
}

function isHeic({ type, name }: File): boolean {
  return /^image\/hei[cf]$/.test(type) || type === "" && HEIC.test(name);
}

async function reduceImage(chosen: File): Promise<Blob> {
  const file = await convertImage(chosen);
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

/** One recording in the composer. */
export interface AttachedRecording {
  /** Name of the attachment. */
  name: string;
  /** True during the upload. */
  isBusy: ReadonlySignal<boolean>;
}

/** The recordings of one composer. `speech/dictation.ts` adds them. */
export class Recordings {
  readonly items = signal<AttachedRecording[]>([]);
  /** True during an upload. */
  readonly isBusy = computed(() => this.items.value.some(({ isBusy }) => isBusy.value));

  /** Adds a recording. */
  add(recording: AttachedRecording): void {
    this.items.value = [...this.items.peek(), recording];
  }

  /** Removes a recording. */
  remove(name: string): void {
    this.items.value = this.items.peek().filter((item) => item.name !== name);
  }

  /** Empties the list after sending. */
  take(): AttachedRecording[] {
    const taken = this.items.peek();
    this.items.value = [];
    return taken;
  }

  /** Restores recordings that could not be sent. */
  putBack(items: readonly AttachedRecording[]): void {
    this.items.value = [...items, ...this.items.peek()];
  }
}

/** Highest page number; no document has more pages. */
const MAX_PAGE = 1_000_000;

/** Parses a list of pages. @returns The pages in order; undefined if the text isn't a list of pages up to `count`. */
export function parsePageList(text: string, count = MAX_PAGE): number[] | undefined {
  const pages = new Set<number>();
  for (const part of text.split(",").map((each) => each.trim()).filter((each) => each !== "")) {
    const match = /^(\d{1,7})(?:\s*[-–]\s*(\d{1,7}))?$/.exec(part);
    if (match === null) return undefined;
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (first < 1 || last < first || last > Math.min(count, MAX_PAGE)) return undefined;
    for (let page = first; page <= last; page++) pages.add(page);
  }
  return [...pages].sort((a, b) => a - b);
}

/** Formats pages as the API takes them: `3-5,12`. */
export function formatPageList(pages: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const page of [...new Set(pages)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && page === range[1] + 1) range[1] = page;
    else ranges.push([page, page]);
  }
  return ranges.map(([first, last]) => first === last ? `${first}` : `${first}-${last}`).join(",");
}

/** Returns a list of pages for readers: `3–5, 12`. */
export function showPageList(pages: string): string {
  return pages.replaceAll("-", "–").replaceAll(",", ", ");
}
