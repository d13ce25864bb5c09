/** The recording that tests a transcription server. */

const RATE_HZ = 16_000;
const HEADER_BYTES = 44;

/** Creates one second of almost silence as WAV: mono, 16 bit, 16 kHz. Some servers refuse a recording of zeros only. */
export function createTestRecording(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + RATE_HZ * 2);
  const view = new DataView(bytes.buffer);
  const writeText = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  writeText(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  writeText(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, RATE_HZ * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  writeText(36, "data");
  view.setUint32(40, RATE_HZ * 2, true);
  for (let i = 0; i < RATE_HZ; i++) view.setInt16(HEADER_BYTES + i * 2, (i * 31) % 17 - 8, true);
  return bytes;
}
