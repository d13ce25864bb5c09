/** The authors in chats: characters that occurred, and the user's personas. Loaded when first needed. */
import { computed, signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CardData, ChangeEvent, CharacterItem, Persona } from "../../api/types.ts";
import { LatestRead } from "../app/latest_read.ts";

/** A character as chats know it. */
export interface KnownCharacter extends CharacterItem {
  /** The voice that its card names. */
  voice: string | undefined;
}

/** Ids in one request. */
const ITEMS_PER_REQUEST = 100;

/** Names, portraits and voices of authors. */
export class Profiles {
  readonly personas = signal<Persona[]>([]);
  readonly personasState = signal<"idle" | "loading" | "ready" | "failed">("idle");
  readonly personasError = signal<ApiError | undefined>(undefined);
  /** Personas that are hidden while their deletion can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shownPersonas = computed(() => this.personas.value.filter(({ id }) => !this.hiddenIds.value.has(id)));
  /** By id; null for a deleted one. */
  readonly #characters = signal<ReadonlyMap<string, KnownCharacter | null>>(new Map());
  /** Their first requests, by ID. */
  readonly #requested = new Map<string, Promise<void>>();
  readonly #characterReads = new Map<string, LatestRead>();
  /** Names and portraits of characters for lists, by id; null for a deleted one. */
  readonly listItems = signal<ReadonlyMap<string, CharacterItem | null>>(new Map());
  readonly #requestedListItems = new Set<string>();
  /** The last request by id: its ids. */
  readonly #lastBatches = new Map<string, readonly string[]>();
  /** The next request. */
  #queuedListItems = new Set<string>();
  readonly #api: Api;
  readonly #personaReads = new LatestRead();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Returns a loaded character; `loadCharacter` loads it. */
  character(id: string | null | undefined): KnownCharacter | undefined {
    return this.#characters.value.get(id ?? "") ?? undefined;
  }

  /** Returns a loaded persona. */
  persona(id: string | null | undefined): Persona | undefined {
    return this.personas.value.find((persona) => persona.id === id);
  }

  /** Returns the loaded persona that new chats with a character have. */
  personaFor(characterId: string): Persona | undefined {
    return this.personas.value.find(({ character_ids }) => character_ids?.includes(characterId));
  }

  /** Loads a character once. */
  loadCharacter(id: string): void {
    if (!this.#requested.has(id)) this.#requested.set(id, this.#readCharacter(id));
  }

  /** Resolves when a character is loaded, or can't be. */
  async waitForCharacter(id: string): Promise<void> {
    this.loadCharacter(id);
    await this.#requested.get(id);
  }

  /** Returns the name and portrait of a character for a list; `loadListItems` loads it. Null if it was deleted. */
  getListItem(id: string): CharacterItem | null | undefined {
    return this.listItems.value.get(id);
  }

  /** Loads names and portraits once. Simultaneous calls of rows become one request. */
  loadListItems(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#requestedListItems.has(id)) continue;
      this.#requestedListItems.add(id);
      if (this.#queuedListItems.size === 0) queueMicrotask(() => void this.#fetchListItems());
      this.#queuedListItems.add(id);
    }
  }

  /** Loads the personas once. */
  loadPersonas(): void {
    if (this.personasState.peek() === "idle" || this.personasState.peek() === "failed") void this.refreshPersonas();
  }

  /** Reloads the personas. A failure keeps what is known. */
  async refreshPersonas(): Promise<void> {
    if (this.personasState.peek() !== "ready") this.personasState.value = "loading";
    try {
      await this.#personaReads.run(() => this.#api.listPersonas(), (personas) => this.personas.value = personas);
      this.personasState.value = "ready";
      this.personasError.value = undefined;
    } catch (thrown) {
      this.personasError.value = asApiError(thrown);
      if (this.personasState.peek() !== "ready") this.personasState.value = "failed";
    }
  }

  /** Hides a persona; `removePersona` deletes it. */
  hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.hiddenIds.peek());
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.hiddenIds.value = ids;
  }

  /** Moves a persona to the trash. @throws {ApiError} */
  async removePersona(id: string, keepalive: boolean): Promise<void> {
    try {
      await this.#api.deletePersona(id, { keepalive });
      this.personas.value = this.personas.peek().filter((persona) => persona.id !== id);
    } finally {
      this.hide(id, false);
    }
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    const isAny = event === undefined || event.kind === "characters";
    if (isAny) this.#reloadListItems(this.#requestedListItems);
    else if (event.kind === "character") this.#reloadListItems([event.id]);
    if (isAny) { for (const id of this.#requested.keys()) void this.#readCharacter(id); }
    else if (event.kind === "character" && this.#requested.has(event.id)) void this.#readCharacter(event.id);
    const isKnown = this.personasState.peek() !== "idle";
    if (isKnown && (event === undefined || event.kind === "persona")) void this.refreshPersonas();
  }

  async #readCharacter(id: string): Promise<void> {
    const reads = this.#characterReads.get(id) ?? new LatestRead();
    this.#characterReads.set(id, reads);
    try {
      await reads.run(() => this.#api.getCharacter(id), ({ character: { card, ...item } }) => {
        this.#know(id, { ...item, name: card.data.nickname?.trim() || item.name, voice: getCardVoice(card.data) });
      });
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404) this.#know(id, null);
      // Otherwise unknown: the chat works without. The page repeats reads that may succeed, the next visit the others.
      else if (!error.isTransient && !this.#characters.peek().has(id)) this.#requested.delete(id);
    }
  }

  #reloadListItems(ids: Iterable<string>): void {
    const again = [...ids].filter((id) => this.#requestedListItems.has(id));
    for (const id of again) this.#requestedListItems.delete(id);
    this.loadListItems(again);
  }

  async #fetchListItems(): Promise<void> {
    const ids = [...this.#queuedListItems];
    this.#queuedListItems = new Set();
    for (let at = 0; at < ids.length; at += ITEMS_PER_REQUEST) {
      const batch = ids.slice(at, at + ITEMS_PER_REQUEST);
      for (const id of batch) this.#lastBatches.set(id, batch);
      try {
        const found = new Map((await this.#api.listCharactersById(batch)).map((item) => [item.id, item]));
        const items = new Map(this.listItems.peek());
        for (const id of batch) {
          // One that was asked for again since may have changed.
          if (this.#lastBatches.get(id) === batch) items.set(id, found.get(id) ?? null);
        }
        this.listItems.value = items;
      } catch (thrown) {
        // Rows show the title alone. The page repeats reads that may succeed, the next row the others.
        if (!asApiError(thrown).isTransient) { for (const id of batch) this.#requestedListItems.delete(id); }
      }
    }
  }

  #know(id: string, item: KnownCharacter | null): void {
    this.#characters.value = new Map(this.#characters.peek()).set(id, item);
  }
}

const EXTENSION = "parlor/voice";

/** Returns the voice of a card: a voice of the speech server, or the id of a sample. */
export function getCardVoice({ extensions }: CardData): string | undefined {
  const voice = extensions[EXTENSION];
  return typeof voice === "string" && voice !== "" ? voice : undefined;
}

/** Returns the extensions of a card with another voice; undefined removes ours. */
export function setCardVoice({ extensions }: CardData, voice: string | undefined): CardData["extensions"] {
  const { [EXTENSION]: _, ...others } = extensions;
  return voice === undefined ? others : { ...others, [EXTENSION]: voice };
}
