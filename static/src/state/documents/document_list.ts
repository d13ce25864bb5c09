/** A list of documents: reloaded after changes, without those being deleted. */
import type { ChangeEvent } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { DocumentApi } from "../../api/documents.ts";
import type { Store } from "../store.ts";

/** The documents of one kind. */
export class DocumentList<Item extends { id: string }, Whole extends Item> {
  readonly items = signal<Item[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Why the last import failed. */
  readonly importError = signal<ApiError | undefined>(undefined);
  readonly isImporting = signal(false);
  readonly shown = computed(() => this.items.value?.filter(({ id }) => !this.#hiddenIds.value.has(id)));
  readonly api: DocumentApi<Item, Whole>;
  readonly #kind: string;
  readonly #store: Store;
  readonly #hiddenIds = signal<ReadonlySet<string>>(new Set());

  /** @param kind Of the change events. */
  constructor(store: Store, api: DocumentApi<Item, Whole>, kind: string) {
    this.#store = store;
    this.api = api;
    this.#kind = kind;
  }

  /** Loads the list. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    try {
      this.items.value = await this.api.list();
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === this.#kind) void this.refresh();
  }

  /** Imports a file; undefined on failure, with the reason in `importError`. */
  async import(file: File): Promise<Whole | undefined> {
    this.isImporting.value = true;
    this.importError.value = undefined;
    try {
      return await this.api.import(file);
    } catch (thrown) {
      this.importError.value = asApiError(thrown);
      return undefined;
    } finally {
      this.isImporting.value = false;
    }
  }

  /** Hides a document at once and moves it to the trash when the offer to undo ends. */
  remove(id: string, texts: { done: string; undo: string }): void {
    this.#hide(id, true);
    this.#store.toasts.offerUndo(texts.done, texts.undo, () => this.#hide(id, false), (isLeaving) => {
      this.api.remove(id, { keepalive: isLeaving })
        .then(() => this.refresh())
        .catch((thrown) => this.#store.report(thrown))
        .finally(() => this.#hide(id, false));
    });
  }

  #hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.#hiddenIds.peek());
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.#hiddenIds.value = ids;
  }
}
