/** Speech and voice samples as the API spells them. */

/** The owner's speech server. */
export interface SpeechConfig {
  /** Empty while there is none. */
  base_url: string;
  model: string;
  voice: string;
  format: string;
  /** Times the voice's own speed. */
  speed: number;
  has_key: boolean;
}

/** A change of it; what is left out stays. */
export interface SpeechConfigInput {
  base_url?: string | null;
  model?: string | null;
  voice?: string | null;
  format?: string | null;
  speed?: number | null;
  /** null clears the stored key. */
  api_key?: string | null;
}

/** One voice to choose. */
export interface Voice {
  id: string;
  name: string;
  language?: string;
}

/** The voices there are, and where that is known from. */
export interface VoiceChoice {
  source: "upstream" | "files" | "catalogue";
  voices: Voice[];
}

/** A sample of the library. */
export interface VoiceSample extends Voice {
  description: string;
  format: string;
  content_type: string;
  duration_s?: number;
  sample_rate_hz?: number;
  size_bytes: number;
  created_at: string;
}

/** A recording to take a sample from. */
export interface VoiceImport {
  url: string;
  name: string;
  /** Where in the recording it begins and ends; without both, its beginning. */
  start_s?: number;
  end_s?: number;
}
