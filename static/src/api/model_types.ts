/** Models of the hub, on disk and running, as the API spells them. */
/** What a model is stored as. */
export type ModelFormat = "gguf" | "mlx";

/** One repository that a search found. */
export interface HubModel {
  repo: string;
  downloads: number;
  likes: number;
  updated_at: string | null;
  gated: boolean;
  license: string | null;
}

/** One thing to choose in a repository. */
export interface HubFile {
  path: string;
  size_bytes: number;
  quantization?: string;
  shards?: string[];
  role: "model" | "mmproj" | "other";
}

/** What a repository offers. */
export interface HubListing {
  repo: string;
  gated: boolean;
  license: string | null;
  /** Its page on the hub. */
  url: string;
  /** It holds programs, which are never downloaded. */
  has_code: boolean;
  files: HubFile[];
}

/** A download. */
export interface ModelDownload {
  id: string;
  repo: string;
  format: ModelFormat;
  file?: string;
  state: "queued" | "running" | "verifying" | "done" | "failed" | "cancelled";
  received_bytes: number;
  total_bytes: number;
  bytes_per_second: number;
  error?: { code: string; message: string };
}

/** A model on disk. */
export interface LocalModel {
  path: string;
  repo: string | null;
  format: ModelFormat;
  role: "model" | "mmproj" | "other";
  size_bytes: number;
  quantization?: string;
  parameters?: number;
  architecture?: string;
  context_size?: number;
  layers?: number;
}

/** How the model that Parlor runs stands. */
export interface ModelRunner {
  state: "stopped" | "starting" | "running" | "failed";
  program: string | null;
  advice?: string;
  command?: string;
  path?: string;
  context_size?: number;
  gpu_layers?: number;
  memory_bytes?: number;
  restarts: number;
  error?: string;
  log: string[];
}

/** What a run is asked with. */
export interface RunRequest {
  path: string;
  context_size?: number;
  gpu_layers?: number;
  idle_minutes?: number;
  activate: boolean;
}
