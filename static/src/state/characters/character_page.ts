/** The page of one character: its card, its portrait job, and its chats. */
import { computed, signal } from "@preact/signals";
import { characterPath } from "../../api/characters.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { ChangeEvent, Character, Portrait } from "../../api/types.ts";
import { listVersions, restoreVersion } from "../../api/versions.ts";
import { LatestRead } from "../app/latest_read.ts";
import type { Store } from "../store.ts";
import { texts } from "../../texts/texts.ts";

/** The load state of the character. */
export type CharacterLoad = { kind: "loading" } | { kind: "ready"; character: Character; version: string } | {
  kind: "missing";
} | { kind: "failed"; error: ApiError };

/** The state of a character's page. */
export class CharacterPage {
  readonly id: string;
  readonly load = signal<CharacterLoad>({ kind: "loading" });
  readonly portrait = signal<Portrait>({ state: "none" });
  /** Chats with this character, newest first, from the list of the sidebar. */
  readonly chats = computed(() =>
    this.#store.chats.shown.value.filter(({ character_ids }) => character_ids.includes(this.id))
  );
  readonly #store: Store;
  readonly #reads = new LatestRead();
  readonly #portraitReads = new LatestRead();
  /** A portrait was started here or seen running, so its end is news. */
  #isPortraitAwaited = false;
  /** When the generation began whose portrait was offered to be undone. */
  #undoOfferedFor: string | undefined;

  constructor(store: Store, id: string) {
    this.#store = store;
    this.id = id;
  }

  /** Loads everything and follows changes. Returns a function that stops. */
  open(): () => void {
    void this.reload();
    void this.#readPortrait();
    return this.#store.listen((event) => this.#onChange(event));
  }

  /** Reloads the character. A failure keeps what is shown. */
  async reload(): Promise<void> {
    try {
      const read = () => this.#store.api.getCharacter(this.id);
      await this.#reads.run(read, (found) => this.load.value = { kind: "ready", ...found });
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404) this.load.value = { kind: "missing" };
      else if (this.load.peek().kind !== "ready") this.load.value = { kind: "failed", error };
    }
  }

  /** Starts a chat with one of the greetings and opens it. @throws {ApiError} */
  async startChat(greeting: number): Promise<void> {
    const { id } = await this.#store.api.beginChat({ character_ids: [this.id], greeting });
    this.#store.router.go(`/c/${encodeURIComponent(id)}`);
  }

  /** Replaces the character's image. @throws {ApiError} */
  async replaceImage(image: Blob): Promise<void> {
    this.load.value = { kind: "ready", ...await this.#store.api.setCharacterAvatar(this.id, image) };
  }

  /** Starts the generation of a portrait. @throws {ApiError} */
  async drawPortrait(): Promise<void> {
    await this.#store.api.startPortrait(this.id);
    this.#isPortraitAwaited = true;
    await this.#readPortrait();
  }

  #onChange(event: ChangeEvent | undefined): void {
    const isAny = event === undefined || event.kind === "characters";
    if (isAny || (event.kind === "character" && event.id === this.id)) void this.reload();
    // Job events have the job's own id, which the portrait's state does not name.
    if (isAny || event.kind === "job") void this.#readPortrait();
  }

  async #readPortrait(): Promise<void> {
    try {
      await this.#portraitReads.run(() => this.#store.api.getPortrait(this.id), (portrait) => this.#take(portrait));
    } catch {
      // The image itself says more; the next change asks again.
    }
  }

  #take(portrait: Portrait): void {
    const { state, started_at: startedAt } = this.portrait.value = portrait;
    const wasAwaited = this.#isPortraitAwaited;
    this.#isPortraitAwaited = state === "pending" || state === "running";
    if (state !== "done" || !wasAwaited || startedAt === this.#undoOfferedFor) return;
    this.#undoOfferedFor = startedAt;
    this.#offerUndoOfPortrait();
  }

  /** The previous image is the newest version that a portrait replaced. */
  #offerUndoOfPortrait(): void {
    const { api: { client }, toasts } = this.#store;
    const path = characterPath(this.id);
    const undo = async () => {
      const before = (await listVersions(client, path)).find(({ cause }) => cause === "portrait");
      if (before) await restoreVersion(client, path, before.n);
      await this.reload();
    };
    toasts.show(texts.history.portraitDrawn, {
      action: { label: texts.undo, run: () => void undo().catch((thrown) => this.#store.report(thrown)) },
    });
  }
}
