/** The library of voice samples: what is in it, what comes in, and how each sounds. */
import type { ChangeEvent, VoiceImport, VoiceSample } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type SpeechApi, speechApi } from "../../api/speech.ts";
import { StreamedAudio } from "../../speech/streamed_audio.ts";
import { toggleListening } from "../../speech/play_source.ts";
import type { Store } from "../store.ts";

/** What the library's list stands on. */
export class VoiceLibrary {
  /** Undefined until they are read. */
  readonly samples = signal<VoiceSample[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Why the last import came to nothing. */
  readonly importError = signal<ApiError | undefined>(undefined);
  readonly #hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shown = computed(() => this.samples.value?.filter(({ id }) => !this.#hiddenIds.value.has(id)));
  readonly imports = computed(() =>
    this.#store.activity.runningJobs.value.filter(({ kind }) => kind === "voice_import")
  );
  readonly #store: Store;
  readonly #api: SpeechApi;

  constructor(store: Store) {
    this.#store = store;
    this.#api = speechApi(store.api.client);
  }

  /** Reads the samples; what is shown stays when that fails. */
  async refresh(): Promise<void> {
    try {
      this.samples.value = await this.#api.listVoiceSamples();
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Takes word of a change; of `undefined` when some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "voice") void this.refresh();
  }

  /** Takes a recording or a file in. @throws {ApiError} */
  async add(audio: Blob, name: string): Promise<void> {
    await this.#api.addVoiceSample(audio, name);
    await this.refresh();
  }

  /** Fetches a recording from an address; it goes on as a job when the page is left. Resolves when it has ended. */
  async import(request: VoiceImport): Promise<boolean> {
    this.importError.value = undefined;
    try {
      await this.#api.importVoiceSample(request);
      await this.refresh();
      return true;
    } catch (thrown) {
      const error = asApiError(thrown);
      // That is what Cancel ends with.
      if (error.code !== "conflict") this.importError.value = error;
      return false;
    }
  }

  /** @throws {ApiError} */
  async rename(id: string, name: string): Promise<void> {
    await this.#api.changeVoiceSample(id, { name });
    await this.refresh();
  }

  /** Hides a sample at once and removes it when the offer to undo has passed. */
  remove({ id }: VoiceSample, texts: { done: string; undo: string }): void {
    const { speaking, toasts } = this.#store;
    if (speaking.now.peek()?.key === id) speaking.stop();
    this.#hide(id, true);
    toasts.offerUndo(texts.done, texts.undo, () => this.#hide(id, false), (isLeaving) => {
      this.#api.deleteVoiceSample(id, { keepalive: isLeaving })
        .then(() => this.refresh())
        .catch((thrown) => this.#store.report(thrown))
        .finally(() => this.#hide(id, false));
    });
  }

  /** Lets a sample be heard, or ends that. */
  hear({ id }: VoiceSample): void {
    toggleListening(this.#store, id, () => new StreamedAudio((signal) => this.#api.openVoiceSample(id, signal)));
  }

  #hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.#hiddenIds.peek());
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.#hiddenIds.value = ids;
  }
}
