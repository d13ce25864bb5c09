/**
 * Counters, gauges and histograms, and their text for Prometheus.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */

/** Label names and values. */
export type Labels = Readonly<Record<string, string>>;

/** One line of a family. */
interface Sample {
  /** Ending of the family's name, such as `"_bucket"`. */
  ending?: string;
  labels: Labels;
  value: number;
}

/** A metric with all its labels. */
export interface MetricFamily {
  name: string;
  /** One sentence without a period. */
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples(): Iterable<Sample>;
}

/** Content type of the text. */
export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Formats families. A family without samples is left out. */
export function formatFamilies(families: Iterable<MetricFamily>): string {
  const lines: string[] = [];
  for (const family of families) {
    const { name, help, type } = family;
    const own = [...family.samples()].map(({ ending = "", labels, value }) =>
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

/** A number that only grows, by labels. */
export class Counter implements MetricFamily {
  readonly type = "counter";
  readonly #values = new Map<string, { labels: Labels; value: number }>();

  constructor(readonly name: string, readonly help: string) {}

  add(labels: Labels, by = 1): void {
    const key = Object.values(labels).join("\0");
    const entry = this.#values.get(key);
    if (entry === undefined) this.#values.set(key, { labels, value: by });
    else entry.value += by;
  }

  samples(): Iterable<Sample> {
    return this.#values.values();
  }
}

/** A number that is read when it is asked for. */
export class Gauge implements MetricFamily {
  readonly type = "gauge";

  constructor(readonly name: string, readonly help: string, readonly samples: () => Iterable<Sample>) {}
}

interface Distribution {
  labels: Labels;
  /** Per bucket, not cumulative; the last one is beyond all bounds. */
  counts: number[];
  sum: number;
}

/** How values are distributed over buckets, by labels. */
export class Histogram implements MetricFamily {
  readonly type = "histogram";
  readonly #distributions = new Map<string, Distribution>();

  /** @param bounds Upper bounds of the buckets, ascending; the bucket of everything beyond is added. */
  constructor(readonly name: string, readonly help: string, readonly bounds: readonly number[]) {}

  observe(labels: Labels, value: number): void {
    const key = Object.values(labels).join("\0");
    let entry = this.#distributions.get(key);
    if (entry === undefined) {
      entry = { labels, counts: new Array(this.bounds.length + 1).fill(0), sum: 0 };
      this.#distributions.set(key, entry);
    }
    const index = this.bounds.findIndex((bound) => value <= bound);
    entry.counts[index < 0 ? this.bounds.length : index]!++;
    entry.sum += value;
  }

  *samples(): Generator<Sample> {
    for (const { labels, counts, sum } of this.#distributions.values()) {
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
