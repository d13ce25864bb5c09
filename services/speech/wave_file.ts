/** Creates WAV files. */

const HEADER_BYTES = 44;

/** Puts a header before PCM. @param pcm 16 bits, mono. */
export function toWaveFile(pcm: Uint8Array, rateHz: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + pcm.length);
  const view = new DataView(bytes.buffer);
  const writeText = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  writeText(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  writeText(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // Channels
  view.setUint32(24, rateHz, true);
  view.setUint32(28, rateHz * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  writeText(36, "data");
  view.setUint32(40, pcm.length, true);
  bytes.set(pcm, HEADER_BYTES);
  return bytes;
}
