/** API calls for images. Loaded with the screens that use them. */
import type {
  BackendDetection,
  Checkpoint,
  GalleryImage,
  GeneratedImages,
  GenerateImage,
  ImageBackend,
  ImageBackendInput,
  ImageBackendTest,
  ImageProgress,
  RequestMessage,
  Workflow,
} from "./types.ts";
import type { PageJson } from "../../../routes/schemas/common.ts";
import { texts } from "../texts/texts.ts";
import { type ApiClient, ApiError, readEvents, type RequestOptions } from "./client.ts";
import { parseErrorBody } from "./failures.ts";

/** All calls throw `ApiError`. */
export interface ImageApi {
  listBackends(): Promise<ImageBackend[]>;
  saveBackend(input: ImageBackendInput): Promise<ImageBackend>;
  deleteBackend(id: string): Promise<void>;
  activateBackend(id: string): Promise<ImageBackend>;
  testBackend(input: ImageBackendInput): Promise<ImageBackendTest>;
  /** Finds out the kind of the server at an address. */
  detectBackend(baseUrl: string): Promise<BackendDetection>;
  listCheckpoints(id: string): Promise<Checkpoint[]>;
  listWorkflows(): Promise<Workflow[]>;
  readWorkflow(id: string): Promise<unknown>;
  saveWorkflow(id: string, workflow: unknown): Promise<void>;
  deleteWorkflow(id: string): Promise<void>;
  /**
   * Generates an image. The server finishes it even if `signal` fires.
   *
   * @param on `onJob` receives the id that cancels the job.
   */
  draw(request: GenerateImage, on: ImageListener, signal: AbortSignal): Promise<GeneratedImages>;
  /** Lists generated images, newest first. @param attachment Only the images of this attachment. */
  listImages(options: {
    cursor?: string;
    attachment?: string;
    /** Only images whose prompt has this text. */
    q?: string;
    /** Only images of this chat. */
    conversation_id?: string;
  }): Promise<PageJson<GalleryImage>>;
  deleteImage(id: string): Promise<void>;
  /** Asks the active model one question outside of any chat and returns its text. */
  ask(messages: RequestMessage[], signal: AbortSignal): Promise<string>;
}

/** Receives the progress of an image. */
export interface ImageListener {
  onJob(id: string): void;
  onProgress(progress: ImageProgress): void;
}

/** Images of a page of the gallery. */
const PAGE_IMAGES = 60;

/** Enough for a prompt and for the reasoning of a model that thinks first. */
const MAX_PROMPT_TOKENS = 1000;

/** Returns the calls, bound to a client. */
export function imageApi(client: ApiClient): ImageApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return await (await client.send(method, path, options)).json() as T;
  }
  async function done(method: string, path: string, options?: RequestOptions): Promise<void> {
    await (await client.send(method, path, options)).body?.cancel();
  }
  const backend = (id: string) => `/api/image/connections/${encodeURIComponent(id)}`;
  const workflow = (id: string) => `/api/image/workflows/${encodeURIComponent(id)}`;
  return {
    listBackends: () => json("GET", "/api/image/connections"),
    saveBackend: (input) => json("PUT", "/api/image/connections", { body: input }),
    deleteBackend: (id) => done("DELETE", backend(id)),
    activateBackend: (id) => json("POST", `${backend(id)}/activate`, { body: {} }),
    testBackend: (input) => json("POST", "/api/image/connections/test", { body: input }),
    detectBackend: (base_url) => json("POST", "/api/image/detect", { body: { base_url } }),
    listCheckpoints: (id) => json("GET", `${backend(id)}/checkpoints`),
    listWorkflows: () => json("GET", "/api/image/workflows"),
    readWorkflow: (id) => json("GET", workflow(id)),
    saveWorkflow: (id, body) => done("PUT", workflow(id), { body }),
    deleteWorkflow: (id) => done("DELETE", workflow(id)),
    async draw(body, on, signal) {
      const headers = { accept: "text/event-stream" };
      const response = await client.send("POST", "/api/image/generate", { body, headers, signal });
      for await (const events of readEvents(response)) {
        for (const { event, data } of events) {
          const value = JSON.parse(data);
          if (event === "job") on.onJob(value.id);
          else if (event === "progress") on.onProgress(value);
          else if (event === "done") return value;
          else if (event === "error") {
            throw new ApiError(0, parseErrorBody(value) ?? { code: "internal", message: data });
          }
        }
      }
      throw new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer });
    },
    listImages(options) {
      const query = new URLSearchParams({ limit: String(PAGE_IMAGES), ...options });
      return json("GET", `/api/image/gallery?${query}`);
    },
    deleteImage: (id) => done("DELETE", `/api/image/gallery/${encodeURIComponent(id)}`),
    async ask(messages, signal) {
      const body = { messages, stream: false, max_tokens: MAX_PROMPT_TOKENS };
      const answer = await json<{ choices: { message: { content: string | null } }[] }>("POST", "/api/chat", {
        body,
        signal,
      });
      return answer.choices[0]?.message.content ?? "";
    },
  };
}
