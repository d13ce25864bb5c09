/** A recording from the microphone. */
import { signal } from "@preact/signals";

/** `refused`: the browser or the user denied it; `impossible`: no secure origin or no microphone. */
export type RecorderState =
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
