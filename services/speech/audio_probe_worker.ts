/** Reads what an audio file says of itself, away from the serving thread: files come from strangers. */
import { parseBuffer } from "music-metadata";

/** What is asked. */
export interface ProbeRequest {
  bytes: Uint8Array;
  contentType: string;
}

/** What was found, or the parser's complaint. */
export type ProbeAnswer = { durationS: number | undefined; sampleRateHz: number | undefined } | { problem: string };

declare const self: DedicatedWorkerGlobalScope;
interface DedicatedWorkerGlobalScope {
  onmessage: ((event: MessageEvent<ProbeRequest>) => void) | null;
  postMessage(answer: ProbeAnswer): void;
}

self.onmessage = async ({ data: { bytes, contentType } }) => {
  try {
    const { format } = await parseBuffer(bytes, { mimeType: contentType }, { duration: true, skipCovers: true });
    self.postMessage({ durationS: format.duration, sampleRateHz: format.sampleRate });
  } catch (error) {
    self.postMessage({ problem: error instanceof Error ? error.message : String(error) });
  }
};
