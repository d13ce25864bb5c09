/** Dictation: records, transcribes, and keeps the recording until its text has arrived. */
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../api/client.ts";
import type { TranscriptionApi } from "../api/speech.ts";
import {
  FRAME_MS,
  FRAME_RATE_HZ,
  type Microphone,
  MicrophoneError,
  type MicrophoneProblem,
  openMicrophone,
  type SoundFrame,
} from "./microphone.ts";
import { joinFrames } from "./voice_activity.ts";
import { toWaveFile } from "./wave_file.ts";
import { newId } from "../state/app/ids.ts";
import type { OpenChat } from "../state/chat/open_chat.ts";
import type { Store } from "../state/store.ts";

/** A recording in the browser's format, and as WAV for servers that need it. */
interface Recording {
  /** Undefined if the browser can't record. */
  native: Blob | undefined;
  wave: Blob;
}

/** The state of a dictation. `silent`: nothing was heard. */
export type DictationState =
  | { kind: "asking" }
  | { kind: "recording"; sinceMs: number }
  | { kind: "transcribing" }
  | { kind: "done"; text: string }
  | { kind: "silent" }
  | { kind: "no_microphone"; problem: MicrophoneProblem }
  | { kind: "failed"; error: ApiError };

/** Longest recording: as WAV it's 19 MB, below what servers accept. In milliseconds. */
const MAX_DICTATION_MS = 10 * 60 * 1000;
/** Below this peak level nothing was said, and Whisper would make something up. */
const SILENT_LEVEL = 0.003;

/** Formats that a server refused, by page load: then WAV is sent at once. */
let needsWave = false;

/** One dictation. */
export class Dictation {
  readonly state = signal<DictationState>({ kind: "asking" });
  /** 0 to 1, for a meter. */
  readonly level = signal(0);
  /** The text so far, while it arrives. */
  readonly text = signal("");
  /** What was recorded; kept after a failure. */
  recording: Recording | undefined;
  readonly #api: TranscriptionApi;
  readonly #prompt: string;
  readonly #abort = new AbortController();
  #microphone: Microphone | undefined;
  #recorder: MediaRecorder | undefined;
  #parts: Blob[] = [];
  #frames: SoundFrame[] = [];
  #peak = 0;
  /** The user ended before the microphone was open. */
  #isEndWanted = false;

  /** @param prompt Names that the recognizer should know. */
  constructor(api: TranscriptionApi, prompt: string) {
    this.#api = api;
    this.#prompt = prompt;
  }

  /** Opens the microphone and records. */
  async start(): Promise<void> {
    try {
      const microphone = await openMicrophone({
        onFrame: (frame) => this.#onFrame(frame),
        onLost: () => void this.#onLost(),
      });
      if (this.#abort.signal.aborted) return microphone.close();
      if (this.#isEndWanted) {
        microphone.close();
        this.state.value = { kind: "silent" };
        return;
      }
      this.#microphone = microphone;
      this.#startRecorder(microphone.stream);
      this.state.value = { kind: "recording", sinceMs: Date.now() };
    } catch (thrown) {
      if (thrown instanceof MicrophoneError) this.state.value = { kind: "no_microphone", problem: thrown.problem };
      else this.state.value = { kind: "failed", error: asApiError(thrown) };
    }
  }

  /** Ends the recording and transcribes it. */
  async finish(): Promise<void> {
    this.#isEndWanted = true;
    if (this.state.peek().kind !== "recording") return;
    this.state.value = { kind: "transcribing" };
    await this.#endRecording();
    if (this.#abort.signal.aborted) return;
    await this.transcribe();
  }

  /** Transcribes the recording, also again after a failure. */
  async transcribe(): Promise<void> {
    const { recording } = this;
    if (recording === undefined) return;
    if (this.#peak < SILENT_LEVEL) return void (this.state.value = { kind: "silent" });
    this.state.value = { kind: "transcribing" };
    try {
      const text = await this.#request(recording);
      this.state.value = text === "" ? { kind: "silent" } : { kind: "done", text };
    } catch (thrown) {
      if (!this.#abort.signal.aborted) this.state.value = { kind: "failed", error: asApiError(thrown) };
    }
  }

  /** Drops everything and releases the microphone. */
  cancel(): void {
    this.#abort.abort();
    this.#microphone?.close();
  }

  /** Sends what the browser recorded. If the server refuses that, sends WAV, now and from then on. */
  async #request({ native, wave }: Recording): Promise<string> {
    const options = {
      prompt: this.#prompt,
      signal: this.#abort.signal,
      onText: (text: string) => this.text.value = text,
    } satisfies Parameters<TranscriptionApi["transcribe"]>[1];
    const isNative = native !== undefined && !needsWave;
    try {
      return cleanTranscript((await this.#api.transcribe(isNative ? native : wave, options)).text);
    } catch (thrown) {
      if (!isNative || !isRefused(asApiError(thrown))) throw thrown;
      const { text } = await this.#api.transcribe(wave, options);
      needsWave = true;
      return cleanTranscript(text);
    }
  }

  #startRecorder(stream: MediaStream): void {
    if (globalThis.MediaRecorder === undefined) return;
    this.#recorder = new MediaRecorder(stream);
    this.#recorder.addEventListener("dataavailable", ({ data }) => this.#parts.push(data));
    this.#recorder.start();
  }

  #onFrame(frame: SoundFrame): void {
    if (this.state.peek().kind !== "recording") return;
    this.#frames.push(frame);
    this.#peak = Math.max(this.#peak, frame.level);
    this.level.value = toMeter(frame.level);
    if (this.#frames.length * FRAME_MS >= MAX_DICTATION_MS) void this.finish();
  }

  /** An unplugged microphone: what was recorded counts. */
  async #onLost(): Promise<void> {
    await this.#endRecording();
    if (this.state.peek().kind === "recording") this.state.value = { kind: "no_microphone", problem: "unplugged" };
  }

  async #endRecording(): Promise<void> {
    const recorder = this.#recorder;
    if (recorder && recorder.state !== "inactive") {
      const stopped = new Promise((resolve) => recorder.addEventListener("stop", resolve, { once: true }));
      recorder.stop();
      await stopped;
    }
    this.#microphone?.close();
    this.level.value = 0;
    this.recording = {
      native: recorder && new Blob(this.#parts, { type: recorder.mimeType }),
      wave: toWave(joinFrames(this.#frames)),
    };
  }
}

/** Converts a level to the height of a meter: speech fills most of it. */
export function toMeter(level: number): number {
  return Math.min(1, Math.max(0, 1 + 20 * Math.log10(Math.max(level, 1e-6)) / 55));
}

/** Makes a WAV file of samples at 16 kHz. */
export function toWave(samples: Int16Array<ArrayBuffer>): Blob {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  return new Blob([toWaveFile(bytes, FRAME_RATE_HZ)], { type: "audio/wav" });
}

/** Returns a transcript, or nothing if all of it is a note in brackets: "[BLANK_AUDIO]", "(wind blowing)". */
export function cleanTranscript(text: string): string {
  return text.replace(/\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|♪/g, "").trim() === "" ? "" : text.trim();
}

/** True if the server may accept the same recording in another format. */
function isRefused({ status }: ApiError): boolean {
  return status === 415 || status === 502;
}

/**
 * Stores a recording for the next message if the owner wants that. A failure is shown and loses the recording only.
 *
 * @param recording As WAV: every browser plays it and can seek in it, which isn't true of what browsers record.
 */
export async function keepRecording(store: Store, chat: OpenChat, recording: Blob): Promise<void> {
  if (chat.isTemporary || store.preferences.settings.peek()?.keep_recordings !== true) return;
  const name = `${newId()}.wav`;
  const isBusy = signal(true);
  chat.recordings.add({ name, isBusy });
  try {
    await store.api.putAttachment(name, recording, chat.id);
  } catch (thrown) {
    chat.recordings.remove(name);
    store.report(thrown);
  } finally {
    isBusy.value = false;
  }
}
