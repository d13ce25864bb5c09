/** Who speaks in chats: the characters that were met, and the personas of the owner. Both are read when first wanted. */
import { computed, signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CardData, ChangeEvent, CharacterItem, Persona } from "../../api/types.ts";

/** A character as chats know it. */
export interface KnownCharacter extends CharacterItem {
  /** The voice it is read aloud with, where its card names one. */
  voice: string | undefined;
}

/** Names, portraits and voices of those who speak. */
export class Profiles {
  readonly personas = signal<Persona[]>([]);
  readonly personasState = signal<"idle" | "loading" | "ready" | "failed">("idle");
  readonly personasError = signal<ApiError | undefined>(undefined);
  /** Personas that are hidden while their removal can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shownPersonas = computed(() => this.personas.value.filter(({ id }) => !this.hiddenIds.value.has(id)));
  /** By id; null for one that is gone. */
  readonly #characters = signal<ReadonlyMap<string, KnownCharacter | null>>(new Map());
  readonly #asked = new Set<string>();
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Gives a character that is known; `wantCharacter` makes it known. */
  character(id: string | null | undefined): KnownCharacter | undefined {
    return this.#characters.value.get(id ?? "") ?? undefined;
  }

  /** Gives a persona that is known. */
  persona(id: string | null | undefined): Persona | undefined {
    return this.personas.value.find((persona) => persona.id === id);
  }

  /** Reads a character unless that was done. */
  wantCharacter(id: string): void {
    if (this.#asked.has(id)) return;
    this.#asked.add(id);
    void this.#readCharacter(id);
  }

  /** Reads the personas unless that was done. */
  wantPersonas(): void {
    if (this.personasState.peek() === "idle" || this.personasState.peek() === "failed") void this.refreshPersonas();
  }

  /** Reads the personas again; what is known stays when that fails. */
  async refreshPersonas(): Promise<void> {
    if (this.personasState.peek() !== "ready") this.personasState.value = "loading";
    try {
      this.personas.value = await this.#api.listPersonas();
      this.personasState.value = "ready";
      this.personasError.value = undefined;
    } catch (thrown) {
      this.personasError.value = asApiError(thrown);
      if (this.personasState.peek() !== "ready") this.personasState.value = "failed";
    }
  }

  /** Hides a persona; the removal itself comes with `removePersona`. */
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

  /** Takes word of a change; of `undefined` when some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    const isAny = event === undefined || event.kind === "characters";
    if (isAny) { for (const id of this.#asked) void this.#readCharacter(id); }
    else if (event.kind === "character" && this.#asked.has(event.id)) void this.#readCharacter(event.id);
    const isKnown = this.personasState.peek() !== "idle";
    if (isKnown && (event === undefined || event.kind === "persona")) void this.refreshPersonas();
  }

  async #readCharacter(id: string): Promise<void> {
    try {
      const { card, ...item } = (await this.#api.getCharacter(id)).character;
      this.#know(id, { ...item, name: card.data.nickname?.trim() || item.name, voice: getCardVoice(card.data) });
    } catch (thrown) {
      if (asApiError(thrown).status === 404) this.#know(id, null);
      // Else unknown: the chat can be read without, and the next visit asks again.
      else if (!this.#characters.peek().has(id)) this.#asked.delete(id);
    }
  }

  #know(id: string, item: KnownCharacter | null): void {
    this.#characters.value = new Map(this.#characters.peek()).set(id, item);
  }
}

const EXTENSION = "parlor/voice";

/** Gives the voice of a card, a voice of the speech server's or the id of a sample. */
export function getCardVoice({ extensions }: CardData): string | undefined {
  const voice = extensions[EXTENSION];
  return typeof voice === "string" && voice !== "" ? voice : undefined;
}

/** Gives the extensions of a card with another voice; without one it has none of ours. */
export function setCardVoice({ extensions }: CardData, voice: string | undefined): CardData["extensions"] {
  const { [EXTENSION]: _, ...others } = extensions;
  return voice === undefined ? others : { ...others, [EXTENSION]: voice };
}
