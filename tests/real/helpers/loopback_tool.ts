/** Starts a server that a script of tests/real/tools installed, on a free port of 127.0.0.1. */
import { fileURLToPath } from "node:url";
import { freePort } from "./free_port.ts";

/** A running server. Disposing of it stops it. */
export interface LoopbackTool extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Stops it early. Can be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a server.
 *
 * @param script Name in tests/real/tools: `"speech.sh"`.
 * @param installed The folder that was given to its `install`.
 * @param port A free one unless given.
 */
export async function startTool(
  script: string,
  installed: string,
  port = freePort(),
): Promise<LoopbackTool> {
  const path = fileURLToPath(new URL(`../tools/${script}`, import.meta.url));
  const run = async (...args: string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("bash", { args: [path, ...args] }).output();
    if (!success) throw new Error(`${script} ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
    return new TextDecoder().decode(stdout).trim();
  };
  const stop = async () => void await run("stop", installed);
  return { url: await run("start", installed, String(port)), stop, [Symbol.asyncDispose]: stop };
}
