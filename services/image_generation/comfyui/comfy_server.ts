/** Requests to a ComfyUI server (docs/protocols/images.md#comfyui). Paths have no `/api`, which older servers lack. */
import { AppError } from "../../errors.ts";
import type { BackendHttp } from "../backend_http.ts";
import { type ComfyHistory, type ComfyPicture, namesIn, parseHistory, placeIn } from "./comfy_responses.ts";
import { refusedWorkflow, warningsOf } from "./comfy_errors.ts";
import type { Workflow } from "./workflow_format.ts";

/** Where a run stands in the queue. */
export type QueuePlace = "running" | "pending" | "absent";

/** A picture of the largest size that anything here makes is below this. */
const MAX_PICTURE_BYTES = 64 * 1024 * 1024;

/** One server. */
export class ComfyServer {
  constructor(readonly http: BackendHttp) {}

  /** @throws {AppError} `upstream_error` where it is no ComfyUI */
  async check(signal: AbortSignal): Promise<void> {
    const stats = await this.http.json("/system_stats", { signal }).catch((error) => {
      if (!(error instanceof AppError) || error.code !== "upstream_error") throw error;
      return this.http.json("/prompt", { signal });
    });
    const { system, exec_info } = (stats ?? {}) as Record<string, unknown>;
    if (typeof system === "object" || typeof exec_info === "object") return;
    throw new AppError("upstream_error", `What answers at "${this.http.place}" is no ComfyUI`);
  }

  /** Lists the checkpoints that are installed. */
  async checkpoints(signal: AbortSignal): Promise<string[]> {
    return namesIn(await this.http.json("/object_info/CheckpointLoaderSimple", { signal }), "ckpt_name") ?? [];
  }

  /**
   * Queues a workflow. Not to be broken off: a run whose id nobody knows could not be cancelled.
   *
   * @throws {AppError} `unprocessable` with an issue for each input that the server refuses
   */
  async queue(workflow: Workflow, clientId: string): Promise<{ id: string; warnings: string[] }> {
    const body = { prompt: workflow, client_id: clientId, prompt_id: crypto.randomUUID() };
    const response = await this.http.send("/prompt", { method: "POST", body });
    const text = await this.http.refusalText(response);
    if (!response.ok) {
      throw refusedWorkflow(response.status, text, workflow) ??
        this.http.refused(response.status, text, response.headers);
    }
    const { prompt_id: id, node_errors: errors } = parsed(text) ?? {};
    if (typeof id !== "string") {
      throw new AppError("upstream_error", `What answers at "${this.http.place}" took the workflow, but gave it no id`);
    }
    return { id, warnings: warningsOf(errors, workflow) };
  }

  /** Gives what came of a run; `undefined` while it is not over, and for a run nobody knows. */
  async history(id: string, signal: AbortSignal): Promise<ComfyHistory | undefined> {
    return parseHistory(await this.http.json(`/history/${encodeURIComponent(id)}`, { signal }), id);
  }

  async placeOf(id: string, signal: AbortSignal): Promise<QueuePlace> {
    return placeIn(await this.http.json("/queue", { signal }), id);
  }

  /** Fetches a picture. @throws {AppError} `upstream_error` when it is gone or too large */
  async view({ filename, subfolder, type }: ComfyPicture, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const query = new URLSearchParams({ filename, subfolder, type });
    const response = await this.http.send(`/view?${query}`, { signal });
    if (!response.ok) throw await this.http.refusal(response);
    return await this.http.readBytes(response, MAX_PICTURE_BYTES);
  }

  /** Uploads a picture for LoadImage. @returns The name to load it by, which the server may have changed. */
  async upload(bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<string> {
    const body = new FormData();
    body.append("image", new Blob([bytes]), `parlor-${crypto.randomUUID()}.png`);
    const answer = await this.http.json("/upload/image", { method: "POST", body, signal });
    const { name, subfolder } = (answer ?? {}) as Record<string, unknown>;
    if (typeof name === "string") return typeof subfolder === "string" && subfolder ? `${subfolder}/${name}` : name;
    throw new AppError(
      "upstream_error",
      `The image server at "${this.http.place}" took a picture, but gave it no name`,
    );
  }

  /**
   * Takes a run out of the queue, or ends it. Older servers end whatever runs, so they are told only while it is ours.
   */
  async free(id: string, signal: AbortSignal): Promise<void> {
    await this.#post("/queue", { delete: [id] }, signal);
    if (await this.placeOf(id, signal) === "running") await this.#post("/interrupt", { prompt_id: id }, signal);
  }

  async #post(path: string, body: object, signal: AbortSignal): Promise<void> {
    const response = await this.http.send(path, { method: "POST", body, signal });
    await response.body?.cancel();
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
