/** Running jobs and replies on the server. */
import type { Job } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import type { Chats } from "../chat/chats.ts";
import { LatestRead } from "./latest_read.ts";

/** Progress events are frequent; one request answers a burst. */
const REFRESH_AFTER_MS = 400;

/** States of a job that has not ended. */
const RUNNING: readonly Job["state"][] = ["queued", "running", "verifying"];

/** The list of jobs, and the number of running jobs and replies. */
export class Activity {
  readonly jobs = signal<Job[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly runningJobs = computed(() => this.jobs.value.filter((job) => RUNNING.includes(job.state)));
  readonly endedJobs = computed(() => this.jobs.value.filter((job) => !RUNNING.includes(job.state)));
  readonly count = computed(() => this.runningJobs.value.length + this.#chats.replies.value.length);
  /** Tool calls that wait for a decision. */
  readonly waitingCalls = computed(() =>
    this.#chats.replies.value.reduce((sum, { pending_calls }) => sum + (pending_calls?.length ?? 0), 0)
  );
  readonly #api: Api;
  readonly #chats: Chats;
  readonly #reads = new LatestRead();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param chats Knows the replies. */
  constructor(api: Api, chats: Chats) {
    this.#api = api;
    this.#chats = chats;
  }

  /** Loads all jobs. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      await this.#reads.run(() => this.#api.listJobs(), (jobs) => this.jobs.value = jobs);
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Handles a job event. */
  onChanged(): void {
    this.#timer ??= setTimeout(() => this.refresh(), REFRESH_AFTER_MS);
  }

  /** Cancels a job. @throws {ApiError} */
  async cancel(id: string): Promise<void> {
    const job = await this.#api.cancelJob(id);
    this.jobs.value = this.jobs.value.map((each) => each.id === id ? job : each);
  }

  /** Stops a reply. @throws {ApiError} */
  async stopReply(messageId: string): Promise<void> {
    await this.#api.stopReply(messageId);
    await this.#chats.refreshReplies();
  }
}
