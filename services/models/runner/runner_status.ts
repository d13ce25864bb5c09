/** What is said of a model run on this machine: what to run, how it stands, and where it can be reached. */

/** Where the runner stands. */
export type RunnerState = "stopped" | "starting" | "running" | "failed";

/** What to run, and how. */
export interface RunRequest {
  /** Of the model, as listed. */
  path: string;
  /** Tokens; by default what the model was made for, at most 8,192. */
  contextSize?: number;
  gpuLayers?: number;
  /** Minutes without a chat after which it is stopped; 0 for never. */
  idleMinutes?: number;
}

/** What else is to happen with a run. */
export interface RunOptions {
  /** Makes its connection the active one as soon as it is ready. */
  activate?: boolean;
}

/** The settings of a run, all of them settled. */
export interface RunSettings extends RunRequest {
  contextSize: number;
  idleMinutes: number;
}

/** How the runner stands. */
export interface RunnerStatus {
  state: RunnerState;
  /** `null` when the program was not found. */
  program: string | null;
  /** How to install the program if it's missing. */
  advice?: string;
  /** What runs, ran last or failed to. */
  settings?: RunSettings;
  /** Of the server, while it runs. */
  memoryBytes?: number;
  startedAtMs?: number;
  /** How often it was restarted after a crash. */
  restarts: number;
  /** Why it failed, or was stopped automatically. */
  error?: string;
  /** The last lines it said, oldest first. */
  log: readonly string[];
}

/** The connection under which the model can be chosen. */
export interface OfferedConnection {
  name: string;
  baseUrl: string;
  apiKey: string;
  model: string;
  contextSize: number;
  /** Set when it is to become the active one. */
  activate: boolean;
}
