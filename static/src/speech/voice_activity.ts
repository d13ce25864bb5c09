/**
 * Detects where speech starts and ends, by its energy above the noise of the room.
 *
 * While the page speaks, what the microphone hears of it counts as noise, so that only a louder voice interrupts.
 */
import { FRAME_MS, type SoundFrame } from "./microphone.ts";

/** What a frame changed. */
export type VoiceEvent =
  | { kind: "started" }
  /** Speech and the pause after it; `samples` is mono at 16 kHz. */
  | { kind: "ended"; samples: Int16Array<ArrayBuffer> }
  /** A noise that was too short to be speech. */
  | { kind: "dropped" };

/** Thresholds, in decibels relative to full scale or to the noise. */
const QUIETEST_DB = -55;
const START_ABOVE_DB = 12;
const STOP_ABOVE_DB = 7;
/** How much louder than the page's own sound a voice has to be. */
const INTERRUPT_ABOVE_DB = 10;

/** How long sound must last to be speech, in milliseconds. */
const START_MS = 120;
const INTERRUPT_MS = 300;
/** Shorter speech than this is a cough or a key. */
const MIN_SPEECH_MS = 260;
/** Sound before the start that belongs to it: quiet consonants. */
const LEAD_MS = 300;
/** The noise follows quickly down and slowly up, in decibels per frame. */
const NOISE_DOWN_DB = 0.6;
const NOISE_UP_DB = 0.04;
/** At the start of its own sound, the page learns quickly how loud it is, and hears nobody. */
const LEARN_MS = 500;
const LEARN_UP_DB = 1.5;
/** Afterwards slowly, so that a voice doesn't count as echo before it's recognized. */
const ECHO_UP_DB = 0.15;

/** Options of the detector. */
export interface VoiceActivityOptions {
  /** Pause that ends an utterance, in milliseconds. */
  pauseMs?: number;
  /** Longer utterances are cut, in milliseconds. */
  maxMs?: number;
}

/** Detects speech in a stream of frames. */
export class VoiceActivity {
  /** Whether the page itself makes sound. */
  isPageSounding = false;
  readonly #pauseMs: number;
  readonly #maxMs: number;
  #noiseDb = -50;
  #echoDb = QUIETEST_DB;
  #frames: SoundFrame[] = [];
  #loudMs = 0;
  #speechMs = 0;
  #quietMs = 0;
  #isSpeech = false;
  /** How long the page has been making sound. */
  #pageMs = 0;

  constructor({ pauseMs = 800, maxMs = 60_000 }: VoiceActivityOptions = {}) {
    this.#pauseMs = pauseMs;
    this.#maxMs = maxMs;
  }

  /** True between the start and the end of speech. */
  get isSpeech(): boolean {
    return this.#isSpeech;
  }

  /** Takes the next frame. */
  add(frame: SoundFrame): VoiceEvent | undefined {
    const db = toDecibels(frame.level);
    this.#frames.push(frame);
    if (this.#isSpeech) return this.#continue(db);
    this.#follow(db);
    this.#trimLead();
    const isLearning = this.isPageSounding && this.#pageMs < LEARN_MS;
    this.#loudMs = db > this.#startDb() && !isLearning ? this.#loudMs + FRAME_MS : Math.max(0, this.#loudMs - FRAME_MS);
    if (this.#loudMs < (this.isPageSounding ? INTERRUPT_MS : START_MS)) return undefined;
    this.#isSpeech = true;
    this.#speechMs = this.#loudMs;
    this.#quietMs = 0;
    return { kind: "started" };
  }

  /** Returns speech that hasn't ended, and forgets it; undefined if nobody speaks. */
  takeUnfinished(): Int16Array<ArrayBuffer> | undefined {
    const samples = this.#isSpeech ? joinFrames(this.#frames) : undefined;
    this.reset();
    return samples;
  }

  /** Forgets what was heard so far. The noise stays known. */
  reset(): void {
    this.#frames = [];
    this.#loudMs = 0;
    this.#speechMs = 0;
    this.#quietMs = 0;
    this.#isSpeech = false;
  }

  #continue(db: number): VoiceEvent | undefined {
    const isVoice = db > Math.max(QUIETEST_DB, this.#noiseDb + STOP_ABOVE_DB);
    if (isVoice) this.#speechMs += FRAME_MS;
    this.#quietMs = isVoice ? 0 : this.#quietMs + FRAME_MS;
    const isTooLong = this.#frames.length * FRAME_MS >= this.#maxMs;
    if (this.#quietMs < this.#pauseMs && !isTooLong) return undefined;
    const isSpeech = this.#speechMs >= MIN_SPEECH_MS;
    const samples = joinFrames(this.#frames);
    // A steady noise that began suddenly, such as a fan, is the room's noise from here on.
    if (isTooLong) this.#noiseDb = db;
    this.reset();
    return isSpeech ? { kind: "ended", samples } : { kind: "dropped" };
  }

  #startDb(): number {
    const overNoise = Math.max(QUIETEST_DB, this.#noiseDb) + START_ABOVE_DB;
    return this.isPageSounding ? Math.max(overNoise, this.#echoDb + INTERRUPT_ABOVE_DB) : overNoise;
  }

  #follow(db: number): void {
    this.#noiseDb += Math.max(-NOISE_DOWN_DB, Math.min(NOISE_UP_DB, db - this.#noiseDb));
    if (this.isPageSounding) {
      this.#pageMs += FRAME_MS;
      const up = this.#pageMs < LEARN_MS ? LEARN_UP_DB : ECHO_UP_DB;
      this.#echoDb += Math.max(-NOISE_UP_DB, Math.min(up, db - this.#echoDb));
    } else {
      this.#pageMs = 0;
      this.#echoDb = Math.max(QUIETEST_DB, this.#echoDb - NOISE_UP_DB);
    }
  }

  #trimLead(): void {
    const most = (LEAD_MS + INTERRUPT_MS) / FRAME_MS;
    if (this.#frames.length > most) this.#frames.splice(0, this.#frames.length - most);
  }
}

/** Joins the samples of frames. */
export function joinFrames(frames: readonly SoundFrame[]): Int16Array<ArrayBuffer> {
  const joined = new Int16Array(frames.reduce((sum, { samples }) => sum + samples.length, 0));
  let at = 0;
  for (const { samples } of frames) {
    joined.set(samples, at);
    at += samples.length;
  }
  return joined;
}

function toDecibels(level: number): number {
  return 20 * Math.log10(Math.max(level, 1e-6));
}
