/** Downloads of models by Ollama servers, as background jobs. */
import { getServerRoot, toBearerHeader } from "../../http/base_url.ts";
import { AppError } from "../../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../../jobs/job_runner.ts";
import type { Connections } from "../connections/connections.ts";
import type { UpstreamTarget } from "../provider.ts";
import type { UpstreamClient } from "../upstream_client.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import { isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";
import { type ModelCall, runCall, sendRequest } from "../model_call.ts";
import { LineParser } from "../streaming/event_stream_parser.ts";
import { parseResponse } from "../streaming/response_body.ts";
import { addTag } from "./ollama_models.ts";

/** How far a download has come, in bytes. The server learns of one file after the other. */
export interface PullProgress {
  done: number;
  /** `null` until the first file is known. */
  total: number | null;
}

/** Ollama says nothing while it computes the checksum of a file, which can have a hundred gigabytes. */
const LEAST_IDLE_MS = 15 * 60 * 1000;

/**
 * Has the server download a model. Files that it has stay, also parts of them, so that a later call goes on.
 *
 * @param onProgress Called for each change.
 * @throws {UpstreamError} of kind `not_found` if there is no such model; otherwise as `Provider.listModels`
 * @throws The reason of `signal`.
 */
export function pullModel(
  http: HttpClient,
  target: UpstreamTarget,
  model: string,
  onProgress: (progress: PullProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const timeouts = { ...target.timeouts, idleMs: Math.max(target.timeouts.idleMs, LEAST_IDLE_MS) };
  return runCall({ ...target, timeouts }, signal, async (call) => {
    const response = await sendRequest(http, call, {
      url: `${getServerRoot(target.baseUrl)}/api/pull`,
      headers: { ...toBearerHeader(target.apiKey), accept: "application/x-ndjson, application/json" },
      body: { model, stream: true },
    });
    if (!response.ok) throw explainError(call, await call.readError(response), model);
    const files = new Map<string, { done: number; total: number }>();
    let isDone = false;
    const parser = new LineParser((line) => {
      const value = parseResponse(call, line);
      if (!isJsonObject(value)) {
        throw call.createError("bad_answer", "returned JSON that isn't the state of a download");
      }
      if (value.error) throw explainError(call, call.createReportedError(value), model);
      if (value.status === "success") isDone = true;
      const { digest, total, completed } = value;
      if (!isNonEmptyString(digest) || typeof total !== "number") return;
      files.set(digest, { total, done: typeof completed === "number" ? Math.min(completed, total) : 0 });
      onProgress(addUp([...files.values()]));
    });
    await readBody(call, response, parser);
    if (!isDone) throw call.createError("interrupted", `ended the download of "${model}" before it was complete`);
  });
}

async function readBody(call: ModelCall, response: Response, parser: LineParser): Promise<void> {
  const body = response.body?.getReader();
  while (body !== undefined) {
    call.timer.startReading();
    const { done, value } = await body.read();
    if (done) break;
    call.timer.receivedBytes();
    try {
      parser.push(value);
    } catch (error) {
      if (error instanceof RangeError) throw call.createError("bad_answer", `returned ${error.message}`);
      throw error;
    }
  }
  parser.end();
}

function addUp(files: { done: number; total: number }[]): PullProgress {
  const sum = (name: "done" | "total") => files.reduce((all, file) => all + file[name], 0);
  return { done: sum("done"), total: sum("total") };
}

/** Says what is wrong if the library doesn't have the model. */
function explainError(call: ModelCall, error: UpstreamError, model: string): UpstreamError {
  if (!/file does not exist|not found|invalid model name/i.test(error.message)) return error;
  const message = `Ollama at "${call.target.baseUrl}" can't download "${model}": its library has no such model`;
  return new UpstreamError("not_found", message, { status: error.status, cause: error });
}

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
