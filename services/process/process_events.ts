/** Events that would end the process: uncaught errors, and the hangup signal of its terminal. */
import { getErrorTrace } from "../errors.ts";
import type { Log } from "../log.ts";

/**
 * Logs uncaught errors and unhandled rejections, which would otherwise end everyone's replies. Call it once at startup.
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
 * Returns whether this process ignores SIGHUP, as if started with `nohup`. Call it before SIGHUP gets a listener, which
 * would replace that.
 *
 * The runtime doesn't report it, but a child inherits ignored signals (POSIX, exec): if it survives its own SIGHUP, the
 * signal is ignored.
 */
export async function isHangupIgnored(): Promise<boolean> {
  const script = "kill -HUP $$; echo ignored";
  try {
    const child = new Deno.Command("sh", { args: ["-c", script], stdin: "null", stdout: "piped", stderr: "null" });
    const { stdout } = await child.output();
    return new TextDecoder().decode(stdout).trim() === "ignored";
  } catch {
    return false; // An image without a shell, which doesn't have nohup, either
  }
}
