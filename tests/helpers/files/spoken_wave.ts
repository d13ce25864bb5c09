/** Sound for the fake microphone of Chromium: something like speech, and pauses. */
import { joined } from "../app/joined.ts";

const RATE_HZ = 48_000;

/**
 * Creates a WAV file of syllables and silence: a buzz of 140 Hz with changing vowels, which noise suppression takes for a voice.
 *
 * @param parts Seconds of speech if positive, of silence if negative.
 */
export function makeSpokenWave(parts: readonly number[]): Uint8Array<ArrayBuffer> {
  const samples: number[] = [];
  let phase = 0;
  for (const seconds of parts) {
    const count = Math.round(Math.abs(seconds) * RATE_HZ);
    for (let i = 0; i < count; i++) {
      const t = i / RATE_HZ;
      const pitch = 140 + 25 * Math.sin(2 * Math.PI * 0.9 * t);
      phase += pitch / RATE_HZ;
      // Four syllables a second, each with its own vowel.
      const syllable = Math.sin(Math.PI * ((t * 4) % 1));
      const formant = 500 + 300 * Math.sin(Math.floor(t * 4) * 2.1);
      let voice = 0;
      for (let harmonic = 1; harmonic <= 20; harmonic++) {
        const hz = harmonic * pitch;
        const gain = 1 / (1 + ((hz - formant) / 250) ** 2) + 0.4 / (1 + ((hz - 1_800) / 400) ** 2);
        voice += gain * Math.sin(2 * Math.PI * harmonic * phase);
      }
      const noise = (Math.sin(i * 12.9898) * 43758.5453 % 1) * 0.0005;
      samples.push(seconds > 0 ? 0.12 * syllable * voice + noise : noise);
    }
  }
  const data = new DataView(new ArrayBuffer(samples.length * 2));
  for (const [i, sample] of samples.entries()) data.setInt16(i * 2, Math.max(-1, Math.min(1, sample)) * 32_767, true);
  return joined([makeHeader(data.byteLength), new Uint8Array(data.buffer)]);
}

function makeHeader(dataBytes: number, rateHz = RATE_HZ): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(44);
  const view = new DataView(header.buffer);
  const write = (at: number, text: string) => header.set(new TextEncoder().encode(text), at);
  write(0, "RIFF");
  view.setUint32(4, dataBytes + 36, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rateHz, true);
  view.setUint32(28, rateHz * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, dataBytes, true);
  return header;
}

/** Puts silence before a WAV file of 16-bit mono sound. @param file With a plain header of 44 bytes. */
export function withSilence(file: Uint8Array<ArrayBuffer>, seconds: number): Uint8Array<ArrayBuffer> {
  const rateHz = new DataView(file.buffer).getUint32(24, true);
  const data = joined([new Uint8Array(Math.round(seconds * rateHz) * 2), file.slice(44)]);
  return joined([makeHeader(data.length, rateHz), data]);
}
