/** The library of voice samples. */
import type { ChangeEvent, VoiceImport, VoiceSample } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type SpeechApi, speechApi } from "../../api/speech.ts";
import { StreamedAudio } from "../../speech/streamed_audio.ts";
import { toggleListening } from "../../speech/play_source.ts";
import type { Store } from "../store.ts";

/** State of the library. */
export class VoiceLibrary {
  /** Undefined until loaded. */
  readonly samples = signal<VoiceSample[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Why the last import failed. */
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

  /** Loads the samples. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    try {
      this.samples.value = await this.#api.listVoiceSamples();
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "voice") void this.refresh();
  }

  /** Adds a recording or a file. @throws {ApiError} */
  async add(audio: Blob, name: string): Promise<void> {
    await this.#api.addVoiceSample(audio, name);
    await this.refresh();
  }

  /** Imports a recording from a URL, as a job that survives the page. Resolves when it has ended. */
  async import(request: VoiceImport): Promise<boolean> {
    this.importError.value = undefined;
    try {
      await this.#api.importVoiceSample(request);
      await this.refresh();
      return true;
    } catch (thrown) {
      const error = asApiError(thrown);
      // Cancel ends the job this way.
      if (error.code !== "conflict") this.importError.value = error;
      return false;
    }
  }

  /** @throws {ApiError} */
  async rename(id: string, name: string): Promise<void> {
    await this.#api.changeVoiceSample(id, { name });
    await this.refresh();
  }

  /** Hides a sample at once and deletes it when the offer to undo ends. */
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

  /** Plays or stops a sample. */
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
