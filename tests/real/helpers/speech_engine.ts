/** The real speech engine (Piper, espeak-ng), as tests/real/tools/speech.sh installed it. */
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../tools/speech.sh", import.meta.url));

/** A running engine. Disposing of it stops it. */
export interface SpeechEngine extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
}

/** Starts the engine on a free port. @param installed The folder that was given to `speech.sh install`. */
export async function startSpeech(installed: string): Promise<SpeechEngine> {
  const run = async (...args: string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("bash", { args: [SCRIPT, ...args] }).output();
    if (!success) throw new Error(`speech.sh ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
    return new TextDecoder().decode(stdout).trim();
  };
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const url = await run("start", installed, String(port));
  return { url, [Symbol.asyncDispose]: async () => void await run("stop", installed) };
}
