/** A conversation by voice: listens, transcribes, sends, lets the reply be read aloud, and listens again. */
import { effect, type Signal, signal, untracked } from "@preact/signals";
import { type ApiError, asApiError } from "../api/client.ts";
import { speechApi, type TranscriptionApi, transcriptionApi } from "../api/speech.ts";
import { getContentText, splitReasoning } from "../state/chat/message_text.ts";
import type { OpenChat } from "../state/chat/open_chat.ts";
import type { Store } from "../state/store.ts";
import { cleanTranscript, keepRecording, toMeter, toWave } from "./dictation.ts";
import { keepAwake, takeMediaKeys } from "./device_session.ts";
import {
  type Microphone,
  MicrophoneError,
  type MicrophoneProblem,
  openMicrophone,
  type SoundFrame,
} from "./microphone.ts";
import { PlaybackQueue } from "./playback.ts";
import { joinFrames, VoiceActivity } from "./voice_activity.ts";

/** What is going on. `hearing`: the user speaks. */
export type TalkPhase = "starting" | "listening" | "hearing" | "transcribing" | "thinking" | "speaking" | "muted";

/** Why the conversation can't go on. The recording of a failed transcription is kept. */
export type TalkProblem =
  | { kind: "microphone"; problem: MicrophoneProblem }
  | { kind: "transcription"; error: ApiError }
  | { kind: "reply"; error: ApiError | undefined };

/** Durations of the last turn, in milliseconds. */
export interface TalkTimes {
  transcribeMs: number;
  /** From the end of speech to the first audio of the reply. */
  firstAudioMs: number;
}

/** Speech that isn't lost. */
interface PendingSpeech {
  audio: Blob;
  endedAtMs: number;
  /** It's being transcribed. */
  isBusy: boolean;
}

/** Pause that ends what the user says, in milliseconds. */
const PAUSE_MS = 700;
/** Share of the words that must be the page's own for a transcript to be its echo. */
const ECHO_SHARE = 0.8;

/** One conversation by voice. */
export class HandsFree {
  readonly phase = signal<TalkPhase>("starting");
  /** 0 to 1, for a meter. */
  readonly level = signal(0);
  /** What the user said last, while it arrives. */
  readonly heard = signal("");
  /** What the user said to interrupt the reply, or "unclear" if nothing was understood. */
  readonly note = signal<"unclear" | "interrupted" | undefined>(undefined);
  readonly problem = signal<TalkProblem | undefined>(undefined);
  readonly times = signal<TalkTimes | undefined>(undefined);
  /** The microphone listens only while a button is held. This browser remembers it. */
  readonly isPushToTalk: Signal<boolean>;
  /** Speaking interrupts the reading. This browser remembers it. */
  readonly isInterruptible: Signal<boolean>;
  /** False if replies can't be read aloud. */
  readonly hasVoice = signal(true);
  readonly #store: Store;
  readonly #chat: OpenChat;
  readonly #api: TranscriptionApi;
  readonly #activity = new VoiceActivity({ pauseMs: PAUSE_MS });
  readonly #abort = new AbortController();
  readonly #cleanUps: (() => void)[] = [];
  #microphone: Microphone | undefined;
  /** Frames while the button is held. */
  #heldFrames: SoundFrame[] | undefined;
  /** Speech whose transcription failed, or during which the microphone was lost. */
  #pendingSpeech: PendingSpeech | undefined;
  #turn: { endedAtMs: number; transcribeMs: number } | undefined;
  /** A message was sent whose reply hasn't ended, as far as was shown. */
  #isAwaiting = false;
  /** What was being read when the user began to speak. */
  #interrupted: { reading: PlaybackQueue; text: string } | undefined;

  constructor(store: Store, chat: OpenChat) {
    this.#store = store;
    this.#chat = chat;
    this.#api = transcriptionApi(store.api.client);
    this.isPushToTalk = store.device.isPushToTalk;
    this.isInterruptible = store.device.isTalkInterruptible;
  }

  /** Opens the microphone and listens. */
  async start(): Promise<void> {
    const { speaking } = this.#store;
    speaking.stop();
    speaking.isHandsFree = true;
    this.#cleanUps.push(keepAwake(), takeMediaKeys({ toggle: () => this.#onKey(), stop: () => this.interrupt() }));
    this.#cleanUps.push(effect(() => {
      const run = this.#chat.replies.run.value;
      const reading = speaking.now.value;
      const isSounding = reading instanceof PlaybackQueue && reading.phase.value === "speaking";
      untracked(() => this.#onReply(run !== undefined || reading !== undefined, isSounding));
    }));
    void this.#checkVoice();
    await this.openMicrophone();
  }

  /** Opens the microphone, also again after a problem. */
  async openMicrophone(): Promise<void> {
    this.problem.value = undefined;
    this.phase.value = "starting";
    try {
      const microphone = await openMicrophone({
        onFrame: (frame) => this.#onFrame(frame),
        onLost: () => this.#onLost(),
      });
      if (this.#abort.signal.aborted) return microphone.close();
      this.#microphone = microphone;
      this.#settle();
      if (this.#pendingSpeech) this.#retryPending(this.#pendingSpeech);
    } catch (thrown) {
      if (thrown instanceof MicrophoneError) this.#fail({ kind: "microphone", problem: thrown.problem });
      else this.#fail({ kind: "transcription", error: asApiError(thrown) });
    }
  }

  /** Ends the conversation: the reply goes on, but silently. */
  close(): void {
    this.#abort.abort();
    this.#microphone?.close();
    for (const cleanUp of this.#cleanUps.splice(0)) cleanUp();
    this.#store.speaking.playback?.takeMediaKeys();
    this.#store.speaking.isHandsFree = false;
    this.#store.speaking.stop();
  }

  /** What the button of a headset does: it holds the button of push to talk, or mutes. */
  #onKey(): void {
    if (this.problem.peek()) this.retry();
    else if (!this.isPushToTalk.peek()) this.toggleMute();
    else if (this.#heldFrames) this.release();
    else this.press();
  }

  /** Stops listening, or listens again. Not while the microphone opens, or what was said is written down. */
  toggleMute(): void {
    const phase = this.phase.peek();
    if (phase === "muted") return this.#settle();
    if (phase === "starting" || phase === "transcribing") return;
    this.#resumeReading();
    this.#activity.reset();
    this.level.value = 0;
    this.phase.value = "muted";
  }

  /**
   * Listens only while a button is held, or always. What the open microphone was just hearing is dropped; what was said
   * with the button held is taken.
   */
  setPushToTalk(isOn: boolean): void {
    this.isPushToTalk.value = isOn;
    if (!isOn) return this.release();
    const phase = this.phase.peek();
    // Muted means nothing to a microphone that only a button opens.
    if (phase === "hearing" || (phase === "muted" && !this.problem.peek())) this.#goOn();
  }

  /** Starts to listen while a button is held. It interrupts the reading. */
  press(): void {
    if (!this.#microphone || this.phase.peek() === "starting" || this.#heldFrames) return;
    this.#store.speaking.stop();
    this.#interrupted = undefined;
    this.#heldFrames = [];
    this.problem.value = undefined;
    this.note.value = undefined;
    this.phase.value = "hearing";
  }

  /** Ends what `press` started. */
  release(): void {
    const frames = this.#heldFrames;
    if (!frames) return;
    this.#heldFrames = undefined;
    if (frames.length === 0) return this.#settle();
    void this.#take(toWave(joinFrames(frames)), performance.now());
  }

  /** Stops the reading and the reply. */
  interrupt(): void {
    this.#store.speaking.stop();
    this.#interrupted = undefined;
    if (this.#chat.replies.isRunning.peek()) void this.#chat.replies.stop();
    if (this.phase.peek() === "speaking" || this.phase.peek() === "thinking") this.#settle();
  }

  /**
   * Does again what has failed: opens the microphone, transcribes the kept speech, or asks for the reply. A microphone
   * that is open is never opened a second time.
   */
  retry(): void {
    if (!this.#microphone) return void this.openMicrophone();
    const isReply = this.problem.peek()?.kind === "reply";
    const pending = this.#pendingSpeech;
    if (pending && !isReply) return this.#retryPending(pending);
    if (isReply) this.#askAgain();
    this.#isAwaiting = this.#chat.replies.isRunning.peek();
    this.problem.value = undefined;
    this.#settle();
  }

  /** A message that the server refused is in the composer again. */
  #askAgain(): void {
    const { replies, draft, lastMessage } = this.#chat;
    const last = lastMessage.peek();
    if (this.#chat.problem.peek() && draft.text.peek().trim() !== "") replies.send();
    else if (last?.role === "user") replies.askAgain();
    else if (last?.status === "failed") replies.regenerate(last.id);
  }

  /** Speech is never sent twice. */
  #retryPending({ audio, endedAtMs, isBusy }: PendingSpeech): void {
    if (!isBusy) void this.#take(audio, endedAtMs);
  }

  /** An unplugged microphone: what was said until then is kept. */
  #onLost(): void {
    const samples = this.#heldFrames ? joinFrames(this.#heldFrames) : this.#activity.takeUnfinished();
    if (samples && samples.length > 0) {
      this.#pendingSpeech = { audio: toWave(samples), endedAtMs: performance.now(), isBusy: false };
    } else this.#resumeReading();
    this.#fail({ kind: "microphone", problem: "unplugged" });
  }

  #onFrame(frame: SoundFrame): void {
    const phase = this.phase.peek();
    if (phase === "muted" || phase === "starting") return;
    const isUsed = !this.isPushToTalk.peek() || this.#heldFrames !== undefined;
    this.level.value = isUsed ? toMeter(frame.level) : 0;
    if (this.#heldFrames) return void this.#heldFrames.push(frame);
    const isClosed = phase === "transcribing" || this.isPushToTalk.peek() || this.problem.peek() !== undefined ||
      (phase === "speaking" && !this.isInterruptible.peek());
    if (isClosed) return this.#activity.reset();
    this.#activity.isPageSounding = this.#store.speaking.playback?.isSounding.peek() === true;
    const event = this.#activity.add(frame);
    if (event?.kind === "started") this.#onSpeech();
    else if (event?.kind === "dropped") this.#goOn();
    else if (event) void this.#take(toWave(event.samples), performance.now() - PAUSE_MS);
  }

  /** The user speaks: what is being read pauses until it's clear that words were said. */
  #onSpeech(): void {
    const reading = this.#store.speaking.now.peek();
    if (reading instanceof PlaybackQueue) {
      reading.pause();
      this.#interrupted = { reading, text: this.#getContentText(reading.key) };
    }
    this.note.value = undefined;
    this.phase.value = "hearing";
  }

  /** It was no speech: continues where the reading paused. */
  #goOn(): void {
    this.#resumeReading();
    this.#settle();
  }

  #resumeReading(): void {
    this.#interrupted?.reading.resume();
    this.#interrupted = undefined;
  }

  async #take(audio: Blob, endedAtMs: number): Promise<void> {
    this.problem.value = undefined;
    this.#show("transcribing");
    this.heard.value = "";
    const pending: PendingSpeech = { audio, endedAtMs, isBusy: true };
    this.#pendingSpeech = pending;
    const startedAtMs = performance.now();
    let text: string;
    try {
      const { signal } = this.#abort;
      const onText = (text: string) => this.heard.value = text;
      text = cleanTranscript((await this.#api.transcribe(audio, { prompt: this.#names(), signal, onText })).text);
    } catch (thrown) {
      pending.isBusy = false;
      if (this.#abort.signal.aborted) return;
      return this.#fail({ kind: "transcription", error: asApiError(thrown) });
    }
    // What was said meanwhile has its own.
    if (this.#pendingSpeech === pending) this.#pendingSpeech = undefined;
    const interrupted = this.#interrupted;
    if (text === "" || (interrupted && isEcho(text, interrupted.text))) {
      this.heard.value = "";
      this.note.value = "unclear";
      return this.#goOn();
    }
    this.#interrupted = undefined;
    this.heard.value = text;
    this.#turn = { endedAtMs, transcribeMs: performance.now() - startedAtMs };
    await this.#send(text, audio);
  }

  async #send(text: string, audio: Blob): Promise<void> {
    const { replies, draft, group, recordings } = this.#chat;
    if (this.#store.speaking.now.peek() || replies.isRunning.peek()) this.note.value = "interrupted";
    this.#store.speaking.stop();
    group.peek()?.endRow();
    if (replies.isRunning.peek()) {
      await replies.stop();
      await replies.replyEnded();
    }
    // What was typed or dictated before stays in the composer.
    const dictated = recordings.take();
    await keepRecording(this.#store, this.#chat, audio);
    if (this.#abort.signal.aborted) {
      recordings.take(); // of what isn't sent
      return recordings.putBack(dictated);
    }
    const typed = draft.text.peek();
    draft.type(text);
    this.#show("thinking");
    this.#isAwaiting = true;
    replies.send();
    const isSent = replies.isRunning.peek();
    if (typed !== "") draft.type(isSent ? typed : `${typed}\n\n${text}`);
    recordings.putBack(dictated);
    if (!isSent) this.#fail({ kind: "reply", error: this.#chat.problem.peek() });
  }

  #onReply(isBusy: boolean, isSounding: boolean): void {
    if (isSounding && this.#turn) {
      const { endedAtMs, transcribeMs } = this.#turn;
      this.times.value = { transcribeMs, firstAudioMs: performance.now() - endedAtMs };
      this.#turn = undefined;
    }
    const phase = this.phase.peek();
    if (this.#heldFrames) return;
    if (phase !== "thinking" && phase !== "speaking" && phase !== "listening") return;
    if (isSounding) this.phase.value = "speaking";
    else if (isBusy) {
      if (phase === "listening") this.phase.value = "thinking";
    } else if (phase !== "listening") this.#endTurn();
  }

  /** The reply has ended and was read. */
  #endTurn(): void {
    this.#turn = undefined;
    this.#isAwaiting = false;
    const error = this.#chat.problem.peek();
    const hasFailed = error !== undefined || this.#chat.lastMessage.peek()?.status === "failed";
    if (hasFailed) this.#fail({ kind: "reply", error });
    else this.#settle();
  }

  #fail(problem: TalkProblem): void {
    if (this.#abort.signal.aborted) return;
    if (problem.kind === "microphone") this.#microphone = undefined;
    this.#heldFrames = undefined;
    this.problem.value = problem;
    this.level.value = 0;
    this.phase.value = "muted";
  }

  /** Shows the phase that reply and reading are in. */
  #settle(): void {
    const reading = this.#store.speaking.now.peek();
    const isSounding = reading instanceof PlaybackQueue && reading.phase.peek() === "speaking";
    const isBusy = reading !== undefined || this.#chat.replies.isRunning.peek();
    this.#activity.reset();
    // It ended while something was heard, or the microphone was muted.
    if (!isBusy && this.#isAwaiting) return this.#endTurn();
    if (this.problem.peek()?.kind !== "microphone") this.problem.value = undefined;
    this.#show(isSounding ? "speaking" : isBusy ? "thinking" : "listening");
  }

  /** Shows a phase, unless the button is held, or the microphone is lost, which nothing but opening it again ends. */
  #show(phase: TalkPhase): void {
    const isLost = this.problem.peek()?.kind === "microphone";
    this.phase.value = this.#heldFrames ? "hearing" : isLost ? "muted" : phase;
  }

  /** Names that the recognizer should spell right. */
  #names(): string {
    const { people } = this.#store;
    const ids = this.#chat.options.peek().participants?.map(({ character_id }) => character_id) ?? [];
    const names = [people.persona(this.#chat.personaId.peek())?.name, ...ids.map((id) => people.character(id)?.name)];
    return names.filter((name) => name !== undefined).join(", ");
  }

  #getContentText(messageId: string): string {
    const run = this.#chat.replies.run.peek();
    if (run?.messageId === messageId) return splitReasoning(run.text.peek()).text;
    const message = this.#chat.pages.find(messageId);
    return message ? splitReasoning(getContentText(message.content)).text : "";
  }

  async #checkVoice(): Promise<void> {
    try {
      this.hasVoice.value = (await speechApi(this.#store.api.client).getSpeechConfig()).base_url !== "";
    } catch {
      // Reading aloud shows the problem itself.
    }
  }
}

/** Reports whether the words of a transcript are those that the page was saying. */
export function isEcho(heard: string, spoken: string): boolean {
  const words = splitWords(heard);
  const spokenWords = new Set(splitWords(spoken));
  const own = words.filter((word) => spokenWords.has(word)).length;
  return words.length > 0 && own / words.length >= ECHO_SHARE;
}

function splitWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
