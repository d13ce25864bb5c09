/** Reads the duration and sample rate of an audio file, in a new Worker per file. */
import { AppError } from "../errors.ts";
import type { AudioProbeRequest, AudioProbeResponse } from "./audio_probe_worker.ts";
import { AUDIO_TYPES, type AudioFormat } from "./audio_format.ts";

/** Properties of an audio file, if known. */
export interface AudioProperties {
  durationS?: number;
  sampleRateHz?: number;
}

/** A valid file of 50 MB takes far less. */
const LIMIT_MS = 15_000;

/**
 * Reads the properties of an audio file. The buffer of `bytes` is transferred to the Worker.
 *
 * @throws {AppError} `unprocessable` if the file is invalid or takes too long to read
 */
export async function probeAudio(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): Promise<AudioProperties> {
  const worker = new Worker(new URL("./audio_probe_worker.ts", import.meta.url), { type: "module" });
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const answer = await new Promise<AudioProbeResponse>((resolve) => {
      worker.onmessage = (event: MessageEvent<AudioProbeResponse>) => resolve(event.data);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve({ problem: event.message });
      };
      timer = setTimeout(() => resolve({ problem: `not read after ${LIMIT_MS / 1000} s` }), LIMIT_MS);
      const request: AudioProbeRequest = { bytes, contentType: AUDIO_TYPES[format] };
      worker.postMessage(request, [bytes.buffer]);
    });
    if ("problem" in answer) {
      throw new AppError("unprocessable", `Can't read the ${format} file: ${answer.problem.replace(/\.+$/, "")}`);
    }
    return { durationS: positive(answer.durationS), sampleRateHz: positive(answer.sampleRateHz) };
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}

/** A stream's header may have a length of 0 or infinity. */
function positive(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : undefined;
}
