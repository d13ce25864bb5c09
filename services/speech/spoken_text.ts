/** The speech request that most servers accept (docs/protocols/tts.md#speech-request). */
import type { AudioFormat } from "./audio_format.ts";
import type { SpeechCall } from "./speech_server.ts";

/** What is to be spoken, every choice made. */
export interface SpokenText {
  text: string;
  /** Empty where the server's own default is meant. */
  model: string;
  voice: string;
  /** 1 is the voice's own; only another one is asked for, since some servers refuse fields they do not know. */
  speed: number;
  format: AudioFormat;
}

/** The request of OpenAI's shape; fields nobody chose are left to the server. */
export function plainCall(spoken: SpokenText, more: Record<string, string> = {}): SpeechCall {
  const { text, model, voice, format, speed } = spoken;
  const chosen = { ...(model && { model }), ...(voice && { voice }), ...(speed !== 1 && { speed }) };
  const body = { ...chosen, input: text, response_format: format, ...more };
  return { path: "/audio/speech", body: JSON.stringify(body), format };
}
