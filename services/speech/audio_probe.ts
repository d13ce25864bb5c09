/** Duration and rate of an audio file, by a Worker that lives for one file. */
import { AppError } from "../errors.ts";
import type { ProbeAnswer, ProbeRequest } from "./audio_probe_worker.ts";
import { AUDIO_TYPES, type AudioFormat } from "./audio_format.ts";

/** What a file says of itself, where it does. */
export interface AudioFacts {
  durationS?: number;
  sampleRateHz?: number;
}

/** No honest file of 50 MB takes this long. */
const LIMIT_MS = 15_000;

/**
 * Reads the facts of an audio file. `bytes` is given away: its buffer moves to the Worker.
 *
 * @throws {AppError} `unprocessable` when it is no whole file of that format, or takes too long to read.
 */
export async function probeAudio(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): Promise<AudioFacts> {
  const worker = new Worker(new URL("./audio_probe_worker.ts", import.meta.url), { type: "module" });
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const answer = await new Promise<ProbeAnswer>((resolve) => {
      worker.onmessage = (event: MessageEvent<ProbeAnswer>) => resolve(event.data);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve({ problem: event.message });
      };
      timer = setTimeout(() => resolve({ problem: `not read after ${LIMIT_MS} ms` }), LIMIT_MS);
      const request: ProbeRequest = { bytes, contentType: AUDIO_TYPES[format] };
      worker.postMessage(request, [bytes.buffer]);
    });
    if ("problem" in answer) {
      throw new AppError("unprocessable", `Cannot read the ${format} file: ${answer.problem.replace(/\.+$/, "")}`);
    }
    return { durationS: positive(answer.durationS), sampleRateHz: positive(answer.sampleRateHz) };
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}

/** A stream's header may claim a length of nothing, or of days. */
function positive(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : undefined;
}
