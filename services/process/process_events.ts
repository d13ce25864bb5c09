/** Events that would end the process: uncaught errors, and the hangup of its terminal. */
import { getErrorTrace } from "../errors.ts";
import type { Log } from "../log.ts";

/**
 * Logs uncaught errors and unhandled rejections, which would otherwise end everyone's replies. Call once, at the start.
 *
 * @param scope The global scope; tests pass their own.
 */
export function containDefects(log: Log, scope: Pick<EventTarget, "addEventListener"> = globalThis): void {
  const contain = (event: Event, thrown: unknown) => {
    event.preventDefault();
    log("error", "Uncaught error", { error: getErrorTrace(thrown) });
  };
  scope.addEventListener("unhandledrejection", (event) => contain(event, (event as PromiseRejectionEvent).reason));
  scope.addEventListener("error", (event) => contain(event, (event as ErrorEvent).error));
}

/**
 * Returns whether this process ignores SIGHUP, as `nohup` starts programs. To be asked before SIGHUP gets a listener, which
 * would replace that.
 *
 * The runtime doesn't tell, but a child inherits what is ignored (POSIX, exec): one that survives its own SIGHUP has.
 */
export async function isHangupIgnored(): Promise<boolean> {
  const script = "kill -HUP $$; echo ignored";
  try {
    const child = new Deno.Command("sh", { args: ["-c", script], stdin: "null", stdout: "piped", stderr: "null" });
    const { stdout } = await child.output();
    return new TextDecoder().decode(stdout).trim() === "ignored";
  } catch {
    return false; // an image without a shell, which has no nohup either
  }
}
