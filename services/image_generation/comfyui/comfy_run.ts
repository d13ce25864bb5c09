/** One run on a ComfyUI server, from the queue to its end: frames tell how far it is, the history what came of it. */
import { AppError } from "../../errors.ts";
import type { DrawStep, DrawWatch } from "../backend.ts";
import type { ComfyHistory } from "./comfy_responses.ts";
import { failedRun } from "./comfy_errors.ts";
import type { ComfyServer } from "./comfy_server.ts";
import type { ComfyListener } from "./comfy_socket.ts";
import { delay } from "../../async/delay.ts";
import type { Workflow } from "./workflow_format.ts";

/** Longest pause between two looks at a run that takes long. */
const MAX_POLL_MS = 5_000;
/** Looks that may fail one after another. */
const MAX_FAILED_LOOKS = 5;
/** For telling the server to let go. */
const FREE_MS = 10_000;
const ENDS = new Set(["execution_success", "execution_error", "execution_interrupted"]);

/** Follows one run. Made before it is queued: frames come to the socket that was open by then. */
export class ComfyRun implements ComfyListener {
  readonly #server: ComfyServer;
  readonly #watch: DrawWatch;
  #id: string | undefined;
  #step: DrawStep = { share: 0 };
  #news = Promise.withResolvers<void>();

  constructor(server: ComfyServer, watch: DrawWatch) {
    this.#server = server;
    this.#watch = watch;
  }

  onMessage(type: string, data: Record<string, unknown>): void {
    const { prompt_id: id, node, value, max } = data;
    // A socket that connects again hears of its own run without the id.
    if (this.#id === undefined || (id !== undefined && id !== this.#id)) return;
    if (ENDS.has(type) || (type === "executing" && node === null)) this.#news.resolve();
    if (type !== "progress" || typeof value !== "number" || typeof max !== "number" || max <= 0) return;
    const share = Math.max(this.#step.share, Math.min(value / max, 1)); // a second sampler begins anew
    this.#step = { share, step: value, steps: max };
    this.#watch.onProgress(this.#step);
  }

  onPreview(preview: Uint8Array<ArrayBuffer>): void {
    if (this.#id !== undefined && this.#watch.wantsPreview()) this.#watch.onProgress({ ...this.#step, preview });
  }

  /**
   * Queues the workflow and waits for its end.
   *
   * @throws {AppError} `unprocessable`, `upstream_error`, `upstream_timeout`
   */
  async run(workflow: Workflow, clientId: string): Promise<{ history: ComfyHistory; warnings: string[] }> {
    const { signal } = this.#watch;
    signal.throwIfAborted();
    const { id, warnings } = await this.#server.queue(workflow, clientId);
    this.#id = id;
    try {
      const history = await this.#untilOver(id, signal);
      if (!history.isSuccess) throw failedRun(history.failure, workflow);
      return { history, warnings };
    } catch (error) {
      await this.#server.free(id, AbortSignal.timeout(FREE_MS)).catch(() => {
        // A server that cannot be told any more is as free as it can be made.
      });
      throw error;
    }
  }

  async #untilOver(id: string, signal: AbortSignal): Promise<ComfyHistory> {
    const { pollMs, overallMs } = this.#server.http.limits;
    const late = performance.now() + overallMs;
    let waitMs = pollMs;
    let absences = 0;
    let failures = 0;
    while (performance.now() < late) {
      await delay(waitMs, signal, this.#news.promise);
      this.#news = Promise.withResolvers();
      waitMs = Math.min(waitMs * 1.5, MAX_POLL_MS);
      try {
        const history = await this.#server.history(id, signal);
        if (history !== undefined) return history;
        // Over between the two looks is no loss: then the next one finds its history.
        absences = await this.#server.placeOf(id, signal) === "absent" ? absences + 1 : 0;
        if (absences > 0) waitMs = pollMs;
        failures = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (++failures >= MAX_FAILED_LOOKS) throw error;
      }
      if (absences >= 3) throw lost(this.#server.http.place);
    }
    throw new AppError("upstream_timeout", `The image server at "${this.#server.http.place}" took too long`);
  }
}

function lost(place: string): AppError {
  return new AppError(
    "upstream_error",
    `The image server at "${place}" does not know the picture any more: it was started anew, or somebody removed it`,
  );
}
