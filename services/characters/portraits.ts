/** Portraits drawn in the background by whatever draws pictures. */
import { AppError } from "../errors.ts";
import type { JobContext, JobError, JobRunner, JobSnapshot, JobState } from "../jobs/job_runner.ts";
import type { Card } from "./card/card.ts";
import type { Characters } from "./characters.ts";

/** Draws a picture of a character; given by whoever knows the image backends. */
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
  /** 0 to 1, once anything is known. */
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

/** Starts and shows portrait jobs. */
export class Portraits {
  readonly #jobs: JobRunner;
  readonly #characters: Characters;

  constructor(options: { jobs: JobRunner; characters: Characters; painter: Painter }) {
    const { jobs, characters, painter } = options;
    this.#jobs = jobs;
    this.#characters = characters;
    // Resumable: it is still wanted, and what a backend drew for an ended process nobody can fetch.
    jobs.register(KIND, { parallel: 1, resumable: true, run: (context) => draw(context, characters, painter) });
  }

  /**
   * Starts a portrait of a character; one that is under way is the same one.
   *
   * @throws {AppError} `not_found`, `conflict` for a card that is read-only
   */
  async start(id: string): Promise<JobSnapshot> {
    const { character } = await this.#characters.get(id);
    if (character.external) {
      throw new AppError("conflict", `Character "${id}" belongs to another program's folder and is read-only`);
    }
    return await this.#jobs.start(KIND, { title: character.name, params: { id }, key: id });
  }

  /** Gives where the last portrait of a character stands. @throws {AppError} `not_found` */
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

async function draw(context: JobContext, characters: Characters, painter: Painter): Promise<void> {
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
