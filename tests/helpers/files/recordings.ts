/** Recordings as tests make them: signatures of each format and some bytes after them. */
import { joined } from "../app/joined.ts";

const REST_BYTES = 3_000;

/** The start of a file of each format. */
const HEADS: Record<string, readonly (string | readonly number[])[]> = {
  wav: ["RIFF", [0, 0, 1, 0], "WAVEfmt "],
  webm: [[0x1a, 0x45, 0xdf, 0xa3]],
  ogg: ["OggS", new Array(24).fill(0), "OpusHead"],
  mp4: [[0, 0, 0, 32], "ftypiso5"],
  m4a: [[0, 0, 0, 32], "ftypM4A "],
  flac: ["fLaC"],
};

/** The bytes of text and numbers, in order. */
export function bytesOf(...parts: readonly (string | readonly number[])[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  return joined(parts.map((part) => typeof part === "string" ? encoder.encode(part) : new Uint8Array(part)));
}

/** A recording of a format that no player could play. @param seed Another one is another recording. */
export function recording(format: "wav" | "webm" | "ogg" | "mp4" | "m4a" | "mp3" | "flac" = "wav", seed = 0) {
  const rest = new Uint8Array(REST_BYTES).map((_, index) => (index * 7 + seed) & 127);
  if (format !== "mp3") return joined([bytesOf(...HEADS[format]!), rest]);
  // Two frames of MPEG 1 layer III: 128 kbit/s at 44.1 kHz is 417 bytes.
  const frame = joined([bytesOf([0xff, 0xfb, 0x90, 0x00]), rest.subarray(0, 413)]);
  return joined([frame, frame, frame]);
}
