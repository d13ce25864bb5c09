/** Portraits generated in background jobs. */
import { AppError } from "../errors.ts";
import type { JobContext, JobError, JobRunner, JobSnapshot, JobState } from "../jobs/job_runner.ts";
import type { Card } from "./card/card.ts";
import type { Characters } from "./characters.ts";

/** Generates an image of a character; implemented by image generation. */
export type Painter = (request: {
  characterId: string;
  card: Card;
  signal: AbortSignal;
  /** @param share 0 to 1. */
  onProgress(share: number): void;
}) => Promise<Uint8Array>;

/** State of a character's portrait. */
export interface PortraitStatus {
  state: "none" | "pending" | "running" | "done" | "failed";
  /** 0 to 1, if known. */
  progress?: number;
  error?: JobError;
  started_at?: string;
  finished_at?: string;
}

const KIND = "portrait";
const HUNDRED = 100;

const STATES: Record<JobState, PortraitStatus["state"]> = {
  queued: "pending",
  running: "running",
  verifying: "running",
  done: "done",
  failed: "failed",
  cancelled: "failed",
};

/** Starts and reports portrait jobs. */
export class Portraits {
  readonly #jobs: JobRunner;
  readonly #characters: Characters;

  constructor(options: { jobs: JobRunner; characters: Characters; painter: Painter }) {
    const { jobs, characters, painter } = options;
    this.#jobs = jobs;
    this.#characters = characters;
    // Resumable: the portrait is still wanted, and the image of an ended process can't be fetched.
    jobs.register(KIND, {
      parallel: 1,
      resumable: true,
      run: (context) => generatePortrait(context, characters, painter),
    });
  }

  /**
   * Starts a portrait job. Returns the running job, if there is one.
   *
   * @throws {AppError} `not_found`, `conflict` for a read-only card
   */
  async start(id: string): Promise<JobSnapshot> {
    const { character } = await this.#characters.get(id);
    if (character.external) {
      throw new AppError("conflict", `Character "${id}" belongs to another program's folder and is read-only`);
    }
    return await this.#jobs.start(KIND, { title: character.name, params: { id }, key: id });
  }

  /** Returns the state of the last portrait. @throws {AppError} `not_found` */
  async status(id: string): Promise<PortraitStatus> {
    await this.#characters.get(id);
    const job = this.#jobs.list().find(({ kind, key }) => kind === KIND && key === id);
    if (job === undefined) return { state: "none" };
    const { state, progress, createdAtMs, updatedAtMs } = job;
    const error = state === "cancelled"
      ? { code: "interrupted" as const, message: "The portrait was cancelled" }
      : job.error;
    return {
      state: STATES[state],
      progress: progress?.total ? progress.done / progress.total : undefined,
      error,
      started_at: new Date(createdAtMs).toISOString(),
      finished_at: state === "done" || STATES[state] === "failed" ? new Date(updatedAtMs).toISOString() : undefined,
    };
  }
}

async function generatePortrait(context: JobContext, characters: Characters, painter: Painter): Promise<void> {
  const { id } = context.params as { id: string };
  const { character } = await characters.get(id);
  context.signal.throwIfAborted();
  const image = await painter({
    characterId: id,
    card: character.card,
    signal: context.signal,
    onProgress: (share) => context.progress({ done: Math.round(share * HUNDRED), total: HUNDRED, unit: "percent" }),
  });
  await context.verifying();
  await characters.setAvatar(id, image, { cause: "portrait" });
}
