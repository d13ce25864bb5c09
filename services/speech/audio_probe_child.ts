/** Parses audio files in the sandbox. */
import { parseBuffer } from "music-metadata";
import { serveSandbox } from "../platform/sandbox/child.ts";

/** A job; its bytes are the file. */
export interface AudioProbeRequest {
  contentType: string;
}

/** Its properties. */
export interface AudioProbeResponse {
  durationS?: number;
  sampleRateHz?: number;
}

async function probe(bytes: Uint8Array, { contentType }: AudioProbeRequest): Promise<AudioProbeResponse> {
  const { format } = await parseBuffer(bytes, { mimeType: contentType }, { duration: true, skipCovers: true });
  return { durationS: format.duration, sampleRateHz: format.sampleRate };
}

/** The parsers are loaded with the first file of their format, and in the sandbox they must be loaded before. */
async function loadParsers(): Promise<void> {
  const types = ["audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav", "audio/mp4", "audio/webm"];
  for (const contentType of types) await probe(new Uint8Array(64), { contentType }).catch(() => {});
}

await serveSandbox("audio_probe_child", {
  load: loadParsers,
  run: async (value, [bytes]) => ({ value: await probe(bytes!, value as AudioProbeRequest) }),
});
