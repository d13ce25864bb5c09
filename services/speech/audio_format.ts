/**
 * Detects audio formats by their signatures, because content types and file names are often wrong. Reads duration and sample rate
 * in the sandbox.
 */
import { AppError } from "../errors.ts";
import type { AudioProbeRequest, AudioProbeResponse } from "./audio_probe_child.ts";
import { type Sandbox, SandboxFault, type SandboxKind } from "../platform/sandbox/sandbox.ts";

/** The supported formats. */
export const AUDIO_FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "m4a", "webm"] as const;

/** A format. */
export type AudioFormat = (typeof AUDIO_FORMATS)[number];

/** The content type of each format. PCM without a header is s16le mono; its rate is added. */
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

/** Bytes of audio that detection needs after any ID3v2 tags. */
export const SIGNATURE_BYTES = 64;

/** The formats `sniffAudio` detects. */
export type SniffedFormat = Exclude<AudioFormat, "pcm">;

/**
 * Returns how many bytes `sniffAudio` needs. ID3v2 tags, which may contain images, come before the audio, so the number may
 * grow with `head`: read until `head` is long enough.
 */
export function bytesToSniff(head: Uint8Array): number {
  return (findEndOfTags(head) ?? 0) + SIGNATURE_BYTES;
}

/**
 * Detects the format of a file or stream by its first bytes.
 *
 * @param head At least `bytesToSniff` bytes, unless the file is shorter.
 * @returns `undefined` for anything else: playlists, web pages, JSON, PCM without a header, an ID3v2 tag without audio
 */
export function sniffAudio(head: Uint8Array): SniffedFormat | undefined {
  return sniffContainer(head) ?? sniffFrame(head);
}

/** Detects formats whose signature PCM can't have by chance. MPEG frames without a container are not among them. */
export function sniffContainer(head: Uint8Array): SniffedFormat | undefined {
  const readAscii = (from: number, to: number) => String.fromCharCode(...head.subarray(from, to));
  if (readAscii(0, 4) === "RIFF" && readAscii(8, 12) === "WAVE") return "wav";
  if (readAscii(0, 4) === "fLaC") return "flac";
  if (readAscii(0, 4) === "OggS") return readAscii(28, 36) === "OpusHead" ? "opus" : "ogg";
  if (readAscii(0, 3) === "ID3") {
    const end = findEndOfTags(head);
    return end === undefined ? undefined : sniffFrame(head.subarray(end));
  }
  if (readAscii(4, 8) === "ftyp") return "m4a";
  if (head[0] === 0x1a && head[1] === 0x45 && head[2] === 0xdf && head[3] === 0xa3) return "webm";
  return undefined;
}

/** Bytes that `hasTwoMp3Frames` needs: the longest layer III frame and the header of the next one. */
export const TWO_FRAMES_BYTES = 1441 + 4;

/** Reports whether the bytes start with two MP3 frames, which PCM can't have by chance. */
export function hasTwoMp3Frames(head: Uint8Array): boolean {
  const length = getMp3FrameBytes(head);
  return length !== undefined && getMp3FrameBytes(head.subarray(length)) !== undefined;
}

/**
 * Returns where ID3v2 tags end, which may be beyond `head`; 0 without a tag, `undefined` for a broken one.
 *
 * @see https://id3.org/id3v2.4.0-structure, sections 3.1 and 3.4
 */
function findEndOfTags(head: Uint8Array): number | undefined {
  let at = 0;
  while (at + 10 <= head.length && head[at] === 0x49 && head[at + 1] === 0x44 && head[at + 2] === 0x33) {
    const size = head.subarray(at + 6, at + 10);
    if (size.some((byte) => byte >= 0x80)) return undefined;
    const footer = (head[at + 5]! & 0x10) === 0 ? 0 : 10;
    at += 10 + size.reduce((sum, byte) => sum * 128 + byte, 0) + footer;
  }
  return at;
}

/** Detects a frame of MPEG audio, or of AAC in ADTS, by its header. */
function sniffFrame(head: Uint8Array): "mp3" | "aac" | undefined {
  const [sync = 0, flags = 0, rates = 0] = head;
  if (sync !== 0xff || (flags & 0xe0) !== 0xe0) return undefined;
  const layer = flags >> 1 & 3;
  if (layer === 0) return (flags & 0xf0) === 0xf0 ? "aac" : undefined;
  // Layer I isn't MP3. UTF-16 text starts with the same bits: FF FE.
  const isMpeg = layer !== 3 && (flags >> 3 & 3) !== 1 && rates >> 4 !== 15 && (rates >> 2 & 3) !== 3;
  return isMpeg ? "mp3" : undefined;
}

/** kbit/s of layer III by index, for MPEG 1 and for MPEG 2 and 2.5. @see ISO/IEC 11172-3, section 2.4.2.3; 13818-3 */
const MPEG_1_RATES = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const MPEG_2_RATES = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const SAMPLE_RATES = [44_100, 48_000, 32_000];

/** Returns the length of the layer III frame that starts here, or `undefined` if there is none. */
function getMp3FrameBytes(head: Uint8Array): number | undefined {
  const [, flags = 0, rates = 0] = head;
  if (sniffFrame(head) !== "mp3" || (flags >> 1 & 3) !== 1) return undefined;
  const version = flags >> 3 & 3; // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
  const bitRate = (version === 3 ? MPEG_1_RATES : MPEG_2_RATES)[rates >> 4]! * 1000;
  if (bitRate === 0) return undefined;
  const sampleRate = SAMPLE_RATES[rates >> 2 & 3]! / (version === 3 ? 1 : version === 2 ? 2 : 4);
  return Math.floor((version === 3 ? 144 : 72) * bitRate / sampleRate) + (rates >> 1 & 1);
}

/** Properties of an audio file, if known. */
export interface AudioProperties {
  durationS?: number;
  sampleRateHz?: number;
}

const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("./audio_probe_child.ts", import.meta.url),
  maxChildren: 1,
  // A valid file of 50 MB takes far less.
  maxCpuMs: 15_000,
  maxResidentBytes: 512 * MIB,
  maxMessageBytes: MIB,
};

/**
 * Reads the properties of an audio file.
 *
 * @throws {AppError} `unprocessable` if the file is invalid or takes too long to read
 */
export async function probeAudio(
  sandbox: Sandbox,
  bytes: Uint8Array<ArrayBuffer>,
  format: AudioFormat,
): Promise<AudioProperties> {
  try {
    const request: AudioProbeRequest = { contentType: AUDIO_TYPES[format] };
    const { value } = await sandbox.run(KIND, { value: request, bytes: [bytes] });
    const { durationS, sampleRateHz } = (value ?? {}) as AudioProbeResponse;
    return { durationS: requirePositive(durationS), sampleRateHz: requirePositive(sampleRateHz) };
  } catch (error) {
    if (!(error instanceof SandboxFault)) throw error;
    throw new AppError("unprocessable", `Can't read the ${format} file: ${error.message.replace(/\.+$/, "")}`);
  }
}

/** A stream's header may have a length of 0 or infinity. */
function requirePositive(value: number | undefined): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}
