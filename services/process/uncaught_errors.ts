/** What nobody caught must not end the process: it would cut everybody else's replies. */
import { traceOf } from "../errors.ts";
import type { Log } from "../log.ts";

/**
 * Logs errors and rejections that reach the top and lets the process live. To be called once, at the start.
 *
 * @param scope The global scope; a test brings its own.
 */
export function containDefects(log: Log, scope: Pick<EventTarget, "addEventListener"> = globalThis): void {
  const contain = (event: Event, thrown: unknown) => {
    event.preventDefault();
    log("error", "Defect", { error: traceOf(thrown) });
  };
  scope.addEventListener("unhandledrejection", (event) => contain(event, (event as PromiseRejectionEvent).reason));
  scope.addEventListener("error", (event) => contain(event, (event as ErrorEvent).error));
}
