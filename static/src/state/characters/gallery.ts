/** The characters of the gallery: page by page, filtered by a query and a tag. Loaded with the gallery. */
import type { Card, ChangeEvent, CharacterFolder, CharacterItem } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CharacterQuery } from "../../api/characters.ts";
import type { Api } from "../../api/api.ts";
import type { Chats } from "../chat/chats.ts";
import { Selection } from "../app/selection.ts";
import type { Store } from "../store.ts";

/** The first page fills any screen; later ones have the server's maximum. */
const FIRST_PAGE = 120;
const NEXT_PAGE = 500;

/** Most characters that the last chats put first. */
const MAX_TALKED = 100;

/** Pause in typing before the server is asked, in milliseconds. */
const TYPING_MS = 200;

/** Changes come in bursts, especially during an import. In milliseconds. */
const REFRESH_AFTER_MS = 300;

/** The gallery of one tab. */
export class Gallery {
  readonly query = signal<CharacterQuery>({ q: "", tag: "", sort: "favorites" });
  readonly items = signal<CharacterItem[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  /** Characters that are hidden while their deletion can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shown = computed(() => this.items.value.filter((item) => !this.hiddenIds.value.has(item.id)));
  /** True without a filter. */
  readonly isWhole = computed(() => {
    const { q, tag, favorite, folder } = this.query.value;
    return q.trim() === "" && tag === "" && !favorite && folder === undefined;
  });
  /** Tags of the loaded characters, the most used first. */
  readonly tags = computed(() => listTags(this.items.value));
  readonly folders = signal<readonly CharacterFolder[]>([]);
  readonly selection = new Selection();
  /** The grid's scroll position. */
  readonly place = { top: 0 };
  readonly #api: Api;
  readonly #chats: Pick<Chats, "shown">;
  #nextCursor: string | null = null;
  #loading = new AbortController();
  #isReadingMore = false;
  #isRefreshing = false;
  #isOpen = false;
  #isStale = true;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param chats Knows who was talked to. */
  constructor(api: Api, chats: Pick<Chats, "shown">) {
    this.#api = api;
    this.#chats = chats;
  }

  /** Called when the gallery is shown; loads what has changed. Returns a function to call when it is hidden. */
  open(): () => void {
    this.#isOpen = true;
    if (this.#isStale || this.query.peek().sort === "talked") void this.refresh();
    return () => {
      this.#isOpen = false;
      this.selection.end();
    };
  }

  /** Filters or sorts the list. */
  narrow(changes: Partial<CharacterQuery>): void {
    this.query.value = { ...this.query.peek(), ...changes };
    this.place.top = 0;
    this.#later(changes.q === undefined ? 0 : TYPING_MS);
  }

  /** Reloads the list as far as it was loaded before. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#loading.abort();
    const loading = this.#loading = new AbortController();
    const { signal } = loading;
    this.#isStale = false;
    this.#isRefreshing = true;
    const query = this.query.peek();
    const count = this.items.peek().length;
    try {
      const folders = this.#api.listCharacterFolders();
      folders.catch(() => {}); // the list may fail first
      const items = query.sort === "talked" ? await this.#listTalked(query, signal) : [];
      const first = new Set(items.map(({ id }) => id));
      let cursor: string | null = null;
      do {
        const limit = items.length === 0 && count <= FIRST_PAGE ? FIRST_PAGE : NEXT_PAGE;
        const page = await this.#api.listCharacters(query, limit, cursor ?? undefined, signal);
        items.push(...page.items.filter(({ id }) => !first.has(id)));
        cursor = page.next_cursor;
      } while (cursor !== null && items.length < count);
      const found = await folders;
      if (signal.aborted) return;
      this.folders.value = found;
      this.items.value = items;
      this.#nextCursor = cursor;
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      if (signal.aborted) return;
      this.#isStale = true;
      this.error.value = asApiError(thrown);
      if (this.state.peek() !== "ready") this.state.value = "failed";
    } finally {
      if (this.#loading === loading) this.#isRefreshing = false;
    }
  }

  /** Returns those with chats that the query finds, the last one talked to first. */
  async #listTalked(query: CharacterQuery, signal: AbortSignal): Promise<CharacterItem[]> {
    const ids = [...new Set(this.#chats.shown.peek().flatMap(({ character_ids }) => character_ids ?? []))]
      .slice(0, MAX_TALKED);
    if (ids.length === 0) return [];
    const { items } = await this.#api.listCharacters({ ...query, ids }, MAX_TALKED, undefined, signal);
    return items.sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
  }

  /** Reads the folders without the list. @throws {ApiError} */
  async loadFolders(): Promise<void> {
    this.folders.value = await this.#api.listCharacterFolders();
  }

  /** Loads the next page; while the list is read again, nothing: it would be lost when that ends. */
  async more(): Promise<void> {
    const cursor = this.#nextCursor;
    if (cursor === null || this.#isReadingMore || this.#isRefreshing) return;
    this.#isReadingMore = true;
    const { signal } = this.#loading;
    try {
      const page = await this.#api.listCharacters(this.query.peek(), NEXT_PAGE, cursor, signal);
      if (signal.aborted || this.#nextCursor !== cursor) return;
      const known = new Set(this.items.peek().map(({ id }) => id));
      this.items.value = [...this.items.peek(), ...page.items.filter(({ id }) => !known.has(id))];
      this.#nextCursor = page.next_cursor;
    } catch (thrown) {
      if (!signal.aborted) this.error.value = asApiError(thrown);
    } finally {
      this.#isReadingMore = false;
    }
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "character" || event.kind === "characters") this.#later(REFRESH_AFTER_MS);
  }

  /** Makes a character a favorite or not: shown at once, reverted if the server refuses. @throws {ApiError} */
  async setFavorite(id: string, favorite: boolean): Promise<void> {
    await this.#change(id, { favorite }, (extensions) => ({ ...extensions, fav: favorite }));
  }

  /** Moves a character to a folder, or to none: shown at once, reverted if the server refuses. @throws {ApiError} */
  async setFolder(id: string, folder: string | null): Promise<void> {
    await this.#change(id, { folder }, ({ parlor, ...others }) => {
      const { folder: _, ...rest } = { ...parlor as Record<string, unknown> | undefined };
      const own = folder === null ? rest : { ...rest, folder };
      return Object.keys(own).length === 0 ? others : { ...others, parlor: own };
    });
  }

  /** Changes the extensions of a card, and what the list shows of them. */
  async #change(
    id: string,
    fields: Partial<CharacterItem>,
    change: (extensions: Card["data"]["extensions"]) => Card["data"]["extensions"],
  ): Promise<void> {
    const before = this.items.peek().find((item) => item.id === id);
    const show = (shown: Partial<CharacterItem>) =>
      this.items.value = this.items.peek().map((item) => item.id === id ? { ...item, ...shown } : item);
    show(fields);
    try {
      const { character: { card }, version } = await this.#api.getCharacter(id);
      const extensions = change(card.data.extensions);
      await this.#api.saveCharacter(id, { ...card, data: { ...card.data, extensions } }, version);
    } catch (thrown) {
      if (before) show(before);
      throw thrown;
    }
  }

  /** Hides characters; `remove` deletes one. */
  hide(ids: readonly string[], isHidden: boolean): void {
    const hidden = new Set(this.hiddenIds.peek());
    for (const id of ids) {
      if (isHidden) hidden.add(id);
      else hidden.delete(id);
    }
    this.hiddenIds.value = hidden;
  }

  /** Moves a character to the trash. @throws {ApiError} */
  async remove(id: string, keepalive: boolean): Promise<void> {
    try {
      await this.#api.deleteCharacter(id, { keepalive });
      this.items.value = this.items.peek().filter((item) => item.id !== id);
    } finally {
      this.hide([id], false);
    }
  }

  #later(afterMs: number): void {
    this.#isStale = true;
    clearTimeout(this.#timer);
    if (this.#isOpen) this.#timer = setTimeout(() => this.refresh(), afterMs);
  }
}

const galleries = new WeakMap<Store, Gallery>();

/** Returns the gallery, created when first needed. */
export function getGallery(store: Store): Gallery {
  let gallery = galleries.get(store);
  if (!gallery) {
    const created = gallery = new Gallery(store.api, store.chats);
    galleries.set(store, created);
    store.listen((event) => created.onChange(event));
  }
  return gallery;
}

/** Hides characters at once and moves them to the trash when the offer to undo ends. */
export function removeCharacters(store: Store, ids: readonly string[], texts: { done: string; undo: string }): void {
  const gallery = getGallery(store);
  gallery.hide(ids, true);
  store.toasts.offerUndo(texts.done, texts.undo, () => gallery.hide(ids, false), (isLeaving) => {
    for (const id of ids) gallery.remove(id, isLeaving).catch((thrown) => store.report(thrown));
  });
}

function listTags(items: readonly CharacterItem[]): string[] {
  const counts = new Map<string, number>();
  for (const { tags } of items) for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || a.localeCompare(b)).slice(0, 100).map(([tag]) => tag);
}
