/** The speech server in the settings: its configuration, its voices and models, and a test. */
import type { ChangeEvent, SpeechConfig, SpeechConfigPatch, Voices } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type SpeechApi, speechApi } from "../../api/speech.ts";
import { StreamedAudio } from "../../speech/streamed_audio.ts";
import { createSingleSource, playSource, toggleListening } from "../../speech/playback.ts";
import { ChangeQueue } from "../app/change_queue.ts";
import { LatestRead } from "../app/latest_read.ts";
import type { Store } from "../store.ts";

/** A test of the server. */
export type SpeechTest =
  | { kind: "running" }
  | { kind: "done"; firstSoundMs: number; models: number | undefined; choice: Voices }
  | { kind: "failed"; error: ApiError };

/** Key of a voice preview. */
export function toPreviewKey(voice: string): string {
  return `voice:${voice}`;
}

/** State of the speech settings and of voice pickers. */
export class SpeechSettings {
  readonly config = signal<SpeechConfig | undefined>(undefined);
  readonly choice = signal<Voices | undefined>(undefined);
  /** Empty if the server does not list them. */
  readonly models = signal<string[]>([]);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly test = signal<SpeechTest | undefined>(undefined);
  readonly #store: Store;
  readonly #api: SpeechApi;
  readonly #changes = new ChangeQueue();
  readonly #reads = new LatestRead();
  /** Server and model that the lists belong to. */
  #offersOf: string | undefined;

  constructor(store: Store) {
    this.#store = store;
    this.#api = speechApi(store.api.client);
  }

  /** Loads the configuration and the lists. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    this.#offersOf = undefined;
    await this.#refreshConfig();
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    const isLibrary = event?.kind === "voice" && this.choice.peek()?.source !== "upstream";
    if (event === undefined || isLibrary) void this.refresh();
    else if (event.kind === "speech") void this.#refreshConfig();
  }

  /** Changes the configuration. @throws {ApiError} */
  async change(changes: SpeechConfigPatch): Promise<void> {
    await this.#changes.run(async () => this.config.value = await this.#api.changeSpeechConfig(changes));
    await this.#readOffers();
  }

  /** Speaks a test sentence and measures when it becomes audible. */
  async try(sentence: string): Promise<void> {
    const running: SpeechTest = this.test.value = { kind: "running" };
    // Changed settings forget it.
    const end = (test: SpeechTest) => this.test.peek() === running && (this.test.value = test);
    try {
      const startedAtMs = performance.now();
      const audio = this.#speak(sentence, undefined);
      // The type is known with the first bytes: the server inspects them before it responds.
      await audio.contentType;
      const firstSoundMs = performance.now() - startedAtMs;
      playSource(this.#store, toPreviewKey(""), createSingleSource(() => audio));
      const [models, choice] = await Promise.all([this.#listModels(), this.#api.listVoices()]);
      end({ kind: "done", firstSoundMs, models: models?.length, choice });
    } catch (thrown) {
      end({ kind: "failed", error: asApiError(thrown) });
    }
  }

  /** Plays or stops a voice preview; the configured voice for an empty one. */
  hear(voice: string, sentence: string): void {
    toggleListening(this.#store, toPreviewKey(voice), () => this.#speak(sentence, voice || undefined));
  }

  #speak(text: string, voice: string | undefined): StreamedAudio {
    return new StreamedAudio((signal) => this.#api.speak({ text, voice }, signal));
  }

  async #refreshConfig(): Promise<void> {
    try {
      await this.#reads.run(() => this.#api.getSpeechConfig(), (config) => this.config.value = config);
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      return;
    }
    await this.#readOffers();
  }

  /** Both lists are optional, since a voice or model can be typed. Some servers are slow to list them. */
  async #readOffers(): Promise<void> {
    const { base_url, model, has_key } = this.config.peek()!;
    const key = JSON.stringify([base_url, model, has_key]);
    if (key === this.#offersOf) return;
    this.#offersOf = key;
    const hasServer = base_url !== "";
    const [choice, models] = await Promise.all([
      this.#api.listVoices().catch(() => undefined),
      hasServer ? this.#listModels() : undefined,
    ]);
    if (key !== this.#offersOf) return;
    this.choice.value = choice;
    this.models.value = models ?? [];
  }

  #listModels(): Promise<string[] | undefined> {
    return this.#api.listSpeechModels().catch(() => undefined);
  }
}
