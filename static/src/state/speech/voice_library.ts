/** The library of voice samples, and recording one. */
import type { ChangeEvent, VoiceImport, VoiceSample } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type SpeechApi, speechApi } from "../../api/speech.ts";
import { StreamedAudio } from "../../speech/streamed_audio.ts";
import { toggleListening } from "../../speech/playback.ts";
import { LatestRead } from "../app/latest_read.ts";
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
  readonly #reads = new LatestRead();

  constructor(store: Store) {
    this.#store = store;
    this.#api = speechApi(store.api.client);
  }

  /** Loads the samples. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    try {
      await this.#reads.run(() => this.#api.listVoiceSamples(), (samples) => this.samples.value = samples);
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

/** `refused`: the browser or the user denied it; `impossible`: no secure origin or no microphone. */
type RecorderState =
  | { kind: "idle" }
  | { kind: "asking" }
  | { kind: "recording"; sinceMs: number }
  | { kind: "done"; audio: Blob }
  | { kind: "refused" }
  | { kind: "impossible" };

/** Longer recordings are useless as a sample, and a forgotten one must not fill the disk. In milliseconds. */
const MAX_RECORDING_MS = 2 * 60 * 1000;

/** Records once at a time. */
export class Recorder {
  readonly state = signal<RecorderState>({ kind: "idle" });
  #recorder: MediaRecorder | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Requests the microphone and starts. Drops the previous recording. */
  async start(): Promise<void> {
    const devices = globalThis.navigator.mediaDevices as MediaDevices | undefined;
    if (!devices || globalThis.MediaRecorder === undefined) return void (this.state.value = { kind: "impossible" });
    this.state.value = { kind: "asking" };
    let stream: MediaStream;
    try {
      stream = await devices.getUserMedia({ audio: true });
    } catch (thrown) {
      const isRefused = thrown instanceof DOMException && thrown.name === "NotAllowedError";
      this.state.value = { kind: isRefused ? "refused" : "impossible" };
      return;
    }
    if (this.#isClosed) return release(stream);
    this.#record(stream);
  }

  /** Ends the recording; `state` has it then. */
  stop(): void {
    clearTimeout(this.#timer);
    if (this.#recorder?.state === "recording") this.#recorder.stop();
  }

  /** Releases the microphone. */
  close(): void {
    this.#isClosed = true;
    this.stop();
  }

  #record(stream: MediaStream): void {
    const parts: Blob[] = [];
    const recorder = this.#recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
    recorder.addEventListener("stop", () => {
      release(stream);
      this.state.value = { kind: "done", audio: new Blob(parts, { type: recorder.mimeType }) };
    });
    recorder.start();
    this.state.value = { kind: "recording", sinceMs: Date.now() };
    this.#timer = setTimeout(() => this.stop(), MAX_RECORDING_MS);
  }
}

function release(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop();
}
