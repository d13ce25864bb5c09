/** The gallery of generated images, loaded page by page. */
import { batch, computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { ImageApi } from "../../api/images.ts";
import type { ChangeEvent, GalleryImage } from "../../api/types.ts";

/** The state of the screen. */
export class ImageGallery {
  readonly error = signal<ApiError | undefined>(undefined);
  readonly isLoading = signal(false);
  readonly #loaded = signal<GalleryImage[] | undefined>(undefined);
  readonly #hidden = signal<ReadonlySet<string>>(new Set());
  readonly #cursor = signal<string | null>(null);
  readonly #api: ImageApi;
  /** Newest first; undefined until the first page is there. */
  readonly items = computed(() => this.#loaded.value?.filter(({ id }) => !this.#hidden.value.has(id)));
  readonly hasMore = computed(() => this.#cursor.value !== null);

  constructor(api: ImageApi) {
    this.#api = api;
  }

  /** Loads the first page; later ones that are shown stay. */
  async refresh(): Promise<void> {
    await this.#load(undefined);
  }

  /** Loads the next page. */
  async loadMore(): Promise<void> {
    const cursor = this.#cursor.peek();
    if (cursor !== null && !this.isLoading.peek()) await this.#load(cursor);
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "generated_image") void this.refresh();
  }

  /** Hides an image until it is removed or shown again. */
  hide(id: string): void {
    this.#hidden.value = new Set([...this.#hidden.peek(), id]);
  }

  /** Shows a hidden image again. */
  show(id: string): void {
    this.#hidden.value = new Set([...this.#hidden.peek()].filter((other) => other !== id));
  }

  /** Deletes an image, also from its message. @throws {ApiError} */
  async remove(id: string): Promise<void> {
    try {
      await this.#api.deleteImage(id);
      this.#loaded.value = this.#loaded.peek()?.filter((image) => image.id !== id);
    } catch (thrown) {
      this.show(id);
      throw thrown;
    }
  }

  async #load(cursor: string | undefined): Promise<void> {
    this.isLoading.value = true;
    try {
      const { items, next_cursor } = await this.#api.listImages(cursor === undefined ? {} : { cursor });
      batch(() => {
        const loaded = this.#loaded.peek() ?? [];
        const isFirst = loaded.length === 0;
        // Ids increase with time: what is older than the page was loaded before and stays.
        const older = next_cursor === null ? [] : loaded.filter(({ id }) => id < next_cursor);
        const newer = cursor === undefined ? [] : loaded.filter(({ id }) => id >= cursor);
        this.#loaded.value = [...newer, ...items, ...older];
        if (cursor !== undefined || isFirst || older.length === 0) this.#cursor.value = next_cursor;
        this.error.value = undefined;
      });
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    } finally {
      this.isLoading.value = false;
    }
  }
}
