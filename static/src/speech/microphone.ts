/** The microphone: frames of sound with their level, and the reasons why there is none. */
import { answerInTime } from "../state/app/browser_parts.ts";

/** 20 ms of sound. */
export interface SoundFrame {
  /** Mono, 16 kHz. */
  samples: Int16Array<ArrayBuffer>;
  /** Root mean square, 0 to 1. */
  level: number;
}

/** Duration of a frame, in milliseconds. */
export const FRAME_MS = 20;
/** Sample rate of the frames. */
export const FRAME_RATE_HZ = 16_000;

/**
 * Why there is no sound: permission was denied, no microphone was found, the page has no secure origin, another program
 * uses the microphone, or it was unplugged.
 */
export type MicrophoneProblem = "denied" | "missing" | "insecure" | "busy" | "unplugged" | "no_sound";

/** The microphone can't be used. */
export class MicrophoneError extends Error {
  constructor(readonly problem: MicrophoneProblem) {
    super(`Can't use the microphone: ${problem}`);
  }
}

/** An open microphone. */
export interface Microphone {
  /** For a recorder. */
  readonly stream: MediaStream;
  /** Releases it. */
  close(): void;
}

/** Receives the sound. */
export interface MicrophoneListener {
  onFrame(frame: SoundFrame): void;
  /** Called once if the microphone is unplugged or taken away. */
  onLost(): void;
}

/** Echo cancellation removes what the page itself plays. */
const CONSTRAINTS = {
  audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 },
} satisfies MediaStreamConstraints;

/** How long the sound of the page may take to start, in milliseconds. Bluetooth headphones and busy computers are slow. */
const START_MS = 10_000;

/** Opens the microphone. Browsers ask for permission the first time. @throws {MicrophoneError} */
export async function openMicrophone(listener: MicrophoneListener): Promise<Microphone> {
  const { navigator } = globalThis;
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  if (devices === undefined) throw new MicrophoneError(globalThis.isSecureContext ? "missing" : "insecure");
  let stream: MediaStream;
  try {
    stream = await devices.getUserMedia(CONSTRAINTS);
  } catch (thrown) {
    throw new MicrophoneError(findProblem(thrown));
  }
  let context: AudioContext | undefined;
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    for (const track of stream.getTracks()) track.stop();
    void context?.close();
  };
  try {
    context = new AudioContext();
    // Loaded before the time counts, because a slow network says nothing about the sound of the page.
    await fetch(getWorkletUrl()).then((response) => response.arrayBuffer()).catch(() => {});
    await answerInTime(startSound(context), START_MS);
  } catch {
    close();
    throw new MicrophoneError("no_sound");
  }
  const frames = new AudioWorkletNode(context, "microphone-frames", { numberOfOutputs: 0, channelCount: 1 });
  frames.port.onmessage = ({ data }: MessageEvent<SoundFrame>) => {
    if (!isClosed) listener.onFrame(data);
  };
  context.createMediaStreamSource(stream).connect(frames);
  for (const track of stream.getTracks()) {
    track.addEventListener("ended", () => {
      if (isClosed) return;
      close();
      listener.onLost();
    });
  }
  return { stream, close };
}

/** Browsers start it suspended if the page was not clicked. Without a sound output, some never start it. */
async function startSound(context: AudioContext): Promise<void> {
  await context.audioWorklet.addModule(getWorkletUrl());
  await context.resume();
}

function findProblem(thrown: unknown): MicrophoneProblem {
  const name = thrown instanceof DOMException ? thrown.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return "denied";
  return name === "NotReadableError" || name === "AbortError" ? "busy" : "missing";
}

/** The build writes the path into the page: its name has a hash. */
function getWorkletUrl(): string {
  const { document } = globalThis.window;
  return `/${document.querySelector<HTMLMetaElement>('meta[name="microphone-worklet"]')?.content ?? ""}`;
}
