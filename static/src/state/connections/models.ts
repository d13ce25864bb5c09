/** Models on the hub, downloads, models on disk and the running one. */
import type {
  ChangeEvent,
  HubModel,
  HubModelFiles,
  LocalModel,
  ModelDownload,
  ModelFormat,
  ModelRunner,
  RunModel,
} from "../../api/types.ts";
import { signal } from "@preact/signals";
import { ApiError, asApiError } from "../../api/client.ts";
import type { ModelApi } from "../../api/models.ts";

/** A search on the hub. */
export type ModelSearch =
  | { kind: "idle" }
  | { kind: "searching" }
  | { kind: "done"; items: HubModel[]; nextCursor: string | null; isLoadingMore: boolean }
  | { kind: "failed"; error: ApiError };

/** The files of one repository. */
export type RepoFiles = { kind: "loading" } | { kind: "done"; listing: HubModelFiles } | {
  kind: "failed";
  error: ApiError;
};

const ENDED = new Set<ModelDownload["state"]>(["done", "cancelled"]);

/** The state of the models page. */
export class Models {
  readonly downloads = signal<ModelDownload[]>([]);
  readonly local = signal<LocalModel[] | undefined>(undefined);
  readonly runner = signal<ModelRunner | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly search = signal<ModelSearch>({ kind: "idle" });
  readonly files = signal<ReadonlyMap<string, RepoFiles>>(new Map());
  readonly format = signal<ModelFormat>("gguf");
  readonly query = signal("");
  #api: ModelApi;
  #lastSearch = 0;
  #isReading = false;
  #isStale = false;

  constructor(api: ModelApi) {
    this.#api = api;
  }

  /** Loads downloads, disk and runner. Changes during the load cause one more. */
  async refresh(): Promise<void> {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        const [downloads, local, runner] = await Promise.all([
          this.#api.listDownloads(),
          this.#api.listLocalModels(),
          this.#api.getRunner(),
        ]);
        this.downloads.value = keepNewest(downloads);
        this.local.value = local;
        this.runner.value = runner;
        this.error.value = undefined;
      }
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    } finally {
      this.#isReading = false;
    }
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || ["job", "runner", "local_model"].includes(event.kind)) void this.refresh();
  }

  /** Searches the hub for `query` and `format`. */
  async find(): Promise<void> {
    const number = ++this.#lastSearch;
    this.search.value = { kind: "searching" };
    this.files.value = new Map();
    try {
      const page = await this.#api.searchModels(this.query.value.trim(), this.format.value);
      if (number !== this.#lastSearch) return;
      this.search.value = { kind: "done", items: page.items, nextCursor: page.next_cursor, isLoadingMore: false };
    } catch (thrown) {
      if (number === this.#lastSearch) this.search.value = { kind: "failed", error: asApiError(thrown) };
    }
  }

  /** Appends the next page of the search. @throws {ApiError} */
  async findMore(): Promise<void> {
    const found = this.search.value;
    const number = this.#lastSearch;
    if (found.kind !== "done" || found.nextCursor === null || found.isLoadingMore) return;
    this.search.value = { ...found, isLoadingMore: true };
    try {
      const page = await this.#api.searchModels(this.query.value.trim(), this.format.value, found.nextCursor);
      if (number !== this.#lastSearch) return;
      const items = [...found.items, ...page.items];
      this.search.value = { kind: "done", items, nextCursor: page.next_cursor, isLoadingMore: false };
    } catch (thrown) {
      if (number === this.#lastSearch) this.search.value = found;
      throw thrown;
    }
  }

  /** Loads the files of a repository once. */
  async open(repo: string): Promise<void> {
    if (this.files.value.get(repo)?.kind === "done") return;
    const set = (files: RepoFiles) => this.files.value = new Map(this.files.value).set(repo, files);
    const loading: RepoFiles = { kind: "loading" };
    set(loading);
    // Closed or replaced by a search in another format: the response is no longer needed.
    const isAsked = () => this.files.value.get(repo) === loading;
    try {
      const listing = await this.#api.listModelFiles(repo, this.format.value);
      if (isAsked()) set({ kind: "done", listing });
    } catch (thrown) {
      if (isAsked()) set({ kind: "failed", error: asApiError(thrown) });
    }
  }

  /** Hides the files of a repository. */
  close(repo: string): void {
    const rest = new Map(this.files.value);
    rest.delete(repo);
    this.files.value = rest;
  }

  /** Returns the local state of a hub model. @param path Its path on disk; for MLX the repository. */
  getState(path: string): "absent" | "coming" | "here" {
    if (this.local.value?.some((model) => model.path === path)) return "here";
    const isComing = this.downloads.value.some(({ repo, file, state }) =>
      state !== "failed" && (file === undefined ? repo : `${repo}/${file}`) === path
    );
    return isComing ? "coming" : "absent";
  }

  /** Starts or resumes a download. @throws {ApiError} */
  async download(repo: string, format: ModelFormat, file?: string): Promise<void> {
    await this.#api.startDownload({ repo, format, file });
    await this.refresh();
  }

  /** Cancels a download, which may have ended by itself. @throws {ApiError} */
  async cancel(id: string): Promise<void> {
    await this.#api.cancelDownload(id).catch((thrown) => {
      if (!(thrown instanceof ApiError && thrown.status === 409)) throw thrown;
    });
    await this.refresh();
  }

  /** Deletes a model, or what a failed download left. @throws {ApiError} */
  async remove(path: string): Promise<void> {
    await this.#api.deleteLocalModel(path);
    await this.refresh();
  }

  /** @throws {ApiError} */
  async run(request: RunModel): Promise<void> {
    this.runner.value = await this.#api.runModel(request);
    // The model may have become ready before this response arrived.
    await this.refresh();
  }

  /** @throws {ApiError} */
  async stop(): Promise<void> {
    this.runner.value = await this.#api.stopModel();
  }

  /** Returns the command that runs a model. @throws {ApiError} */
  async commandFor(path: string): Promise<string> {
    return (await this.#api.getRunner(path)).command ?? "";
  }
}

/** The last of several downloads counts; completed ones are shown among the models. */
function keepNewest(downloads: ModelDownload[]): ModelDownload[] {
  const seen = new Set<string>();
  return downloads.filter(({ repo, format, file, state }) => {
    const key = `${repo}\n${format}\n${file ?? ""}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return !ENDED.has(state);
  });
}
