/** Dictation with the browser's own speech recognition, which may send the sound to the browser's vendor. */
import { signal } from "@preact/signals";
import { ApiError } from "../api/client.ts";
import type { DictationState } from "./dictation.ts";
import type { MicrophoneProblem } from "./microphone.ts";

/** The part of the interface that is used. Browsers have it under a prefix. @see https://webaudio.github.io/web-speech-api/ */
interface Recognition extends EventTarget {
  continuous: boolean;
  interimResults: boolean;
  lang: string;
  start(): void;
  stop(): void;
  abort(): void;
}

interface RecognitionResultEvent extends Event {
  readonly results: Iterable<Iterable<{ transcript: string }>>;
}

interface RecognitionErrorEvent extends Event {
  readonly error: string;
}

type RecognitionClass = new () => Recognition;

/** True if this browser has speech recognition. */
export function hasBrowserRecognition(): boolean {
  return findRecognition() !== undefined;
}

function findRecognition(): RecognitionClass | undefined {
  const scope = globalThis as unknown as Record<string, RecognitionClass | undefined>;
  return scope.SpeechRecognition ?? scope.webkitSpeechRecognition;
}

const PROBLEMS: Record<string, MicrophoneProblem> = {
  "not-allowed": "denied",
  "service-not-allowed": "denied",
  "audio-capture": "missing",
};

/** One dictation. It has no recording: the browser keeps it. */
export class BrowserDictation {
  readonly state = signal<DictationState>({ kind: "asking" });
  readonly level = signal(0);
  readonly text = signal("");
  readonly recording = undefined;
  #recognition: Recognition | undefined;
  #isCanceled = false;

  /** @param language BCP 47. */
  constructor(readonly language: string) {}

  /** Starts. */
  start(): Promise<void> {
    const Recognition = findRecognition();
    if (Recognition === undefined) {
      this.state.value = { kind: "no_microphone", problem: "missing" };
      return Promise.resolve();
    }
    const recognition = this.#recognition = new Recognition();
    recognition.continuous = true;
    recognition.interimResults = true;
    recognition.lang = this.language;
    recognition.addEventListener("start", () => this.state.value = { kind: "recording", sinceMs: Date.now() });
    recognition.addEventListener("result", (event) => {
      const { results } = event as RecognitionResultEvent;
      this.text.value = [...results].map(([best]) => best?.transcript ?? "").join("").trim();
    });
    recognition.addEventListener("error", (event) => this.#onError((event as RecognitionErrorEvent).error));
    recognition.addEventListener("end", () => this.#onEnd());
    recognition.start();
    return Promise.resolve();
  }

  /** Ends. */
  finish(): Promise<void> {
    this.#recognition?.stop();
    return Promise.resolve();
  }

  /** Nothing can be repeated without a recording. */
  transcribe(): Promise<void> {
    return this.start();
  }

  /** Drops everything. */
  cancel(): void {
    this.#isCanceled = true;
    this.#recognition?.abort();
  }

  #onError(error: string): void {
    const problem = PROBLEMS[error];
    if (problem) this.state.value = { kind: "no_microphone", problem };
    else if (error !== "no-speech" && error !== "aborted") {
      this.state.value = { kind: "failed", error: new ApiError(0, { code: "browser_recognition", message: error }) };
    }
  }

  #onEnd(): void {
    const { kind } = this.state.peek();
    if (this.#isCanceled || kind === "no_microphone" || kind === "failed") return;
    const text = this.text.peek();
    this.state.value = text === "" ? { kind: "silent" } : { kind: "done", text };
  }
}
