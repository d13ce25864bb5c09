/**
 * Image servers with A1111's API (docs/protocols/images.md#a1111). Progress and interrupt are global there and may concern
 * another client's image, so we use them only while ours is being generated.
 */
import { AppError } from "../../errors.ts";
import { type DrawnAnswer, drawnIn, nameOfCheckpoint, parseCheckpoints, parseProgress } from "./a1111_responses.ts";
import type { A1111Progress } from "./a1111_responses.ts";
import type { Backend, Checkpoint, Drawn, DrawOrder, DrawWatch } from "../backend.ts";
import type { BackendHttp } from "../backend_http.ts";
import { delay } from "../../async/delay.ts";
import { base64Of, pictureFrom } from "../image_data.ts";

/** One picture with its high-resolution pass is some 4 MB; a batch with a grid stays below this too. */
const MAX_ANSWER_BYTES = 96 * 1024 * 1024;
/** How long an interrupted picture may take to come back before the connection is dropped. */
const FREE_MS = 10_000;
/** How long a cancelled picture's turn is waited for. */
const FREE_LATER_MS = 60 * 60 * 1000;
/** What `/progress` is worth waiting for. */
const PROGRESS_MS = 10_000;

/** One such backend. */
export class A1111Backend implements Backend {
  readonly #http: BackendHttp;

  constructor(http: BackendHttp) {
    this.#http = http;
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.checkpoints(signal);
  }

  async checkpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    const response = await this.#http.send("/sdapi/v1/sd-models", { signal });
    if (response.status === 404) {
      await response.body?.cancel();
      throw await this.#withoutApi(signal);
    }
    if (!response.ok) throw await this.#http.refusal(response);
    const list = parseCheckpoints(await this.#http.readBytes(response, 4 * 1024 * 1024));
    if (list !== undefined) return list;
    throw new AppError("upstream_error", `What answers at "${this.#http.place}" lists no checkpoints as A1111 does`);
  }

  async draw(order: DrawOrder, watch: DrawWatch): Promise<Drawn> {
    const checkpoint = order.checkpoint === undefined ? undefined : await this.#known(order.checkpoint, watch.signal);
    const before = await this.#progress(watch.signal);
    const call = new AbortController();
    const path = order.initImage === undefined ? "/sdapi/v1/txt2img" : "/sdapi/v1/img2img";
    const answer = this.#ask(path, bodyOf(order, checkpoint), call.signal);
    const settled = answer.then(() => {}, () => {});
    const run = new A1111Run(this.#http, before, watch);
    try {
      await Promise.race([answer, run.watch(settled)]);
      watch.signal.throwIfAborted();
      return await checked(await answer, order, checkpoint, this.#http.place);
    } catch (error) {
      const giveUp = () => call.abort(new DOMException("The picture is over", "AbortError"));
      if (await run.free(settled)) giveUp();
      else void run.freeLater(settled).finally(giveUp);
      throw error;
    }
  }

  async #ask(path: string, body: object, signal: AbortSignal): Promise<DrawnAnswer> {
    const { overallMs } = this.#http.limits;
    const options = { method: "POST", body, signal, firstByteMs: overallMs, maxBytes: MAX_ANSWER_BYTES } as const;
    return drawnIn(await this.#http.json(path, options));
  }

  /** An unknown name would be dropped silently, and another checkpoint drawn with. */
  async #known(name: string, signal: AbortSignal): Promise<Checkpoint> {
    const list = await this.checkpoints(signal);
    const found = list.find((entry) => entry.name === name || entry.title === name) ??
      list.find((entry) => nameOfCheckpoint(entry.title) === nameOfCheckpoint(name));
    if (found !== undefined) return found;
    const message = `the image server has no checkpoint "${name}"`;
    throw new AppError("unprocessable", `Cannot draw the picture: ${message}`, {
      issues: [{ path: "checkpoint", message }],
    });
  }

  #progress(signal: AbortSignal): Promise<A1111Progress | undefined> {
    return readProgress(this.#http, false, signal);
  }

  async #withoutApi(signal: AbortSignal): Promise<AppError> {
    const ping = await this.#http.send("/internal/ping", { signal });
    await ping.body?.cancel();
    return new AppError(
      "upstream_error",
      ping.ok
        ? `The web UI at "${this.#http.place}" runs, but its API is switched off: start it with --api`
        : `What answers at "${this.#http.place}" does not have the API of A1111 or Forge`,
    );
  }
}

/** Looks at the one picture that is being drawn, and tells when it is ours. */
class A1111Run {
  readonly #http: BackendHttp;
  readonly #before: A1111Progress | undefined;
  readonly #watch: DrawWatch;
  #isOurs = false;

  constructor(http: BackendHttp, before: A1111Progress | undefined, watch: DrawWatch) {
    this.#http = http;
    this.#before = before;
    this.#watch = watch;
  }

  /** Tells progress until the answer is there. @throws {AppError} `upstream_timeout` when nothing moves any more */
  async watch(answered: Promise<void>): Promise<void> {
    const { limits, place } = this.#http;
    let isOver = false;
    answered.then(() => isOver = true);
    let last = "";
    let movedAtMs = performance.now();
    while (!isOver) {
      await delay(limits.pollMs, this.#watch.signal, answered);
      if (isOver) return;
      const now = await readProgress(this.#http, this.#watch.wantsPreview(), this.#watch.signal);
      if (isOver) return;
      // A server that tells no progress has its overall limit.
      const mark = now === undefined ? `${performance.now()}` : `${now.share} ${now.jobMark} ${now.step}`;
      if (mark !== last) [last, movedAtMs] = [mark, performance.now()];
      if (now !== undefined) await this.#tell(now);
      if (performance.now() - movedAtMs > limits.idleMs) {
        throw new AppError("upstream_timeout", `The image server at "${place}" has not moved for ${limits.idleMs} ms`);
      }
    }
  }

  /** Stops our picture on the server. False when it is somebody else's that is being drawn, and ours waits behind it. */
  async free(answered: Promise<void>): Promise<boolean> {
    const late = AbortSignal.timeout(FREE_MS);
    try {
      const isOver = await Promise.race([answered.then(() => true), Promise.resolve(false)]);
      if (isOver) return true;
      const now = await readProgress(this.#http, false, late);
      if (now !== undefined && !this.#judge(now)) return false;
      await this.#interrupt(late);
      await delay(FREE_MS, late, answered);
    } catch {
      // A server that cannot be told any more is as free as it can be made.
    }
    return true;
  }

  /** Stops our picture as soon as its turn comes: its place in the queue there cannot be given back. */
  async freeLater(answered: Promise<void>): Promise<void> {
    const late = AbortSignal.timeout(FREE_LATER_MS);
    let isOver = false;
    void answered.then(() => isOver = true);
    try {
      for (;;) {
        await delay(this.#http.limits.pollMs, late, answered);
        if (isOver) return;
        if (this.#judge(await readProgress(this.#http, false, late))) return await this.#interrupt(late);
      }
    } catch {
      // The same.
    }
  }

  async #interrupt(signal: AbortSignal): Promise<void> {
    const response = await this.#http.send("/sdapi/v1/interrupt", { method: "POST", signal });
    await response.body?.cancel();
  }

  async #tell(now: A1111Progress): Promise<void> {
    if (!this.#judge(now)) return;
    const preview = now.preview === undefined ? undefined : await pictureFrom(now.preview);
    this.#watch.onProgress({ share: now.share, step: now.step, steps: now.steps, preview });
  }

  /** One lock serves all: before it was idle, or by now another job has begun, and the next in the queue is ours. */
  #judge(now: A1111Progress | undefined): boolean {
    if (now === undefined || !now.isBusy) return this.#isOurs;
    this.#isOurs ||= this.#before === undefined || !this.#before.isBusy || this.#before.jobMark !== now.jobMark;
    return this.#isOurs;
  }
}

async function readProgress(
  http: BackendHttp,
  isWithPreview: boolean,
  signal: AbortSignal,
): Promise<A1111Progress | undefined> {
  try {
    const query = isWithPreview ? "" : "?skip_current_image=true";
    return parseProgress(await http.json(`/sdapi/v1/progress${query}`, { signal, firstByteMs: PROGRESS_MS }));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError) return undefined; // the picture itself tells what is wrong
    throw error;
  }
}

function bodyOf(order: DrawOrder, checkpoint: Checkpoint | undefined): object {
  const { initImage, sampler, scheduler } = order;
  return {
    prompt: order.prompt,
    negative_prompt: order.negativePrompt,
    seed: order.seed,
    steps: order.steps,
    cfg_scale: order.cfgScale,
    width: order.widthPx,
    height: order.heightPx,
    batch_size: 1,
    n_iter: 1,
    send_images: true,
    save_images: false,
    ...(sampler && { sampler_name: sampler }),
    ...(scheduler && { scheduler }),
    ...(initImage && { init_images: [base64Of(initImage)], denoising_strength: 0.75 }),
    ...(checkpoint && {
      override_settings: { sd_model_checkpoint: checkpoint.title },
      // Back and forth would be two loads of a model for every picture.
      override_settings_restore_afterwards: false,
    }),
  };
}

async function checked(
  answer: DrawnAnswer,
  order: DrawOrder,
  checkpoint: Checkpoint | undefined,
  place: string,
): Promise<Drawn> {
  const picture = answer.base64 === undefined ? undefined : await pictureFrom(answer.base64);
  if (picture === undefined) throw new AppError("upstream_error", `The image server at "${place}" gave no picture`);
  const used = answer.checkpoint;
  const isOther = checkpoint !== undefined && used !== undefined &&
    ![checkpoint.name, nameOfCheckpoint(checkpoint.title)].includes(nameOfCheckpoint(used));
  return {
    pictures: [picture],
    seed: answer.seed ?? order.seed,
    warnings: isOther ? [`The server drew with the checkpoint "${used}" instead of "${checkpoint.name}"`] : [],
  };
}
