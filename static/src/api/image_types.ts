/** What the API says of image backends, their pictures and workflows. */

/** The kinds of backends. */
export const BACKEND_KINDS = ["comfyui", "a1111"] as const;

/** One of them. */
export type BackendKind = (typeof BACKEND_KINDS)[number];

/** How pictures are drawn where a request says nothing. */
export interface DrawSettings {
  negative_prompt?: string | null;
  width?: number | null;
  height?: number | null;
  steps?: number | null;
  cfg_scale?: number | null;
  sampler?: string | null;
  scheduler?: string | null;
}

/** A saved backend. */
export interface ImageBackend {
  id: string;
  name: string;
  kind: BackendKind;
  base_url: string;
  checkpoint?: string;
  workflow_id?: string;
  defaults: DrawSettings;
  has_key: boolean;
  active: boolean;
  unreadable?: boolean;
}

/** A backend to save or to test. Of a saved one, what is left out stays and null clears; a new one has kind and address. */
export interface ImageBackendInput {
  id?: string;
  name?: string | null;
  kind?: BackendKind;
  base_url?: string;
  checkpoint?: string | null;
  workflow_id?: string | null;
  defaults?: DrawSettings;
  api_key?: string | null;
}

/** What a test found. */
export interface ImageVerdict {
  reachable: boolean;
  error?: string;
}

/** A backend that runs. */
export interface FoundImageBackend {
  kind: BackendKind;
  base_url: string;
  /** Why it cannot be used as it is. */
  hint?: "api_off" | "login";
}

/** A checkpoint of a backend. */
export interface Checkpoint {
  name: string;
  title: string;
}

/** A workflow in the list. */
export interface WorkflowListed {
  id: string;
  name: string;
  updated_at?: string;
  placeholders: string[];
  /** Why it cannot be used. */
  problem?: string;
  /** The one that ships, which no file has taken the place of. */
  builtin?: boolean;
}

/** A picture to draw. */
export interface DrawRequest extends DrawSettings {
  prompt: string;
  conversation_id?: string;
  message_id?: string;
}

/** What came of it. */
export interface DrawnImages {
  images: { name: string; url: string; width: number; height: number; seed: number }[];
  message_id?: string;
  warnings?: string[];
}

/** How far a picture is. */
export interface DrawProgress {
  /** 0 to 1. */
  progress: number;
  step?: number;
  steps?: number;
  /** A data URL. */
  preview?: string;
}
