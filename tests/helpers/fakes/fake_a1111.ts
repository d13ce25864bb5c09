/** Fake server with A1111's API: one lock, global progress and interrupt, and a switch per quirk in docs/protocols/images.md. */
import { dataUrl, picture } from "../files/pictures.ts";

/** Switches of the fake. */
export interface FakeA1111Switches {
  /** False without `--api`: the web UI alone. */
  hasApi: boolean;
  /** `user:password` of `--api-auth`. */
  login: string | undefined;
  /** Bytes of all generated images; by default a different image each time. */
  picture: Uint8Array<ArrayBuffer> | undefined;
  /** The first image is a grid. */
  hasGrid: boolean;
  /** What `info` holds: all, nothing as KoboldCpp has it, or the name of another checkpoint. */
  info: "full" | "empty";
  failure: "a1111" | "forge" | "validation" | "page" | undefined;
  /** Generation waits for `go` and reports progress with `step`. */
  isManual: boolean;
  /** Additional bytes in responses of `txt2img`. */
  paddingBytes: number;
  /** Always loads this checkpoint. */
  stuckOn: string | undefined;
  models: { title: string; model_name: string; hash: string | null }[];
}

/** A recorded request. */
export interface A1111Request {
  method: string;
  path: string;
  headers: Headers;
  json: Record<string, unknown> | undefined;
}

const PLAIN: FakeA1111Switches = {
  hasApi: true,
  login: undefined,
  picture: undefined,
  hasGrid: false,
  info: "full",
  failure: undefined,
  isManual: false,
  paddingBytes: 0,
  stuckOn: undefined,
  models: [
    { title: "fox.safetensors [1a2b3c4d5e]", model_name: "fox", hash: "1a2b3c4d5e" },
    { title: "heron.safetensors", model_name: "heron", hash: null },
  ],
};

/** The generation that holds the lock. */
interface Job {
  step: number;
  steps: number;
  timestamp: string;
  isInterrupted: boolean;
  over: PromiseWithResolvers<void>;
}

/** A running fake server. */
export class FakeA1111 {
  readonly switches: FakeA1111Switches;
  readonly requests: A1111Request[] = [];
  /** Number of interrupted images. */
  interruptions = 0;
  #loaded = "fox";
  #current: Job | undefined;
  #lock: Promise<unknown> = Promise.resolve();
  #begun = 0;
  #begins: (() => void)[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(changes: Partial<FakeA1111Switches> = {}) {
    this.switches = { ...PLAIN, ...changes };
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {}, onError: () => new Response(null, { status: 500 }) },
      (request) => this.#handle(request),
    );
  }

  get port(): number {
    return this.#server.addr.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Request bodies of image generations. */
  get orders(): Record<string, unknown>[] {
    return this.requests.filter(({ path }) => /2img$/.test(path)).map(({ json }) => json!);
  }

  /** Whether the lock is free. */
  get isIdle(): boolean {
    return this.#current === undefined;
  }

  /** Resolves once `count` images have been started. */
  async begun(count = 1): Promise<void> {
    while (this.#begun < count) await new Promise<void>((resolve) => this.#begins.push(resolve));
  }

  /** Reports a step of the current image. */
  step(step: number): void {
    this.#current!.step = step;
  }

  /** Finishes the current image. */
  go(): void {
    this.#current?.over.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.switches.isManual = false;
    this.go();
    await this.#server.shutdown();
  }

  async #handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const json = request.method === "POST" ? await request.json().catch(() => undefined) : undefined;
    this.requests.push({ method: request.method, path: url.pathname, headers: request.headers, json });
    if (url.pathname === "/internal/ping") return Response.json({});
    if (!url.pathname.startsWith("/sdapi/v1/") || !this.switches.hasApi) return notFound();
    if (!this.#isLoggedIn(request)) {
      return Response.json({ detail: "Incorrect username or password" }, {
        status: 401,
        headers: { "www-authenticate": "Basic" },
      });
    }
    switch (url.pathname.slice("/sdapi/v1/".length)) {
      case "sd-models":
        return Response.json(this.switches.models.map((model) => ({
          ...model,
          sha256: null,
          filename: `/home/someone/models/${model.model_name}.safetensors`,
          config: null,
        })));
      case "options":
        return Response.json({ sd_model_checkpoint: this.#loaded, outdir_samples: "/home/someone/out" });
      case "progress":
        return this.#progress(url.searchParams.get("skip_current_image") === "true");
      case "interrupt":
        if (this.#current !== undefined) {
          this.interruptions++;
          this.#current.isInterrupted = true;
          this.#current.over.resolve();
        }
        return Response.json({});
      case "txt2img":
      case "img2img":
        return await this.#draw(json ?? {});
      default:
        return notFound();
    }
  }

  #isLoggedIn(request: Request): boolean {
    const { login } = this.switches;
    return login === undefined || request.headers.get("authorization") === `Basic ${btoa(login)}`;
  }

  #progress(isWithoutImage: boolean): Response {
    const job = this.#current;
    const idle = { skipped: false, interrupted: false, job: "", job_count: 0, job_no: 0 };
    if (job === undefined) {
      const state = { ...idle, job_timestamp: "0", sampling_step: 0, sampling_steps: 0 };
      return Response.json({ progress: 0, eta_relative: 0, state, current_image: null, textinfo: null });
    }
    return Response.json({
      progress: job.step / job.steps,
      eta_relative: 1,
      state: {
        ...idle,
        job: "scripts_txt2img",
        job_count: 1,
        job_timestamp: job.timestamp,
        sampling_step: job.step,
        sampling_steps: job.steps,
      },
      current_image: isWithoutImage ? null : dataUrl(picture(job.step)).split(",")[1],
      textinfo: null,
    });
  }

  /** One FIFO lock for all requests. A disconnected client keeps its place. */
  #draw(order: Record<string, unknown>): Promise<Response> {
    const drawn = this.#lock.then(() => this.#drawn(order));
    this.#lock = drawn.catch(() => {});
    return drawn;
  }

  async #drawn(order: Record<string, unknown>): Promise<Response> {
    const { switches } = this;
    if (switches.failure !== undefined) return failureOf(switches.failure);
    const timestamp = `2026010100000${this.#begun}`;
    const job = { step: 0, steps: Number(order.steps ?? 50), timestamp, isInterrupted: false, over: noted() };
    this.#current = job;
    this.#begun++;
    for (const tell of this.#begins.splice(0)) tell();
    const wanted = (order.override_settings as Record<string, string> | undefined)?.sd_model_checkpoint;
    const known = switches.models.find(({ title, model_name }) => title === wanted || model_name === wanted);
    if (known !== undefined) this.#loaded = known.model_name; // Unknown checkpoints are ignored.
    this.#loaded = switches.stuckOn ?? this.#loaded;
    if (switches.isManual) await job.over.promise;
    this.#current = undefined;
    const seed = Number(order.seed);
    const bytes = switches.picture ?? picture(job.isInterrupted ? 255 : seed);
    const images = [dataUrl(bytes).split(",")[1]!];
    if (switches.hasGrid) images.unshift(dataUrl(picture(254)).split(",")[1]!);
    const info = {
      seed,
      all_seeds: [seed],
      sd_model_name: this.#loaded,
      steps: job.steps,
      index_of_first_image: switches.hasGrid ? 1 : 0,
      infotexts: null,
    };
    return Response.json({
      images,
      parameters: { ...order, padding: "x".repeat(switches.paddingBytes) },
      info: switches.info === "empty" ? "" : JSON.stringify(info),
    });
  }
}

function noted(): PromiseWithResolvers<void> {
  return Promise.withResolvers<void>();
}

function notFound(): Response {
  return Response.json({ detail: "Not Found" }, { status: 404 });
}

function failureOf(failure: NonNullable<FakeA1111Switches["failure"]>): Response {
  switch (failure) {
    case "a1111":
      return Response.json({
        error: "OutOfMemoryError",
        detail: "",
        body: "",
        errors: "CUDA out of memory. Tried to allocate 2 GiB, see /home/someone/webui/a.py",
      }, { status: 500 });
    case "forge":
      return new Response("Internal Server Error", { status: 500 });
    case "validation":
      return Response.json(
        { detail: [{ loc: ["body", "width"], msg: "value is not a valid integer", type: "type" }] },
        {
          status: 422,
        },
      );
    case "page":
      return new Response("<html>Gradio</html>", { headers: { "content-type": "text/html" } });
  }
}
