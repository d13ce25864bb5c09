/** The real server as a process of its own: for tests of start, stop and sudden death, and for driving the page. */
import { fileURLToPath } from "node:url";
import { startPermissions } from "../../../build.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** A start takes up to half a minute on a busy machine; beyond this it hangs. */
const READY_WITHIN_MS = 120_000;

/** What to start, and how. */
export interface ChildServerOptions {
  /** Folder for its data; made by a caller who wants to start again on it. */
  dataDir: string;
  /** A compiled executable. Without it main.ts runs with the permissions of the start task. */
  executable?: string;
  /** Deno to run main.ts with, and the tree in which main.ts lies; both those of this run by default. */
  deno?: string;
  root?: string;
  /** File to run instead of main.ts. */
  entry?: string;
  /** Flags of Deno before main.ts. */
  denoFlags?: string[];
  /** A free one by default. */
  port?: string;
  /** Flags of Parlor. */
  args?: string[];
  /** The whole environment; by default the one of this run without `PARLOR_*`. */
  env?: Record<string, string>;
  /** For starts that do more than others. */
  readyWithinMs?: number;
  /** Folder to start in; the tree's without an executable, which `entry` is relative to. */
  cwd?: string;
}

/** A running server. Disposing of it kills it. */
export interface ChildServer extends AsyncDisposable {
  /** `http://localhost:PORT` */
  readonly url: string;
  readonly pid: number;
  /** The line that said it was ready. */
  readonly readyLine: string;
  /** Lines on stdout and stderr so far. */
  readonly logs: string[];
  /** Sends a signal, SIGKILL by default, and waits for the end. */
  kill(signal?: Deno.Signal): Promise<Deno.CommandStatus>;
  /** Sends a request; a body goes as JSON. */
  request(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** Sends a request and gives the JSON of its answer. @throws {Error} when the status is none of 200 to 299. */
  json<T>(method: string, path: string, body?: unknown): Promise<T>;
}

/**
 * Connects a server to a double of a model server, and makes that its active connection. Titles and summaries are off:
 * they are requested a second after a reply, which on a slow machine is in the middle of the next step.
 */
export async function connectModel(server: Pick<ChildServer, "json">, url: string): Promise<void> {
  const connection = { id: "double", name: "Double", kind: "openai", base_url: url, model: "fake-model" };
  await server.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
  await server.json("PUT", "/api/connections", connection);
  await server.json("POST", "/api/connections/double/activate");
}

/** Starts a server on a free port. @throws {Error} with its output when it ends or stays silent. */
export async function startChildServer(options: ChildServerOptions): Promise<ChildServer> {
  const { executable, deno = Deno.execPath(), root = ROOT, dataDir, args = [], denoFlags = [], entry = "main.ts" } =
    options;
  const own = ["--port", options.port ?? "0", "--data-dir", dataDir, ...args];
  const source = ["run", "--quiet", ...await startPermissions(), ...denoFlags, entry, ...own];
  const child = new Deno.Command(executable ?? deno, {
    args: executable === undefined ? source : own,
    cwd: options.cwd ?? (executable === undefined ? root : undefined),
    env: options.env ?? ownEnvironment(),
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();

  const logs: string[] = [];
  const ready = Promise.withResolvers<string>();
  const take = (line: string) => {
    logs.push(line);
    if (line.includes(" listening on http")) ready.resolve(line);
  };
  const reading = Promise.all([eachLine(child.stdout, take), eachLine(child.stderr, (line) => logs.push(line))]);
  const ended = Promise.all([child.status, reading]).then(([status]) => status);
  ended.then(({ code }) => ready.reject(new Error(`The server ended with code ${code}; it said:\n${logs.join("\n")}`)));
  endWithRunner(child);
  const limit = setTimeout(() => send(child, "SIGKILL"), options.readyWithinMs ?? READY_WITHIN_MS);
  const readyLine = await ready.promise.finally(() => clearTimeout(limit));
  const url = readyLine.slice(readyLine.lastIndexOf(" ") + 1);

  const request: ChildServer["request"] = (method, path, body, init = {}) => {
    const headers = new Headers(init.headers);
    const isJson = body !== undefined && !(body instanceof FormData);
    if (isJson) headers.set("Content-Type", "application/json");
    return fetch(url + path, { ...init, method, headers, body: isJson ? JSON.stringify(body) : body });
  };
  const kill: ChildServer["kill"] = async (signal = "SIGKILL") => {
    send(child, signal);
    return await ended;
  };
  return {
    url,
    pid: child.pid,
    readyLine,
    logs,
    kill,
    request,
    async json<T>(method: string, path: string, body?: unknown) {
      const answer = await request(method, path, body);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
      return (text === "" ? undefined : JSON.parse(text)) as T;
    },
    async [Symbol.asyncDispose]() {
      await kill();
    },
  };
}

const running = new Set<Deno.ChildProcess>();

/** The runner ends its processes by SIGTERM, also where a test hangs or has failed before it disposed of its server. */
function endWithRunner(child: Deno.ChildProcess): void {
  if (running.size === 0) Deno.addSignalListener("SIGTERM", killAll);
  running.add(child);
  child.status.then(() => {
    running.delete(child);
    if (running.size === 0) Deno.removeSignalListener("SIGTERM", killAll);
  });
}

function killAll(): void {
  for (const child of running) send(child, "SIGKILL");
  Deno.exit(143);
}

function send(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    child.kill(signal);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // It has ended already.
  }
}

/** The environment of this run without settings of Parlor, which would change what is tested. */
export function ownEnvironment(): Record<string, string> {
  return Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("PARLOR_")));
}

async function eachLine(stream: ReadableStream<Uint8Array<ArrayBuffer>>, take: (line: string) => void): Promise<void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    lines.forEach(take);
  }
  if (rest !== "") take(rest);
}
