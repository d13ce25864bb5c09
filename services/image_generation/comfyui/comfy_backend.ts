/** Backends that are ComfyUI: an order fills the places of a workflow, and its run makes the pictures. */
import { AppError } from "../../errors.ts";
import { assertOwnerAddress } from "../../http/endpoint_address.ts";
import type { Backend, Checkpoint, Drawn, DrawOrder, DrawWatch } from "../backend.ts";
import type { BackendHttp } from "../backend_http.ts";
import { ComfyRun } from "./comfy_run.ts";
import { ComfyServer } from "./comfy_server.ts";
import { openComfySocket } from "./comfy_socket.ts";
import { base64Of, isPicture } from "../image_data.ts";
import { fillWorkflow, placeholdersIn, type PlaceholderValues } from "./placeholders.ts";

/** Pictures taken of one run. */
const MAX_PICTURES = 16;
/** One transparent pixel as PNG, where somebody has no picture. */
const NO_PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** One ComfyUI. */
export class ComfyBackend implements Backend {
  readonly #server: ComfyServer;

  constructor(http: BackendHttp) {
    this.#server = new ComfyServer(http);
  }

  check(signal: AbortSignal): Promise<void> {
    return this.#server.check(signal);
  }

  async checkpoints(signal: AbortSignal): Promise<Checkpoint[]> {
    return (await this.#server.checkpoints(signal)).map((name) => ({ name, title: name }));
  }

  async draw(order: DrawOrder, watch: DrawWatch): Promise<Drawn> {
    const { http } = this.#server;
    const places = new Set(placeholdersIn(order.workflow));
    const { workflow, left } = fillWorkflow(order.workflow, await this.#values(order, places, watch.signal));
    const clientId = crypto.randomUUID();
    const run = new ComfyRun(this.#server, watch);
    await assertOwnerAddress(new URL(http.place)); // the socket has no guard of its own
    const socket = await openComfySocket(http.place, clientId, {
      headers: http.authorization,
      withinMs: http.limits.connectMs,
      listener: run,
    });
    try {
      const { history, warnings } = await run.run(workflow, clientId);
      const pictures: Uint8Array<ArrayBuffer>[] = [];
      for (const picture of history.pictures.slice(0, MAX_PICTURES)) {
        const bytes = await this.#server.view(picture, watch.signal);
        if (isPicture(bytes)) pictures.push(bytes);
      }
      if (pictures.length === 0) {
        throw new AppError(
          "upstream_error",
          "The workflow ran and made no picture: it needs a node that saves or shows one",
        );
      }
      const unfilled = left.map((name) => `The workflow has a place %${name}% that Parlor does not fill`);
      return { pictures, seed: order.seed, warnings: [...warnings, ...unfilled] };
    } finally {
      socket?.close();
    }
  }

  async #values(order: DrawOrder, places: Set<string>, signal: AbortSignal): Promise<PlaceholderValues> {
    const values: PlaceholderValues = {
      prompt: order.prompt,
      negative_prompt: order.negativePrompt,
      width: order.widthPx,
      height: order.heightPx,
      steps: order.steps,
      scale: order.cfgScale,
      sampler: order.sampler ?? "euler",
      scheduler: order.scheduler ?? "normal",
      seed: order.seed,
      denoise: order.initImage === undefined ? 1 : 0.75,
      clip_skip: -1, // ComfyUI counts from the end
    };
    if (places.has("model")) values.model = order.checkpoint ?? await this.#firstCheckpoint(signal);
    if (places.has("user_avatar")) values.user_avatar = NO_PICTURE;
    if (places.has("char_avatar")) {
      const picture = await order.characterPicture?.();
      values.char_avatar = picture === undefined ? NO_PICTURE : base64Of(picture);
    }
    if (order.initImage !== undefined) {
      if (!places.has("init_image")) throw noPlaceForPicture();
      values.init_image = await this.#server.upload(order.initImage, signal);
    }
    return values;
  }

  async #firstCheckpoint(signal: AbortSignal): Promise<string> {
    const [first] = await this.#server.checkpoints(signal);
    if (first !== undefined) return first;
    const message = "the image server has no checkpoint: put one into its folder models/checkpoints";
    throw new AppError("unprocessable", `Cannot draw the picture: ${message}`, {
      issues: [{ path: "checkpoint", message }],
    });
  }
}

function noPlaceForPicture(): AppError {
  const message = "the workflow has no place for a picture to begin from; give a LoadImage node the image %init_image%";
  return new AppError("unprocessable", `Cannot draw the picture: ${message}`, {
    issues: [{ path: "init_image", message }],
  });
}
