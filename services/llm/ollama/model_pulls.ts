/** Downloads of models by Ollama servers, as background jobs. */
import { getServerRoot } from "../../http/base_url.ts";
import { AppError } from "../../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import type { Connections } from "../connections/connections.ts";
import type { UpstreamTarget } from "../provider.ts";
import type { UpstreamClient } from "../upstream_client.ts";
import { addTag } from "./ollama_models.ts";

/** Dependencies of `ModelPulls`. */
export interface ModelPullsDeps {
  jobs: JobRunner;
  connections: Pick<Connections, "find" | "getTarget">;
  upstream: Pick<UpstreamClient, "pullModel" | "identify">;
}

/** What a job is to do. */
interface PullParams {
  connectionId: string;
  model: string;
}

const KIND = "model_pull";
/** The server downloads one model after the other anyway, as fast as its line allows. */
const PARALLEL = 2;

/** All downloads by Ollama servers. */
export class ModelPulls {
  readonly #deps: ModelPullsDeps;
  #isClosing = false;

  /** Takes up what an earlier process left: the server kept the parts. */
  constructor(deps: ModelPullsDeps) {
    this.#deps = deps;
    deps.jobs.register(KIND, { parallel: PARALLEL, resumable: true, run: (context) => this.#run(context) });
  }

  /**
   * Starts a download, or returns the one that is under way for the same model of the same server.
   *
   * @throws {AppError} `not_found`; `invalid_request` if the connection isn't of the kind ollama.
   */
  async start(connectionId: string, model: string): Promise<JobSnapshot> {
    const target = this.#getTarget(connectionId);
    const params: PullParams = { connectionId, model };
    return await this.#deps.jobs.start(KIND, {
      title: model,
      params,
      key: `${getServerRoot(target.baseUrl)}\n${addTag(model)}`,
      progress: { done: 0, total: null, unit: "bytes" },
      detail: { connection_id: connectionId, model },
    });
  }

  /** Lets running downloads go on at the next start, although the connections to servers close now. */
  close(): void {
    this.#isClosing = true;
  }

  #getTarget(connectionId: string): UpstreamTarget {
    const { connections } = this.#deps;
    const connection = connections.find(connectionId);
    if (connection === undefined) throw new AppError("not_found", `There is no connection "${connectionId}"`);
    if (connection.kind !== "ollama") {
      throw new AppError("invalid_request", `"${connection.name}" can't download models: it isn't of the kind ollama`);
    }
    return connections.getTarget(connectionId);
  }

  async #run({ params, signal, progress }: JobContext): Promise<void> {
    const { connectionId, model } = params as PullParams;
    const target = this.#getTarget(connectionId);
    const { upstream } = this.#deps;
    try {
      await upstream.pullModel(target, model, (at) => progress({ ...at, unit: "bytes" }), signal);
    } catch (error) {
      if (this.#isClosing) await waitForAbort(signal);
      throw error;
    }
    // The model shows in lists, with what it can do. It is there even if the server doesn't say so now.
    const identity = await upstream.identify(target, signal).catch(() => undefined);
    if (identity !== undefined) target.connection?.memory?.reportModels(identity.models);
  }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
