/** The real llama.cpp server with its small model, as tests/real/tools/llm.sh installed it. */
import { fileURLToPath } from "node:url";
import { freePort } from "./free_port.ts";

const SCRIPT = fileURLToPath(new URL("../tools/llm.sh", import.meta.url));

/** The port on which the search for servers expects llama.cpp. */
export const USUAL_PORT = 8080;

/** A running llama.cpp server. Disposing of it stops it. */
export interface LlamaServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Number of running replies. */
  busySlots(): Promise<number>;
  /** Kills it. */
  kill(): Promise<void>;
}

/**
 * Starts a server with files of its own, so that several can run from one installation.
 *
 * @param installed The folder that was given to `llm.sh install`.
 * @param options.flags Further flags of llama-server.
 */
export async function startLlama(
  installed: string,
  options: { port?: number; flags?: string[] } = {},
): Promise<LlamaServer> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-llm-" });
  for (const part of ["bin", "model"]) await Deno.symlink(`${installed}/${part}`, `${folder}/${part}`);
  const port = options.port ?? freePort();
  const run = async (...args: string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("bash", { args: [SCRIPT, ...args] }).output();
    if (!success) throw new Error(`llm.sh ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
    return new TextDecoder().decode(stdout).trim();
  };
  const stop = async () => {
    await run("stop", folder);
    await Deno.remove(folder, { recursive: true });
  };
  let url;
  try {
    // Its threads wait by spinning, so on busy cores one thread is several times as fast as two.
    url = await run("start", folder, String(port), "--threads", "1", ...options.flags ?? []);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    async busySlots() {
      const slots: { is_processing: boolean }[] = await (await fetch(`${url}/slots`)).json();
      return slots.filter((slot) => slot.is_processing).length;
    },
    async kill() {
      Deno.kill(Number(await Deno.readTextFile(`${folder}/llm.pid`)), "SIGKILL");
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Returns whether a port of 127.0.0.1 is free. */
export function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}
