/** The request that most speech servers know (tts.md, section 1.1). */
import type { AudioFormat } from "./audio_format.ts";
import type { SpeechCall } from "./speech_server.ts";

/** What is to be spoken, every choice made. */
export interface SpokenText {
  text: string;
  /** Empty where the server's own default is meant. */
  model: string;
  voice: string;
  format: AudioFormat;
}

/** The request of OpenAI's shape; fields nobody chose are left to the server. */
export function plainCall({ text, model, voice, format }: SpokenText, more: Record<string, string> = {}): SpeechCall {
  const body = { ...(model && { model }), input: text, ...(voice && { voice }), response_format: format, ...more };
  return { path: "/audio/speech", body: JSON.stringify(body), format };
}
