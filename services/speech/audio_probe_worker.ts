/** Worker that parses audio files, which are untrusted, outside the main thread. */
import { parseBuffer } from "music-metadata";
import { reportDefects } from "../process/worker.ts";

/** A file to parse. */
export interface AudioProbeRequest {
  bytes: Uint8Array;
  contentType: string;
}

/** Its properties, or the parser's error. */
export type AudioProbeResponse = { durationS: number | undefined; sampleRateHz: number | undefined } | {
  problem: string;
};

declare const self: DedicatedWorkerGlobalScope;
interface DedicatedWorkerGlobalScope {
  onmessage: ((event: MessageEvent<AudioProbeRequest>) => void) | null;
  postMessage(response: AudioProbeResponse): void;
}

reportDefects();
self.onmessage = async ({ data: { bytes, contentType } }) => {
  try {
    const { format } = await parseBuffer(bytes, { mimeType: contentType }, { duration: true, skipCovers: true });
    self.postMessage({ durationS: format.duration, sampleRateHz: format.sampleRate });
  } catch (error) {
    self.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
};
