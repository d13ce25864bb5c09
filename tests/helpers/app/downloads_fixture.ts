/** Downloads with a real job runner, database and folder, from the fake hub. */
import { type Download, type DownloadRequest, Downloads } from "../../../services/models/downloads/downloads.ts";
import type { DownloadLimits } from "../../../services/models/downloads/file_download.ts";
import { Hub } from "../../../services/models/hub.ts";
import { LocalModels } from "../../../services/models/local/local_models.ts";
import { ModelsFolder } from "../../../services/models/local/models_folder.ts";
import type { JobRunner, JobState } from "../../../services/jobs/job_runner.ts";
import { openGuard } from "../../../services/http/guard/guarded_fetch.ts";
import { type FakeHub, type FakeRepo, openFakeHub } from "../fakes/fake_hub.ts";
import { filesBelow } from "../files/storage_folder.ts";
import { jobBench } from "../processes/storage_jobs.ts";

/** Options. */
export interface ModelBenchOptions {
  /** Text of the token file. */
  token?: string;
  limits?: Partial<DownloadLimits>;
  /** Addresses that count as public; by default those of the fake hub. */
  allow?: string[];
  /** Folder for models, created by the test. */
  modelsPath?: string;
}

/** Downloads with their dependencies. */
export interface ModelBench extends AsyncDisposable {
  readonly hub: FakeHub;
  readonly client: Hub;
  readonly modelsPath: string;
  readonly local: LocalModels;
  /** The current instance. A restart replaces it. */
  readonly downloads: Downloads;
  readonly jobs: JobRunner;
  start(request: DownloadRequest): Promise<Download>;
  /** Waits until a download is in a state. */
  until(id: string, state: JobState): Promise<Download>;
  /** Starts a download and waits until it ends in a given state. */
  run(request: DownloadRequest, end: JobState): Promise<Download>;
  /** Closes the job runner and opens another, like a restart of the server. */
  restart(): Promise<void>;
  /** Paths of all files below the models folder. */
  files(): Promise<string[]>;
}

/** Short waits between attempts, and limits that a busy machine doesn't reach. */
const QUICK: DownloadLimits = { idleMs: 5_000, retryDelayMs: 5, maxRetryDelayMs: 20, stallMs: 60_000 };

/** Opens a bench. */
export async function openModelBench(
  repos: Record<string, FakeRepo>,
  options: ModelBenchOptions = {},
): Promise<ModelBench> {
  const hub = openFakeHub(repos);
  const bench = await jobBench();
  const allow = options.allow ?? ["127.0.0.2/32", "127.0.0.3/32"];
  const guard = await openGuard({ allow, exactOrigins: [hub.url] });
  const modelsPath = options.modelsPath ?? `${bench.folder}/models`;
  const tokenFile = options.token === undefined ? null : `${bench.folder}/token`;
  if (tokenFile !== null) await Deno.writeTextFile(tokenFile, `${options.token}\n`);
  const client = new Hub({ guard, url: hub.url, tokenFile });
  const folder = new ModelsFolder(modelsPath);
  const open = () => {
    const jobs = bench.open({});
    const downloads = new Downloads(jobs, {
      hub: client,
      folder,
      log: () => {},
      limits: { ...QUICK, ...options.limits },
      policy: { allow, exactOrigins: [hub.url] },
    });
    return { jobs, downloads };
  };
  let current = open();
  const find = (id: string) => current.downloads.list().find((download) => download.id === id)!;
  const start: ModelBench["start"] = (request) => current.downloads.start(request, new AbortController().signal);
  const until: ModelBench["until"] = async (id, state) => {
    await bench.until(current.jobs, id, state);
    return find(id);
  };
  return {
    hub,
    client,
    modelsPath,
    local: new LocalModels(folder, () => {}),
    start,
    until,
    get downloads() {
      return current.downloads;
    },
    get jobs() {
      return current.jobs;
    },
    async run(request, end) {
      const { id } = await start(request);
      const ended = Promise.withResolvers<void>();
      const look = () => {
        if (["done", "failed", "cancelled"].includes(find(id).state)) ended.resolve();
      };
      const unsubscribe = bench.events.subscribe(look);
      look();
      await ended.promise;
      unsubscribe();
      const download = find(id);
      if (download.state !== end) throw new Error(`The download is ${download.state}: ${download.error?.message}`);
      return download;
    },
    async restart() {
      await current.jobs.close();
      current = open();
    },
    files: async () => (await filesBelow(modelsPath)).map((path) => path.slice(modelsPath.length + 1)),
    async [Symbol.asyncDispose]() {
      await current.jobs.close();
      await guard.close();
      await hub[Symbol.asyncDispose]();
      await bench[Symbol.asyncDispose]();
    },
  };
}
