/** The real SillyTavern that tests/real/tools/sillytavern.sh installed, with its own data. */
import { freePort } from "./free_port.ts";

/** It bundles its page before it listens, which takes half a minute on a busy machine. */
const READY_WITHIN_MS = 400_000;

/** A running SillyTavern. Disposing of it ends it and removes its data. */
export interface SillyTavern extends AsyncDisposable {
  readonly url: string;
  /** The folder of its one user: `characters`, `chats`, `worlds` and so on. */
  readonly userFolder: string;
  /** Sends JSON to an endpoint and returns the JSON response. @throws {Error} for a status other than 2xx. */
  call<T>(path: string, body: unknown): Promise<T>;
  /** Sends a form to an endpoint and returns the response as text. @throws {Error} for a status other than 2xx. */
  send(path: string, form: FormData): Promise<string>;
  /** Stops it, so that everything is on disk. Its data stays until it is disposed of. */
  stop(): Promise<void>;
}

/** Starts it on a free port. @param installed The folder that was given to `sillytavern.sh install`. */
export async function startSillyTavern(installed: string): Promise<SillyTavern> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-sillytavern-" });
  const port = freePort();
  const child = new Deno.Command("node", {
    args: [
      "server.js",
      ...["--port", String(port), "--listen", "false", "--disableCsrf", "--browserLaunchEnabled", "false"],
      ...["--dataRoot", `${folder}/data`, "--configPath", `${folder}/config.yaml`],
    ],
    cwd: `${installed}/node_modules/sillytavern`,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const url = `http://127.0.0.1:${port}`;
  let [isStopped, hasEnded] = [false, false];
  child.status.then(() => hasEnded = true);
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    if (!hasEnded) child.kill("SIGKILL");
    await child.status;
  };
  const dispose = async () => {
    await stop();
    await Deno.remove(folder, { recursive: true });
  };
  try {
    await untilItAnswers(url, child.status);
  } catch (error) {
    await dispose();
    throw error;
  }
  const post = async (path: string, body: BodyInit, headers?: HeadersInit) => {
    const answer = await fetch(url + path, { method: "POST", headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`SillyTavern answered ${path} with ${answer.status}: ${text.slice(0, 200)}`);
    return text;
  };
  return {
    url,
    userFolder: `${folder}/data/default-user`,
    call: async (path, body) =>
      JSON.parse(await post(path, JSON.stringify(body), { "Content-Type": "application/json" })),
    send: (path, form) => post(path, form),
    stop,
    [Symbol.asyncDispose]: dispose,
  };
}

async function untilItAnswers(url: string, ended: Promise<Deno.CommandStatus>): Promise<void> {
  let end: Deno.CommandStatus | undefined;
  ended.then((status) => end = status);
  const until = Date.now() + READY_WITHIN_MS;
  while (Date.now() < until) {
    if (end !== undefined) throw new Error(`SillyTavern ended with code ${end.code} before it listened`);
    const answer = await fetch(`${url}/version`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error("SillyTavern did not listen in time");
}
