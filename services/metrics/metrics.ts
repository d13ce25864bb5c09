/** Metrics of the server, for `GET /metrics`. They contain no content, names or IDs. */
import { isEnd, type JobSnapshot } from "../jobs/job_store.ts";
import { getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";

// Counters, gauges and histograms, and their text for Prometheus.
//
// See https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format

/** Label names and values. */
type Labels = Readonly<Record<string, string>>;

/** One line of a metric. */
interface Sample {
  /** Suffix of the metric's name, such as `"_bucket"`. */
  ending?: string;
  labels: Labels;
  value: number;
}

/** A metric with all its labels. */
interface MetricFamily {
  name: string;
  /** One sentence without a period. */
  help: string;
  type: "counter" | "gauge" | "histogram";
  listSamples(): Iterable<Sample>;
}

/** Content type of the text. */
export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Formats metrics. Omits metrics without samples. */
export function formatFamilies(families: Iterable<MetricFamily>): string {
  const lines: string[] = [];
  for (const family of families) {
    const { name, help, type } = family;
    const own = [...family.listSamples()].map(({ ending = "", labels, value }) =>
      `${name}${ending}${formatLabels(labels)} ${formatNumber(value)}`
    );
    if (own.length === 0) continue;
    lines.push(
      `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${name} ${type}`,
      ...own,
    );
  }
  return `${lines.join("\n")}\n`;
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) =>
    `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function formatNumber(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}

/** A value per combination of labels. Beyond a limit, all others share one, with the value `other` for each label. */
class Series<Value> {
  readonly #entries = new Map<string, { labels: Labels; value: Value }>();

  constructor(readonly maxSeries: number, readonly create: () => Value) {}

  get(labels: Labels): { labels: Labels; value: Value } {
    const key = Object.values(labels).join("\0");
    let entry = this.#entries.get(key);
    if (entry !== undefined) return entry;
    const others = Object.fromEntries(Object.keys(labels).map((name) => [name, "other"]));
    const otherKey = Object.values(others).join("\0");
    if (this.#entries.size >= this.maxSeries && key !== otherKey) return this.get(others);
    entry = { labels, value: this.create() };
    this.#entries.set(key, entry);
    return entry;
  }

  list(): Iterable<{ labels: Labels; value: Value }> {
    return this.#entries.values();
  }
}

/** A number that only grows, by labels. */
export class Counter implements MetricFamily {
  readonly type = "counter";
  readonly #series: Series<number>;

  /** @param maxSeries Maximum number of combinations of labels. */
  constructor(readonly name: string, readonly help: string, maxSeries = Infinity) {
    this.#series = new Series(maxSeries, () => 0);
  }

  add(labels: Labels, by = 1): void {
    this.#series.get(labels).value += by;
  }

  listSamples(): Iterable<Sample> {
    return this.#series.list();
  }
}

/** A number that is read on request. */
export class Gauge implements MetricFamily {
  readonly type = "gauge";

  constructor(readonly name: string, readonly help: string, readonly listSamples: () => Iterable<Sample>) {}
}

interface Distribution {
  /** Per bucket, not cumulative; the last one is above all bounds. */
  counts: number[];
  sum: number;
}

/** Distribution of values over buckets, by labels. */
export class Histogram implements MetricFamily {
  readonly type = "histogram";
  readonly #series: Series<Distribution>;

  /**
   * @param bounds Upper bounds of the buckets, ascending; a bucket for everything above is added.
   * @param maxSeries Maximum number of combinations of labels.
   */
  constructor(readonly name: string, readonly help: string, readonly bounds: readonly number[], maxSeries = Infinity) {
    this.#series = new Series(maxSeries, () => ({ counts: new Array(bounds.length + 1).fill(0), sum: 0 }));
  }

  observe(labels: Labels, value: number): void {
    const { value: entry } = this.#series.get(labels);
    const index = this.bounds.findIndex((bound) => value <= bound);
    entry.counts[index < 0 ? this.bounds.length : index]!++;
    entry.sum += value;
  }

  *listSamples(): Generator<Sample> {
    for (const { labels, value: { counts, sum } } of this.#series.list()) {
      let count = 0;
      for (const [index, own] of counts.entries()) {
        count += own;
        const le = formatNumber(this.bounds[index] ?? Infinity);
        yield { ending: "_bucket", labels: { ...labels, le }, value: count };
      }
      yield { ending: "_sum", labels, value: sum };
      yield { ending: "_count", labels, value: count };
    }
  }
}

/** Dependencies of `Metrics`. */
export interface MetricsDeps {
  version: string;
  log: Log;
  jobs: { list(): JobSnapshot[] };
  /** Path of the database. */
  databasePath: string;
  /** Measures the data folder in bytes by kind, by walking the disk. */
  measureData(): Promise<Record<string, number>>;
  now(): number;
}

/** A completed request. */
export interface AnsweredRequest {
  method: string;
  /** Pattern of the route, without ids. */
  route: string;
  status: number;
  seconds: number;
}

/** Maximum number of combinations of method, route and status. With those below, the text stays under 100 kB. */
const MAX_REQUEST_SERIES = 360;
/** Maximum number of areas: what comes first in the path of a route. */
const MAX_AREAS = 36;
/** Bounds in seconds. A streaming request counts until its head. */
const REQUEST_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const DELAY_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
/** How often the delay of the event loop is measured. */
const TICK_MS = 500;
/** Maximum age of the data sizes. Walking a large folder on a slow disk takes seconds. */
const SIZES_AGE_MS = 10 * 60 * 1000;

/** The metrics of an open server. */
export class Metrics {
  readonly #deps: MetricsDeps;
  readonly #requests = new Counter("parlor_http_requests_total", "Answered requests", MAX_REQUEST_SERIES);
  readonly #durations = new Histogram(
    "parlor_http_request_duration_seconds",
    "Time until the head of the answer",
    REQUEST_BOUNDS,
    MAX_AREAS,
  );
  readonly #tokens = new Counter("parlor_tokens_total", "Tokens as counted by the model servers");
  readonly #delays = new Histogram(
    "parlor_event_loop_delay_seconds",
    "How much later than planned a timer fires",
    DELAY_BOUNDS,
  );
  readonly #startedAtMs: number;
  readonly #timer: ReturnType<typeof setInterval>;
  #streams = 0;
  #sizes: { values: Record<string, number>; atMs: number } | undefined;
  #measuring: Promise<void> | undefined;

  constructor(deps: MetricsDeps) {
    this.#deps = deps;
    // A rate needs the value before the first tokens.
    for (const kind of ["prompt", "completion"]) this.#tokens.add({ kind }, 0);
    this.#startedAtMs = deps.now();
    let dueMs = performance.now() + TICK_MS;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      this.#delays.observe({}, Math.max(0, nowMs - dueMs) / 1000);
      dueMs = nowMs + TICK_MS;
    }, TICK_MS);
  }

  /** Counts a request. */
  countRequest({ method, route, status, seconds }: AnsweredRequest): void {
    this.#requests.add({ method, route, status: String(status) });
    this.#durations.observe({ area: getArea(route) }, seconds);
  }

  /** Counts a reply that a model server streams. Returns a function to call at its end. */
  startStream(): () => void {
    this.#streams++;
    return () => void this.#streams--;
  }

  /** Counts tokens of one call. */
  addTokens(kind: "prompt" | "completion", count: number): void {
    if (Number.isFinite(count) && count > 0) this.#tokens.add({ kind }, count);
  }

  /** Returns all metrics as text. Never walks the data folder: its sizes are measured in the background and cached. */
  async render(): Promise<string> {
    this.#refreshSizes();
    const databaseBytes = await measureFile(this.#deps.databasePath);
    const one = (value: number) => [{ labels: {}, value }];
    const { version, jobs, now } = this.#deps;
    const list = jobs.list();
    return formatFamilies([
      new Gauge("parlor_build_info", "Always 1; the label has the version", () => [{ labels: { version }, value: 1 }]),
      new Gauge(
        "parlor_start_time_seconds",
        "Start of the server, in seconds since 1970",
        () => one(this.#startedAtMs / 1000),
      ),
      new Gauge("parlor_resident_memory_bytes", "Memory of the process", () => one(Deno.memoryUsage().rss)),
      this.#requests,
      this.#durations,
      new Gauge("parlor_streams_active", "Replies that model servers stream now", () => one(this.#streams)),
      this.#tokens,
      new Gauge("parlor_jobs", "Tasks in the list, which has ended ones for 7 days", () => countJobs(list)),
      new Gauge(
        "parlor_jobs_wait_seconds",
        "How long the oldest waiting task of a kind has waited",
        () => listLongestWaits(list, now()),
      ),
      this.#delays,
      new Gauge("parlor_database_bytes", "Size of the database with its log", () => one(databaseBytes)),
      new Gauge(
        "parlor_data_bytes",
        "Size of the data by kind, measured every 10 minutes",
        () => Object.entries(this.#sizes?.values ?? {}).map(([kind, value]) => ({ labels: { kind }, value })),
      ),
    ]);
  }

  /** Ends the measurements. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#measuring;
  }

  #refreshSizes(): void {
    const nowMs = this.#deps.now();
    if (this.#measuring !== undefined || (this.#sizes && Math.abs(nowMs - this.#sizes.atMs) < SIZES_AGE_MS)) return;
    this.#measuring = this.#deps.measureData().then((values) => {
      this.#sizes = { values, atMs: nowMs };
    }, (error) => {
      this.#deps.log("warn", "Can't measure the data for /metrics", { error: getErrorMessage(error) });
    }).finally(() => this.#measuring = undefined);
  }
}

/** Returns the area of a route: `/api/conversations`. A histogram of each route would make the text ten times as large. */
function getArea(route: string): string {
  const [, first = "", second] = route.split("/");
  return first === "api" && second !== undefined ? `/api/${second}` : `/${first}`;
}

async function measureFile(databasePath: string): Promise<number> {
  const sizes = ["", "-wal"].map((ending) => Deno.stat(databasePath + ending).then(({ size }) => size, () => 0));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

function countJobs(jobs: JobSnapshot[]) {
  const counts = new Map<string, { labels: { kind: string; state: string }; value: number }>();
  for (const { kind, state } of jobs) {
    const key = `${kind} ${state}`;
    const entry = counts.get(key);
    if (entry === undefined) counts.set(key, { labels: { kind, state }, value: 1 });
    else entry.value++;
  }
  return counts.values();
}

function listLongestWaits(jobs: JobSnapshot[], nowMs: number) {
  const waits = new Map<string, number>();
  for (const { kind, state, createdAtMs } of jobs) {
    if (isEnd(state)) continue;
    const waitMs = state === "queued" ? Math.max(0, nowMs - createdAtMs) : 0;
    waits.set(kind, Math.max(waits.get(kind) ?? 0, waitMs));
  }
  return [...waits].map(([kind, waitMs]) => ({ labels: { kind }, value: waitMs / 1000 }));
}
