/** Keeps the process alive after an uncaught error, which would otherwise end everyone's replies. */
import { traceOf } from "../errors.ts";
import type { Log } from "../log.ts";

/**
 * Logs uncaught errors and unhandled rejections. Call once, at the start.
 *
 * @param scope The global scope; tests pass their own.
 */
export function containDefects(log: Log, scope: Pick<EventTarget, "addEventListener"> = globalThis): void {
  const contain = (event: Event, thrown: unknown) => {
    event.preventDefault();
    log("error", "Uncaught error", { error: traceOf(thrown) });
  };
  scope.addEventListener("unhandledrejection", (event) => contain(event, (event as PromiseRejectionEvent).reason));
  scope.addEventListener("error", (event) => contain(event, (event as ErrorEvent).error));
}
