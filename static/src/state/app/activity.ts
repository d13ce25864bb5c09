/** Everything that runs on the server: jobs and replies, as they come and go. */
import type { Job } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import type { Chats } from "../chat/chats.ts";

/** Progress comes often; one request answers all of a burst. */
const REFRESH_AFTER_MS = 400;

/** States of a job that is not over. */
const RUNNING: readonly Job["state"][] = ["queued", "running", "verifying"];

/** The jobs there are, and with the replies how many things run. */
export class Activity {
  readonly jobs = signal<Job[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly runningJobs = computed(() => this.jobs.value.filter((job) => RUNNING.includes(job.state)));
  readonly endedJobs = computed(() => this.jobs.value.filter((job) => !RUNNING.includes(job.state)));
  readonly count = computed(() => this.runningJobs.value.length + this.#chats.replies.value.length);
  readonly #api: Api;
  readonly #chats: Chats;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param chats Knows the replies. */
  constructor(api: Api, chats: Chats) {
    this.#api = api;
    this.#chats = chats;
  }

  /** Reads all jobs; what is shown stays when that fails. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      this.jobs.value = await this.#api.listJobs();
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Takes word that a job changed. */
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
