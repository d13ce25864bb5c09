/** Recognizes recordings by their signatures. */
import { hasTwoMp3Frames, sniffAudio } from "../speech/audio_format.ts";

/** Supported types of recordings, and the only types served for audio. */
export type AudioType = "audio/wav" | "audio/webm" | "audio/ogg" | "audio/mp4" | "audio/mpeg" | "audio/flac";

/** Major brands of MP4 files that may be audio; AVIF and HEIC images have others. @see https://mp4ra.org/registered-types/brands */
const MP4_BRAND = /^(M4[AB] |iso[m2-9]|mp4[12]|dash|avc1)$/;

/**
 * Recognizes the type of a recording.
 *
 * @param head The file or its start: 1.5 kB, and any ID3 tags before that.
 * @returns `undefined` if it isn't WAV, WebM, Ogg, MP4, MP3 or FLAC. Files with a video track are recognized as audio and play
 *   without their picture.
 */
export function sniffRecording(head: Uint8Array): AudioType | undefined {
  switch (sniffAudio(head)) {
    case "wav":
      return "audio/wav";
    case "webm":
      return "audio/webm";
    case "ogg":
    case "opus":
      return "audio/ogg";
    case "flac":
      return "audio/flac";
    case "m4a":
      return MP4_BRAND.test(String.fromCharCode(...head.subarray(8, 12))) ? "audio/mp4" : undefined;
    case "mp3": {
      // One frame header is too little to go by. A tag before it is enough.
      const isTagged = head[0] === 0x49;
      return isTagged || hasTwoMp3Frames(head) ? "audio/mpeg" : undefined;
    }
    default:
      return undefined;
  }
}
