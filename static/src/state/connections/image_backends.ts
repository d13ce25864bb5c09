/** Image backends and workflows as the settings show them. */
import type {
  ChangeEvent,
  Checkpoint,
  DetectedBackend,
  ImageBackend,
  ImageBackendInput,
  ImageBackendTest,
  Workflow,
} from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { ImageApi } from "../../api/images.ts";
import { LatestRead } from "../app/latest_read.ts";

/** A test of a saved backend. */
export type BackendCheck = { kind: "running" } | { kind: "done"; result: ImageBackendTest } | {
  kind: "failed";
  error: ApiError;
};

/** The state of the image settings. */
export class ImageBackends {
  readonly items = signal<ImageBackend[] | undefined>(undefined);
  readonly workflows = signal<Workflow[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly checks = signal<ReadonlyMap<string, BackendCheck>>(new Map());
  readonly api: ImageApi;
  readonly #reads = new LatestRead();

  constructor(api: ImageApi) {
    this.api = api;
  }

  /** Loads both lists. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    try {
      const read = () => Promise.all([this.api.listBackends(), this.api.listWorkflows()]);
      await this.#reads.run(read, ([items, workflows]) => {
        this.items.value = items;
        this.workflows.value = workflows;
      });
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "image_connection" || event.kind === "workflow") void this.refresh();
  }

  /** Finds the saved backend of a detected one. */
  savedFor({ base_url, kind }: DetectedBackend): ImageBackend | undefined {
    return this.items.value?.find((item) => item.base_url === base_url && item.kind === kind);
  }

  /** Saves a detected backend, unless it is saved already, and activates it. @throws {ApiError} */
  async use(found: DetectedBackend): Promise<ImageBackend> {
    const { kind, base_url } = found;
    const backend = this.savedFor(found) ?? await this.api.saveBackend({ kind, base_url });
    return await this.activate(backend.id);
  }

  /** Makes a backend the active one. @throws {ApiError} */
  async activate(id: string): Promise<ImageBackend> {
    const backend = await this.api.activateBackend(id);
    await this.refresh();
    return backend;
  }

  /** @throws {ApiError} */
  async save(input: ImageBackendInput): Promise<ImageBackend> {
    const saved = await this.api.saveBackend(input);
    await this.refresh();
    return saved;
  }

  /** Removes only the stored key. @throws {ApiError} */
  async clearKey({ id }: ImageBackend): Promise<void> {
    await this.save({ id, api_key: null });
  }

  /** @throws {ApiError} */
  async remove(id: string): Promise<void> {
    await this.api.deleteBackend(id);
    await this.refresh();
  }

  /** Tests a saved backend; the result is in `checks`. */
  async check({ id, kind, base_url }: ImageBackend): Promise<void> {
    const set = (check: BackendCheck) => this.checks.value = new Map(this.checks.peek()).set(id, check);
    set({ kind: "running" });
    try {
      set({ kind: "done", result: await this.api.testBackend({ id, kind, base_url }) });
    } catch (thrown) {
      set({ kind: "failed", error: asApiError(thrown) });
    }
  }

  /** Returns the names of a backend's checkpoints; none if it can't be reached. */
  async checkpoints(id: string): Promise<Checkpoint[]> {
    return await this.api.listCheckpoints(id).catch(() => []);
  }

  /** @throws {ApiError} */
  async saveWorkflow(id: string, workflow: unknown): Promise<void> {
    await this.api.saveWorkflow(id, workflow);
    await this.refresh();
  }

  /** @throws {ApiError} */
  async removeWorkflow(id: string): Promise<void> {
    await this.api.deleteWorkflow(id);
    await this.refresh();
  }
}
