/** Which audio format some bytes are, told by their signature: what servers and file names say of it is often wrong. */

/** The formats Parlor speaks, keeps and plays. */
export const AUDIO_FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "m4a", "webm"] as const;

/** One of the formats. */
export type AudioFormat = (typeof AUDIO_FORMATS)[number];

/** The content type under which each format is served. Headerless PCM is s16le mono; its rate stands beside it. */
export const AUDIO_TYPES: Readonly<Record<AudioFormat, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg; codecs=opus",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
  ogg: "audio/ogg",
  m4a: "audio/mp4",
  webm: "audio/webm",
};

/** Bytes from the beginning that telling a format takes. */
export const SIGNATURE_BYTES = 64;

/**
 * Tells the format of a file or stream by its first bytes.
 *
 * @param head The first `SIGNATURE_BYTES` bytes, fewer at the end of a short file.
 * @returns `undefined` for everything else: playlists, pages, JSON, headerless PCM.
 */
export function sniffAudio(head: Uint8Array): Exclude<AudioFormat, "pcm"> | undefined {
  const ascii = (from: number, to: number) => String.fromCharCode(...head.subarray(from, to));
  if (ascii(0, 4) === "RIFF" && ascii(8, 12) === "WAVE") return "wav";
  if (ascii(0, 4) === "fLaC") return "flac";
  if (ascii(0, 4) === "OggS") return ascii(28, 36) === "OpusHead" ? "opus" : "ogg";
  if (ascii(0, 3) === "ID3") return "mp3";
  if (ascii(4, 8) === "ftyp") return "m4a";
  if (head[0] === 0x1a && head[1] === 0x45 && head[2] === 0xdf && head[3] === 0xa3) return "webm";
  if (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0) {
    // The layer bits of an MPEG audio frame; 00 is the mark of AAC in ADTS.
    return ((head[1] ?? 0) & 0x06) === 0 ? "aac" : "mp3";
  }
  return undefined;
}
