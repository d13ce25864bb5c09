/** Repairs WAV data of speech servers that do not know its length yet. */

const HEADER_BYTES = 44;
const HEADER = { riffSize: 4, format: 16, rate: 24, byteRate: 28, dataName: 36, dataSize: 40 };

/** Writes the real lengths into a WAV file of the plain layout. Leaves any other file unchanged. */
export function setWaveLengths(file: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (file.length < HEADER_BYTES || readAscii(file, HEADER.dataName) !== "data") return file;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  view.setUint32(HEADER.riffSize, file.length - 8, true);
  view.setUint32(HEADER.dataSize, file.length - HEADER_BYTES, true);
  return file;
}

/** Adds a header to headerless samples (16 bit, mono). */
export function toWaveFile(samples: Uint8Array<ArrayBuffer>, sampleRateHz: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(HEADER_BYTES + samples.length);
  const view = new DataView(file.buffer);
  const write = (at: number, word: string) => file.set(new TextEncoder().encode(word), at);
  write(0, "RIFF");
  write(8, "WAVEfmt ");
  view.setUint32(HEADER.format, 16, true);
  view.setUint16(HEADER.format + 4, 1, true);
  view.setUint16(HEADER.format + 6, 1, true);
  view.setUint32(HEADER.rate, sampleRateHz, true);
  view.setUint32(HEADER.byteRate, sampleRateHz * 2, true);
  view.setUint16(HEADER.byteRate + 4, 2, true);
  view.setUint16(HEADER.byteRate + 6, 16, true);
  write(HEADER.dataName, "data");
  file.set(samples, HEADER_BYTES);
  return setWaveLengths(file);
}

function readAscii(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}
