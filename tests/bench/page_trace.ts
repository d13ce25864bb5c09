/** What a page does with its processor time, told by the browser's own trace. */
import type { Page } from "playwright-core";

/** One event of a trace; times in microseconds. */
interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  args?: { name?: string };
  /** Processor time. */
  tdur?: number;
}

/** Processor time of a page's main thread, in milliseconds. Unlike time on the clock it does not grow with what else runs. */
export interface TaskFigures {
  longestMs: number;
  totalMs: number;
}

/** Gives what the tasks of a page took meanwhile. */
export async function tasksOf(page: Page, work: () => Promise<unknown>): Promise<TaskFigures> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  // Typed as objects of strings, which they are not.
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value as unknown as TraceEvent[]));
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] },
  });
  await work();
  const isComplete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await isComplete;
  await session.detach();
  const renderers = new Set(
    events.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  if (renderers.size === 0) throw new Error("The trace names no main thread of a page");
  const times = events
    .filter(({ name, ph, pid, tid }) => name === "RunTask" && ph === "X" && renderers.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000);
  return { longestMs: Math.max(0, ...times), totalMs: times.reduce((sum, ms) => sum + ms, 0) };
}
