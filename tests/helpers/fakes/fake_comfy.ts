/** Fake ComfyUI server, old and new, one job at a time, with a switch per fault in docs/protocols/images.md. */
import { picture } from "../files/pictures.ts";

/** Switches of the fake. */
export interface FakeComfySwitches {
  /** `new`: 0.3.64. `old`: mid-2024, which knows neither execution_success nor prompt ids of clients, and ends any run. */
  dialect: "new" | "old";
  checkpoints: string[];
  /** Lists its choices in the newer form of nodes. */
  hasComboForm: boolean;
  /** Runs wait for `go` and report progress with `step`. */
  isManual: boolean;
  /** Frames: complete, none, or the socket breaks at the first step. */
  socket: "on" | "silent" | "drop" | "refused";
  /** Sends frames of custom nodes and other runs in between. */
  isNoisy: boolean;
  /** The run fails in its sampler. */
  failure: string | undefined;
  /** The first run is forgotten, as after a restart. */
  forgets: boolean;
  pictures: "output" | "temp" | "both" | "none";
  /** Number of polls before the history is written. */
  historyLagLooks: number;
  /** An output is left out with a warning. */
  isPartlyRefused: boolean;
}

const PLAIN: FakeComfySwitches = {
  dialect: "new",
  checkpoints: ["tiny.safetensors", "sub/big.safetensors"],
  hasComboForm: false,
  isManual: false,
  socket: "on",
  isNoisy: false,
  failure: undefined,
  forgets: false,
  pictures: "output",
  historyLagLooks: 0,
  isPartlyRefused: false,
};

type Json = Record<string, unknown>;
type Node = { class_type: string; inputs: Json };

/** One run. */
export interface ComfyJob {
  id: string;
  number: number;
  workflow: Record<string, Node>;
  clientId: string | undefined;
  isInterrupted: boolean;
  over: PromiseWithResolvers<void>;
}

/** A running fake server. */
export class FakeComfy {
  readonly switches: FakeComfySwitches;
  readonly requests: { method: string; path: string; headers: Headers; json: Json | undefined }[] = [];
  readonly jobs: ComfyJob[] = [];
  readonly uploads: string[] = [];
  /** Interrupted runs. */
  readonly interrupted: string[] = [];
  #pending: ComfyJob[] = [];
  #running: ComfyJob | undefined;
  #history = new Map<string, { entry: Json; hiddenLooks: number }>();
  #files = new Map<string, Uint8Array<ArrayBuffer>>();
  #sockets = new Map<string, WebSocket>();
  #begins: (() => void)[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(changes: Partial<FakeComfySwitches> = {}) {
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

  get isIdle(): boolean {
    return this.#running === undefined && this.#pending.length === 0;
  }

  /** Resolves once `count` runs have started. */
  async begun(count = 1): Promise<void> {
    const hasBegun = () => this.jobs.filter((job) => !this.#pending.includes(job)).length >= count;
    while (!hasBegun()) await new Promise<void>((resolve) => this.#begins.push(resolve));
  }

  /** Queues a run of another client. */
  addForeignRun(): ComfyJob {
    return this.#enqueue({}, "somebody", `foreign-${this.jobs.length}`);
  }

  /** Reports a step of the run, with a preview. */
  step(value: number, max: number): void {
    const job = this.#running!;
    const socket = this.#sockets.get(job.clientId ?? "");
    if (this.switches.socket === "drop") return socket?.close();
    this.#tell(job, "progress", { value, max, node: "3" });
    const frame = new Uint8Array(8 + picture(value).length);
    new DataView(frame.buffer).setUint32(0, 1);
    new DataView(frame.buffer).setUint32(4, 2);
    frame.set(picture(value), 8);
    if (this.switches.socket === "on" && socket?.readyState === WebSocket.OPEN) socket.send(frame);
  }

  /** Finishes the run. */
  go(): void {
    this.#running?.over.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.switches.isManual = false;
    this.#pending = [];
    this.go();
    for (const socket of this.#sockets.values()) socket.close();
    await this.#server.shutdown();
  }

  async #handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const path = url.pathname;
    if (path === "/ws") return this.#connect(request, url.searchParams.get("clientId") ?? "made-up");
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") ?? false;
    const form = isForm ? await request.formData() : undefined;
    const text = request.method === "POST" && !isForm ? await request.text() : "";
    let json: Json | undefined;
    try {
      json = text === "" ? undefined : JSON.parse(text);
    } catch {
      json = undefined;
    }
    this.requests.push({ method: request.method, path, headers: request.headers, json });
    if (path === "/system_stats") return Response.json(this.#stats());
    if (path === "/object_info/CheckpointLoaderSimple") return Response.json(this.#loaderInfo());
    if (path === "/prompt") return request.method === "POST" ? this.#prompt(json) : Response.json(this.#queueInfo());
    if (path === "/queue") return request.method === "POST" ? this.#delete(json) : Response.json(this.#queue());
    if (path === "/interrupt") return this.#interrupt(json);
    if (path.startsWith("/history/")) return Response.json(this.#historyOf(path.slice("/history/".length)));
    if (path === "/view") return this.#view(url.searchParams);
    if (path === "/upload/image" && form !== undefined) return this.#upload(form);
    return new Response(null, { status: 404 });
  }

  #stats(): Json {
    const system = { os: "posix", python_version: "3.12", embedded_python: false };
    const isNew = this.switches.dialect === "new";
    return {
      system: isNew ? { ...system, comfyui_version: "0.3.64", argv: ["/home/someone/main.py"] } : system,
      devices: [{ name: "cpu", type: "cpu", index: null, vram_total: 1, vram_free: 1 }],
    };
  }

  #loaderInfo(): Json {
    const { checkpoints, hasComboForm } = this.switches;
    const input = hasComboForm ? ["COMBO", { options: checkpoints }] : [checkpoints, {}];
    return { CheckpointLoaderSimple: { input: { required: { ckpt_name: input } }, output: ["MODEL"] } };
  }

  #queueInfo(): Json {
    return { exec_info: { queue_remaining: this.#pending.length + (this.#running ? 1 : 0) } };
  }

  #queue(): Json {
    const shown = (job: ComfyJob) => [job.number, job.id, job.workflow, {}, ["9"]];
    return { queue_running: this.#running ? [shown(this.#running)] : [], queue_pending: this.#pending.map(shown) };
  }

  #prompt(body: Json | undefined): Response {
    if (body === undefined || Array.isArray(body.prompt) || typeof body.prompt !== "object" || body.prompt === null) {
      if (body?.prompt === undefined && body !== undefined) return this.#refuse("no_prompt", "No prompt provided");
      return new Response("500 Internal Server Error", { status: 500 });
    }
    const workflow = body.prompt as Record<string, Node>;
    if (Array.isArray((workflow as Json).nodes)) return new Response("500 Internal Server Error", { status: 500 });
    for (const [id, node] of Object.entries(workflow)) {
      if (typeof node?.class_type !== "string") {
        return this.#refuse("invalid_prompt", "Cannot execute because a node is missing the class_type property.", {
          details: `Node ID '#${id}'`,
        });
      }
    }
    const errors = this.#nodeErrors(workflow);
    if (Object.keys(errors).length > 0) {
      return this.#refuse("prompt_outputs_failed_validation", "Prompt outputs failed validation", { errors });
    }
    const isNew = this.switches.dialect === "new";
    const id = isNew && typeof body.prompt_id === "string" ? body.prompt_id : crypto.randomUUID();
    const job = this.#enqueue(workflow, body.client_id as string | undefined, id);
    const left = this.switches.isPartlyRefused
      ? {
        "12": {
          errors: [{
            type: "required_input_missing",
            message: "Required input is missing",
            details: "images",
            extra_info: { input_name: "images" },
          }],
          dependent_outputs: ["12"],
          class_type: "SaveImage",
        },
      }
      : {};
    return Response.json({ prompt_id: job.id, number: job.number, node_errors: left });
  }

  #refuse(type: string, message: string, more: { details?: string; errors?: Json } = {}): Response {
    const isOld = this.switches.dialect === "old";
    if (type === "no_prompt" && isOld) return Response.json({ error: "no prompt", node_errors: [] }, { status: 400 });
    const error = { type, message, details: more.details ?? "", extra_info: {} };
    return Response.json({ error, node_errors: more.errors ?? (isOld ? [] : {}) }, { status: 400 });
  }

  #nodeErrors(workflow: Record<string, Node>): Json {
    const found: Json = {};
    for (const [id, { class_type, inputs }] of Object.entries(workflow)) {
      const errors: Json[] = [];
      const add = (type: string, input: string, more: Json = {}) =>
        errors.push({
          type,
          message: type.replaceAll("_", " "),
          details: input,
          extra_info: { input_name: input, received_value: inputs[input], ...more },
        });
      const name = inputs.ckpt_name;
      if (typeof name === "string" && !this.switches.checkpoints.includes(name)) add("value_not_in_list", "ckpt_name");
      if (typeof inputs.seed === "number" && inputs.seed < 0) add("value_smaller_than_min", "seed");
      for (const [input, value] of Object.entries(inputs)) {
        if (Array.isArray(value) && !Object.hasOwn(workflow, String(value[0]))) {
          add("exception_during_validation", input, { traceback: ["/home/someone/execution.py line 1"] });
        }
      }
      if (errors.length > 0) found[id] = { errors, dependent_outputs: ["9"], class_type };
    }
    return found;
  }

  #enqueue(workflow: Record<string, Node>, clientId: string | undefined, id: string): ComfyJob {
    const job = { id, number: this.jobs.length, workflow, clientId, isInterrupted: false, over: noted() };
    this.jobs.push(job);
    if (this.switches.forgets) return job;
    this.#pending.push(job);
    queueMicrotask(() => this.#next());
    return job;
  }

  #next(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#pending.shift();
    if (this.#running !== undefined) void this.#run(this.#running);
  }

  async #run(job: ComfyJob): Promise<void> {
    for (const tell of this.#begins.splice(0)) tell();
    const { failure, isManual, isNoisy, dialect } = this.switches;
    this.#tell(job, "execution_start", {});
    this.#tell(job, "execution_cached", { nodes: [] });
    if (isNoisy) {
      this.#tell(job, "crystools.monitor", { cpu: 1 });
      this.#tell({ ...job, id: "another" }, "executing", { node: null });
      this.#tell({ ...job, id: "another" }, "progress", { value: 9, max: 9, node: "3" });
    }
    this.#tell(job, "executing", { node: "3", display_node: "3" });
    if (isManual) await job.over.promise;
    if (job.isInterrupted) return this.#end(job, "execution_interrupted", { node_id: "3", node_type: "KSampler" });
    if (failure !== undefined) {
      return this.#end(job, "execution_error", {
        node_id: "3",
        node_type: "KSampler",
        exception_type: "RuntimeError",
        exception_message: failure,
        traceback: ["/home/someone/ComfyUI/execution.py"],
      });
    }
    const outputs = this.#draw(job);
    this.#tell(job, "executed", { node: "9", output: outputs["9"] ?? null });
    if (dialect === "new") this.#tell(job, "execution_success", {});
    this.#end(job, undefined, {}, outputs);
  }

  #draw(job: ComfyJob): Record<string, Json> {
    const { pictures } = this.switches;
    if (pictures === "none") return { "9": { text: ["no picture"] } };
    const seed = Number(job.workflow["3"]?.inputs.seed ?? 0);
    const types = pictures === "both" ? ["temp", "output"] : [pictures];
    const images = types.map((type, i) => {
      const filename = `Ünï ${job.number} ${i}.png`;
      this.#files.set(`${type}/sub/${filename}`, picture(seed + i));
      return { filename, subfolder: "sub", type, abs_path: `/home/someone/${filename}` };
    });
    return { "9": { images, animated: [false] } };
  }

  #end(job: ComfyJob, type: string | undefined, data: Json, outputs: Json = {}): void {
    if (type !== undefined) this.#tell(job, type, data);
    const messages = [["execution_start", { prompt_id: job.id }], ...(type ? [[type, data]] : [])];
    const status = { status_str: type ? "error" : "success", completed: !type, messages };
    this.#history.set(job.id, {
      entry: { prompt: [job.number, job.id, job.workflow, {}, ["9"]], outputs, status },
      hiddenLooks: this.switches.historyLagLooks,
    });
    this.#running = undefined;
    this.#tell(job, "executing", { node: null });
    this.#next();
  }

  #tell(job: ComfyJob, type: string, data: Json): void {
    const socket = this.#sockets.get(job.clientId ?? "");
    if (socket?.readyState !== WebSocket.OPEN || this.switches.socket === "silent") return;
    socket.send(JSON.stringify({ type, data: { ...data, prompt_id: job.id } }));
  }

  #connect(request: Request, clientId: string): Response {
    if (this.switches.socket === "refused") return new Response(null, { status: 403 });
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onopen = () => {
      this.#sockets.set(clientId, socket);
      socket.send(JSON.stringify({ type: "status", data: { status: this.#queueInfo(), sid: clientId } }));
    };
    socket.onclose = () => this.#sockets.delete(clientId);
    return response;
  }

  #delete(body: Json | undefined): Response {
    const ids = body?.delete;
    if (Array.isArray(ids)) this.#pending = this.#pending.filter(({ id }) => !ids.includes(id));
    return new Response(null);
  }

  #interrupt(body: Json | undefined): Response {
    const job = this.#running;
    const isMeant = this.switches.dialect === "old" || body?.prompt_id === undefined || body.prompt_id === job?.id;
    if (job !== undefined && isMeant) {
      job.isInterrupted = true;
      this.interrupted.push(job.id);
      job.over.resolve();
    }
    return new Response(null);
  }

  #historyOf(id: string): Json {
    const found = this.#history.get(id);
    return found === undefined || found.hiddenLooks-- > 0 ? {} : { [id]: found.entry };
  }

  #view(query: URLSearchParams): Response {
    const file = this.#files.get(`${query.get("type") ?? "output"}/${query.get("subfolder")}/${query.get("filename")}`);
    return file === undefined ? new Response(null, { status: 404 }) : new Response(file);
  }

  #upload(form: FormData): Response {
    const { name } = form.get("image") as File;
    const stored = this.uploads.includes(name) ? name.replace(".png", " (1).png") : name;
    this.uploads.push(stored);
    return Response.json({ name: stored, subfolder: "", type: "input" });
  }
}

function noted(): PromiseWithResolvers<void> {
  return Promise.withResolvers<void>();
}
