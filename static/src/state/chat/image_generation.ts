/** Generates one image for a chat: a prompt from its last messages, edited, then generated. */
import type {
  GalleryImage,
  GeneratedImages,
  GenerateImage,
  ImageBackend,
  ImageProgress,
  Message,
} from "../../api/types.ts";
import { batch, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { ImageApi } from "../../api/images.ts";
import { getContentText } from "./message_text.ts";

/** The progress. */
export type ImageGenerationState = "reading" | "unset" | "deriving" | "ready" | "drawing" | "done";

const INSTRUCTION =
  "You write prompts for an image generator. Below are the last turns of a conversation. Write one prompt that shows the " +
  "scene as it is at its end: what can be seen, as short phrases separated by commas, in English, at most 60 words. No " +
  "names, no story, no explanation, no quotation marks. Answer with the prompt alone.";
/** Messages for the prompt, and characters of each: small models have small contexts. */
const MAX_MESSAGES = 6;
const MAX_MESSAGE_CHARS = 1500;
/** Characters of the last message, if no model writes a prompt from it. */
const PLAIN_CHARS = 400;

/** The state of the dialog. */
export class ImageGeneration {
  readonly state = signal<ImageGenerationState>("reading");
  readonly prompt = signal("");
  readonly negative = signal("");
  readonly progress = signal<ImageProgress | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly result = signal<GeneratedImages | undefined>(undefined);
  readonly backend = signal<ImageBackend | undefined>(undefined);
  /** Empty: a new one. */
  readonly seed = signal("");
  /** Settings of the image to generate again, except prompt, negative prompt and seed. */
  #settings: Partial<GenerateImage> = {};
  readonly #api: ImageApi;
  readonly #abort = new AbortController();
  #deriving: AbortController | undefined;
  /** The ID of the running job, which the server sends first; undefined if there is none. */
  #jobId: PromiseWithResolvers<string | undefined> | undefined;

  constructor(api: ImageApi) {
    this.#api = api;
  }

  /**
   * Finds the backend and writes a prompt.
   *
   * @param isAsked False if there is only the demo connection: the last message is then the prompt.
   * @param prompt An existing prompt to use.
   */
  async open(messages: readonly Message[], isAsked: boolean, prompt = ""): Promise<void> {
    try {
      const active = (await this.#api.listBackends()).find((item) => item.active);
      if (active === undefined) {
        this.state.value = "unset";
        return;
      }
      this.backend.value = active;
      this.negative.value = active.defaults.negative_prompt ?? "";
    } catch (thrown) {
      this.#fail(thrown, "unset");
      return;
    }
    if (prompt === "") return await this.derive(messages, isAsked);
    this.prompt.value = prompt;
    this.state.value = "ready";
  }

  /** Takes over the prompt and all settings of an image but its seed. Without its backend, those that any backend has. */
  async openAgain({ prompt, settings, profile_id, checkpoint, workflow_id, init_image, character_id }: GalleryImage) {
    try {
      const backends = await this.#api.listBackends();
      const own = backends.find(({ id }) => id === profile_id);
      const { negative_prompt, width, height, steps, cfg_scale, sampler, scheduler } = settings;
      this.backend.value = own ?? backends.find(({ active }) => active);
      if (this.backend.value === undefined) {
        this.state.value = "unset";
        return;
      }
      this.prompt.value = prompt;
      this.negative.value = negative_prompt ?? "";
      this.#settings = {
        ...{ width, height, steps, cfg_scale, init_image, character_id },
        ...(own && { sampler, scheduler, profile_id, checkpoint, workflow_id }),
      };
      this.state.value = "ready";
    } catch (thrown) {
      this.#fail(thrown, "unset");
    }
  }

  /** Writes a new prompt. */
  async derive(messages: readonly Message[], isAsked: boolean): Promise<void> {
    const turns = messages.filter(({ hidden, role }) => !hidden && role !== "system").slice(-MAX_MESSAGES);
    const last = turns.map(({ content }) => getContentText(content).trim()).findLast((text) => text !== "") ?? "";
    this.error.value = undefined;
    if (!isAsked || last === "") {
      this.prompt.value = last.slice(0, PLAIN_CHARS);
      this.state.value = "ready";
      return;
    }
    this.state.value = "deriving";
    this.#deriving = new AbortController();
    try {
      const lines = turns.map(({ role, content }) => `${role}: ${getContentText(content).slice(-MAX_MESSAGE_CHARS)}`);
      const transcript = lines.join("\n\n");
      const question = [{ role: "system", content: INSTRUCTION }, { role: "user", content: transcript }];
      const answer = await this.#api.ask(question, this.#deriving.signal);
      this.prompt.value = extractPrompt(answer) || last.slice(0, PLAIN_CHARS);
      this.state.value = "ready";
    } catch (thrown) {
      this.prompt.value ||= last.slice(0, PLAIN_CHARS);
      if (this.#deriving.signal.aborted) this.state.value = "ready";
      else this.#fail(thrown, "ready");
    }
  }

  /** Stops waiting for the model; the user writes the prompt. */
  stopDeriving(): void {
    this.#deriving?.abort();
  }

  /** Generates the image. It is attached to its message, if any, even if the dialog is closed. */
  async draw(target: { conversationId?: string; messageId?: string }): Promise<void> {
    batch(() => {
      this.state.value = "drawing";
      this.error.value = undefined;
      this.progress.value = undefined;
    });
    const seed = this.seed.peek().trim();
    const request = {
      ...this.#settings,
      prompt: this.prompt.peek().trim(),
      negative_prompt: this.negative.peek().trim() || null,
      ...(seed !== "" && { seed: Number(seed) }),
      conversation_id: target.conversationId,
      message_id: target.messageId,
    } satisfies GenerateImage;
    const jobId = Promise.withResolvers<string | undefined>();
    this.#jobId = jobId;
    const listener = {
      onJob: jobId.resolve,
      // A step can come without a preview; the last one stays.
      onProgress: (step: ImageProgress) => this.progress.value = { preview: this.progress.peek()?.preview, ...step },
    };
    try {
      this.result.value = await this.#api.draw(request, listener, this.#abort.signal);
      this.state.value = "done";
    } catch (thrown) {
      if (!this.#abort.signal.aborted) this.#fail(thrown, "ready");
    } finally {
      this.#jobId = undefined;
      jobId.resolve(undefined);
    }
  }

  /** Cancels the image on the server, as soon as its job has started. @throws {ApiError} */
  async cancel(cancelJob: (id: string) => Promise<unknown>): Promise<void> {
    const id = await this.#jobId?.promise;
    if (id !== undefined && this.#jobId !== undefined) await cancelJob(id);
  }

  /** Stops watching; the server finishes the image. A request that is still on its way is not aborted. */
  leave(): void {
    this.#deriving?.abort();
    if (this.#jobId === undefined) this.#abort.abort();
    else void this.#jobId.promise.then(() => this.#abort.abort());
  }

  #fail(thrown: unknown, state: ImageGenerationState): void {
    const error = asApiError(thrown);
    batch(() => {
      // A canceled image is not a failure.
      if (error.code !== "interrupted") this.error.value = error;
      this.state.value = state;
    });
  }
}

/** Removes a model's reasoning and the marks around the prompt. */
function extractPrompt(answer: string): string {
  return answer
    .replace(/<(think|thinking|thought|reasoning)>[\s\S]*?(?:<\/\1>|$)/gi, "")
    .replace(/^\s*(?:image\s+)?prompt\s*:/i, "")
    .replace(/\s+/g, " ")
    .replace(/^["'`“”\s]+|["'`“”\s]+$/g, "");
}
