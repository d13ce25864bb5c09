/** Generates images as jobs, which continue when the client disconnects. */
import type { ImageAttachment } from "../attachments/attachments.ts";
import { createAttachmentUrl } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job_runner.ts";
import { decodeBase64Image, type ImageProgress } from "./backend.ts";
import type { ImageGallery } from "./image_gallery.ts";
import type { ImageGenerator, ImageRequest } from "./image_generator.ts";
import type { BackendProfiles } from "./backend_profiles.ts";

/** A request for an image, and the message to attach it to. */
export interface ImageJobRequest extends ImageRequest {
  /** Default: the active profile, also if there is none with this id any more. */
  profileId?: string;
  conversationId?: string;
  /** Default: the last message of the conversation. */
  messageId?: string;
}

/** The result of a job, as sent and stored. */
export interface ImageJobResult {
  images: { name: string; url: string; width: number; height: number; seed: number }[];
  profile_id: string;
  took_ms: number;
  /** The message the images were attached to. */
  message_id?: string;
  /** Complete sentences. */
  warnings?: string[];
}

/** The dependencies of the jobs. */
export interface ImageJobsDeps {
  jobs: JobRunner;
  profiles: BackendProfiles;
  generator: ImageGenerator;
  gallery: Pick<ImageGallery, "add">;
  attachments: { storeInline(bytes: Uint8Array): Promise<ImageAttachment>; getImage(name: string): ImageAttachment };
  messages: MessageImages;
  now(): number;
}

/** Attaches images to messages. */
export interface MessageImages {
  /** Returns the id of the message. @throws {AppError} `not_found`; `unprocessable` if the conversation has no messages */
  find(conversationId: string, messageId: string | undefined): string;
  /** Attaches images once the message is complete. @throws {AppError} `not_found` */
  attach(conversationId: string, messageId: string, names: string[], signal: AbortSignal): Promise<void>;
}

/** Progress from `follow`. */
export interface ImageJobProgress extends ImageProgress {
  /** Increases with every change. */
  number: number;
}

interface RunningJob {
  progress: ImageJobProgress | undefined;
  /** Resolves at the next change. */
  changed: PromiseWithResolvers<void>;
  followers: number;
  /** The original error. The job's record only has its code and message. */
  error?: unknown;
}

const KIND = "image";
const MAX_TITLE = 80;

/** Starts and follows the jobs. */
export class ImageJobs {
  readonly #deps: ImageJobsDeps;
  readonly #running = new Map<string, RunningJob>();

  constructor(deps: ImageJobsDeps) {
    this.#deps = deps;
    // Resumable: the user still wants the image, and a result for a process that ended can't be fetched.
    deps.jobs.register(KIND, { parallel: 4, resumable: true, run: (context) => this.#run(context) });
  }

  /** Also if it was canceled before it ran. */
  async start(request: ImageJobRequest): Promise<JobSnapshot> {
    const { attachments, jobs, messages, profiles } = this.#deps;
    const isKnown = profiles.list().some(({ id }) => id === request.profileId);
    const profileId = isKnown ? request.profileId! : profiles.getActive().id;
    const { conversationId, messageId, initImage } = request;
    const params = {
      ...request,
      messageId: conversationId === undefined ? undefined : messages.find(conversationId, messageId),
      initImage: await this.#storeInitImage(initImage),
    };
    if (params.initImage !== undefined) attachments.getImage(params.initImage);
    const job = await jobs.start(KIND, { title: request.prompt.slice(0, MAX_TITLE), params: { ...params, profileId } });
    this.#getRunning(job.id);
    void jobs.ended(job.id).then(() => this.#running.delete(job.id)); // also if it was canceled before it ran
    return job;
  }

  /**
   * Waits for the result of a job.
   *
   * @throws {AppError} the job's error; `cancelled` if it was canceled
   */
  async waitForResult(jobId: string): Promise<ImageJobResult> {
    const state = this.#getRunning(jobId);
    const job = await this.#deps.jobs.ended(jobId);
    if (job.state === "done") return job.detail as ImageJobResult;
    if (job.state === "cancelled") throw new AppError("cancelled", "The image was canceled");
    if (state.error instanceof AppError) throw state.error;
    throw new AppError(job.error?.code ?? "internal", job.error?.message ?? "The image couldn't be generated");
  }

  /**
   * Yields the progress of a job until it ends. A slow reader skips steps instead of queueing them.
   */
  async *follow(jobId: string): AsyncGenerator<ImageJobProgress> {
    const state = this.#getRunning(jobId);
    const ended = this.#deps.jobs.ended(jobId).then(() => true);
    let seen = 0;
    state.followers++;
    try {
      for (;;) {
        if (state.progress !== undefined && state.progress.number > seen) {
          seen = state.progress.number;
          yield state.progress;
        } else if (await Promise.race([ended, state.changed.promise.then(() => false)])) return;
      }
    } finally {
      state.followers--;
    }
  }

  async #run(context: JobContext): Promise<void> {
    const { generator, now } = this.#deps;
    const state = this.#getRunning(context.id);
    const { profileId, conversationId, messageId, ...request } = context.params as ImageJobRequest & {
      profileId: string;
    };
    const startedAtMs = now();
    try {
      const generated = await generator.generate(profileId, request, {
        signal: context.signal,
        onProgress: (progress) => this.#report(context, state, progress),
        wantsPreview: () => state.followers > 0,
      });
      const stored = await Promise.all(generated.images.map((bytes) => this.#deps.attachments.storeInline(bytes)));
      const attached = await this.#attach({ conversationId, messageId }, stored, context.signal);
      const { prompt, initImage, characterId } = request;
      await this.#deps.gallery.add({
        ...generated.settings,
        prompt,
        initImage,
        characterId,
        profileId,
        conversationId: attached.messageId === undefined ? undefined : conversationId,
        messageId: attached.messageId,
      }, stored.map(({ name }) => name));
      const warnings = [...generated.warnings, ...attached.warnings];
      const result: ImageJobResult = {
        images: stored.map(({ name, widthPx, heightPx }) => ({
          name,
          url: createAttachmentUrl(name),
          width: widthPx,
          height: heightPx,
          seed: generated.seed,
        })),
        profile_id: profileId,
        took_ms: Math.max(0, now() - startedAtMs),
        ...(attached.messageId !== undefined && { message_id: attached.messageId }),
        ...(warnings.length > 0 && { warnings }),
      };
      context.detail(result);
    } catch (error) {
      state.error = error;
      throw error;
    } finally {
      // `waitForResult` and `follow` have their own references.
      this.#running.delete(context.id);
    }
  }

  /** Attaches the images. A deleted message is a warning, not an error. */
  async #attach(
    { conversationId, messageId }: { conversationId?: string; messageId?: string },
    stored: ImageAttachment[],
    signal: AbortSignal,
  ): Promise<{ messageId?: string; warnings: string[] }> {
    if (conversationId === undefined || messageId === undefined) return { warnings: [] };
    try {
      await this.#deps.messages.attach(conversationId, messageId, stored.map(({ name }) => name), signal);
      return { messageId, warnings: [] };
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "not_found") throw error;
      return { warnings: ["The message was deleted, so the image isn't attached to it"] };
    }
  }

  #report(context: JobContext, state: RunningJob, progress: ImageProgress): void {
    context.progress({ done: Math.round(progress.share * 100), total: 100, unit: "percent" });
    state.progress = { ...progress, number: (state.progress?.number ?? 0) + 1 };
    state.changed.resolve();
    state.changed = Promise.withResolvers();
  }

  /** Returns the state of a job. For an ended job, it's a new state that never changes. */
  #getRunning(id: string): RunningJob {
    const known = this.#running.get(id);
    if (known !== undefined) return known;
    const created: RunningJob = { progress: undefined, changed: Promise.withResolvers(), followers: 0 };
    this.#running.set(id, created);
    return created;
  }

  async #storeInitImage(initImage: string | undefined): Promise<string | undefined> {
    if (initImage === undefined || !initImage.startsWith("data:")) return initImage;
    const bytes = await decodeBase64Image(initImage);
    if (bytes !== undefined) return (await this.#deps.attachments.storeInline(bytes)).name;
    const message = "the initial image isn't a PNG, JPEG, WebP or GIF";
    throw new AppError("unprocessable", `Can't generate the image: ${message}`, {
      issues: [{ path: "init_image", message }],
    });
  }
}
