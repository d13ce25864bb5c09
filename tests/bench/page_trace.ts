/** A page's use of processor time, from the browser's trace. */
import type { Page } from "playwright-core";

/** One event of a trace; times in microseconds. */
interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds. */
  ts: number;
  id2?: { local?: string };
  args?: { name?: string; frame_reporter?: { state?: string } };
  /** Processor time. */
  tdur?: number;
}

/** Processor time of a page's main thread, in milliseconds. Unlike wall-clock time, it doesn't depend on other programs. */
export interface TaskFigures {
  longestMs: number;
  totalMs: number;
  /** For each presented frame, the time from its deadline to the screen. Wall-clock time, so other programs affect it. */
  framesMs: number[];
}

/** Returns the durations of a page's tasks during the work. */
export async function tasksOf(page: Page, work: () => Promise<unknown>): Promise<TaskFigures> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  // Their declared type, objects of strings, is wrong.
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value as unknown as TraceEvent[]));
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: {
      includedCategories: [
        "devtools.timeline",
        "disabled-by-default-devtools.timeline",
        "disabled-by-default-devtools.timeline.frame",
      ],
    },
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
  const framesMs = findFrames(events, new Set([...renderers].map((thread) => Number(thread.split(" ")[0]))));
  return { longestMs: Math.max(0, ...times), totalMs: times.reduce((sum, ms) => sum + ms, 0), framesMs };
}

/**
 * Finds the frames that were shown. The compositor reports each from its begin to its presentation.
 *
 * @see https://chromium.googlesource.com/chromium/src/+/main/cc/metrics/compositor_frame_reporter.h
 */
function findFrames(events: readonly TraceEvent[], processes: ReadonlySet<number>): number[] {
  const begun = new Map<string, number>();
  const framesMs: number[] = [];
  for (const { name, ph, pid, ts, id2, args } of events.toSorted((a, b) => a.ts - b.ts)) {
    if (name !== "PipelineReporter" || !processes.has(pid)) continue;
    const id = `${pid} ${id2?.local}`;
    if (ph === "b" && args?.frame_reporter?.state?.startsWith("STATE_PRESENTED")) begun.set(id, ts);
    const beganAt = ph === "e" ? begun.get(id) : undefined;
    if (beganAt === undefined) continue;
    framesMs.push((ts - beganAt) / 1000);
    begun.delete(id);
  }
  return framesMs;
}
