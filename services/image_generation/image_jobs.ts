/** Pictures drawn in the background: each is a job that outlives whoever asked for it, and can be followed. */
import type { Attachment } from "../attachments/attachments.ts";
import { attachmentUrl } from "../attachments/attachment_names.ts";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job_runner.ts";
import type { DrawStep } from "./backend.ts";
import type { Drawing, DrawRequest } from "./image_generator.ts";
import type { ImageProfiles } from "./backend_profiles.ts";
import { pictureFrom } from "./image_data.ts";

/** A picture and where it belongs. */
export interface GenerationRequest extends DrawRequest {
  conversationId?: string;
  /** The message it belongs to; the last one of the conversation where left out. */
  messageId?: string;
}

/** What came of it. */
export interface Generation {
  images: { name: string; url: string; width: number; height: number; seed: number }[];
  profile_id: string;
  took_ms: number;
  /** The message the pictures were attached to. */
  message_id?: string;
  /** What did not go as asked, in sentences. */
  warnings?: string[];
}

/** What the jobs stand on. */
export interface GenerationParts {
  jobs: JobRunner;
  profiles: ImageProfiles;
  drawing: Drawing;
  attachments: { keep(bytes: Uint8Array): Promise<Attachment>; get(name: string): Attachment };
  /** The messages that pictures are attached to. */
  messages: MessagePictures;
  now(): number;
}

/** How pictures come to messages. */
export interface MessagePictures {
  /** Gives the message meant. @throws {AppError} `not_found`, `unprocessable` when the conversation has none */
  find(conversationId: string, messageId: string | undefined): string;
  /** Attaches pictures, once nobody writes the message any more. @throws {AppError} `not_found` */
  attach(conversationId: string, messageId: string, names: string[], signal: AbortSignal): Promise<void>;
}

/** How far a picture is, for those who follow it. */
export interface GenerationProgress extends DrawStep {
  /** Moves with every change. */
  number: number;
}

interface Live {
  progress: GenerationProgress | undefined;
  /** Resolves with the next change. */
  changed: PromiseWithResolvers<void>;
  followers: number;
  /** What `run` threw; the record of the job keeps only its words. */
  error?: unknown;
}

const KIND = "image";
const HUNDRED = 100;
const MAX_TITLE = 80;

/** Starts, follows and ends the jobs. */
export class Generations {
  readonly #parts: GenerationParts;
  readonly #live = new Map<string, Live>();

  constructor(parts: GenerationParts) {
    this.#parts = parts;
    // Resumable: somebody still wants the picture, and what the backend drew for an ended process nobody can fetch.
    parts.jobs.register(KIND, { parallel: 4, resumable: true, run: (context) => this.#run(context) });
  }

  /**
   * Starts a picture with the active profile.
   *
   * @param initImage Base64 or a data URL, where it is no attachment yet.
   * @throws {AppError} `not_available` when no profile is active; `not_found` for an unknown message or attachment;
   *   `unprocessable` when `initImage` is no picture
   */
  async start(request: GenerationRequest): Promise<JobSnapshot> {
    const { attachments, jobs, messages, profiles } = this.#parts;
    const profileId = profiles.active().id;
    const { conversationId, messageId, initImage } = request;
    const meant = conversationId === undefined ? undefined : messages.find(conversationId, messageId);
    const params = { ...request, messageId: meant, initImage: await this.#stored(initImage) };
    if (params.initImage !== undefined) attachments.get(params.initImage);
    const job = await jobs.start(KIND, { title: request.prompt.slice(0, MAX_TITLE), params: { profileId, ...params } });
    this.#liveOf(job.id);
    void jobs.ended(job.id).then(() => this.#live.delete(job.id)); // also one that was cancelled before it ran
    return job;
  }

  /**
   * Waits for the end of a picture.
   *
   * @throws {AppError} what it failed on; `cancelled` when its owner cancelled it
   */
  async result(jobId: string): Promise<Generation> {
    const live = this.#liveOf(jobId);
    const job = await this.#parts.jobs.ended(jobId);
    if (job.state === "done") return job.detail as Generation;
    if (job.state === "cancelled") throw new AppError("cancelled", "The image was cancelled");
    if (live.error instanceof AppError) throw live.error;
    throw new AppError(job.error?.code ?? "internal", job.error?.message ?? "The picture failed");
  }

  /**
   * Follows a picture that was started here; each change replaces the one before, so that a slow reader costs nothing.
   * It ends when the picture does, or when the reader leaves.
   */
  async *follow(jobId: string): AsyncGenerator<GenerationProgress> {
    const live = this.#liveOf(jobId);
    const over = this.#parts.jobs.ended(jobId).then(() => true);
    let seen = 0;
    live.followers++;
    try {
      for (;;) {
        if (live.progress !== undefined && live.progress.number > seen) {
          seen = live.progress.number;
          yield live.progress;
        } else if (await Promise.race([over, live.changed.promise.then(() => false)])) return;
      }
    } finally {
      live.followers--;
    }
  }

  async #run(context: JobContext): Promise<void> {
    const { drawing, now } = this.#parts;
    const live = this.#liveOf(context.id);
    const { profileId, conversationId, messageId, ...request } = context.params as GenerationRequest & {
      profileId: string;
    };
    const startedAtMs = now();
    try {
      const drawn = await drawing.draw(profileId, request, {
        signal: context.signal,
        onProgress: (step) => this.#tell(context, live, step),
        wantsPreview: () => live.followers > 0,
      });
      const kept = await Promise.all(drawn.pictures.map((bytes) => this.#parts.attachments.keep(bytes)));
      const attached = await this.#attach({ conversationId, messageId }, kept, context.signal);
      const warnings = [...drawn.warnings, ...attached.warnings];
      const generation: Generation = {
        images: kept.map(({ name, widthPx, heightPx }) => ({
          ...{ name, url: attachmentUrl(name), width: widthPx, height: heightPx, seed: drawn.seed },
        })),
        profile_id: profileId,
        took_ms: Math.max(0, now() - startedAtMs),
        ...(attached.messageId !== undefined && { message_id: attached.messageId }),
        ...(warnings.length > 0 && { warnings }),
      };
      context.detail(generation);
    } catch (error) {
      live.error = error;
      throw error;
    } finally {
      // Those who wait hold it themselves.
      this.#live.delete(context.id);
    }
  }

  /** A message that is gone costs nobody the picture. */
  async #attach(
    { conversationId, messageId }: { conversationId?: string; messageId?: string },
    kept: Attachment[],
    signal: AbortSignal,
  ): Promise<{ messageId?: string; warnings: string[] }> {
    if (conversationId === undefined || messageId === undefined) return { warnings: [] };
    try {
      await this.#parts.messages.attach(conversationId, messageId, kept.map(({ name }) => name), signal);
      return { messageId, warnings: [] };
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "not_found") throw error;
      return { warnings: ["The message it belongs to is gone"] };
    }
  }

  #tell(context: JobContext, live: Live, step: DrawStep): void {
    context.progress({ done: Math.round(step.share * HUNDRED), total: HUNDRED, unit: "percent" });
    live.progress = { ...step, number: (live.progress?.number ?? 0) + 1 };
    live.changed.resolve();
    live.changed = Promise.withResolvers();
  }

  /** Of a job that has ended it is a fresh one, which nobody changes. */
  #liveOf(id: string): Live {
    const known = this.#live.get(id);
    if (known !== undefined) return known;
    const live: Live = { progress: undefined, changed: Promise.withResolvers(), followers: 0 };
    this.#live.set(id, live);
    return live;
  }

  async #stored(initImage: string | undefined): Promise<string | undefined> {
    if (initImage === undefined || !initImage.startsWith("data:")) return initImage;
    const bytes = await pictureFrom(initImage);
    if (bytes !== undefined) return (await this.#parts.attachments.keep(bytes)).name;
    const message = "the picture to begin from is no PNG, JPEG, WebP or GIF";
    throw new AppError("unprocessable", `Cannot draw the picture: ${message}`, {
      issues: [{ path: "init_image", message }],
    });
  }
}
