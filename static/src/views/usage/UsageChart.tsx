/** A small bar chart of one figure over time. The table below the charts has the same figures. */
import { formatDate } from "./usage_figures.ts";

/** One bar. */
export interface Bar {
  /** First and last day: `"2026-05-03"`. */
  from: string;
  to: string;
  value: number;
}

/** More bars than this are too thin to see: several days are one bar. */
const MAX_BARS = 92;

/** Sums days in bars of a week each if there are many. @param sum Returns the value of several days. */
export function toBars<Day extends { date: string }>(days: readonly Day[], sum: (days: Day[]) => number): Bar[] {
  const size = days.length > MAX_BARS ? 7 : 1;
  const bars: Bar[] = [];
  // The last bar ends today.
  for (let end = days.length; end > 0; end -= size) {
    const own = days.slice(Math.max(0, end - size), end);
    bars.unshift({ from: own[0]!.date, to: own.at(-1)!.date, value: sum(own) });
  }
  return bars;
}

/** The chart. @param props.format Formats a value. */
export function UsageChart(
  { title, bars, format, describe }: {
    title: string;
    bars: readonly Bar[];
    format: (value: number) => string;
    describe: (highest: string, day: string) => string;
  },
) {
  const highest = bars.reduce((best, bar) => bar.value > best.value ? bar : best, bars[0]!);
  const [first, last] = [bars[0]!, bars.at(-1)!];
  return (
    <figure class="usage-chart">
      <figcaption>
        <b>{title}</b>
        <span class="muted">{format(highest.value)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${bars.length} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${describe(format(highest.value), formatSpan(highest))}`}
      >
        {bars.map((bar, index) => {
          const height = highest.value === 0 ? 0 : bar.value / highest.value * 100;
          // A day with little still has a bar that can be seen.
          const shown = bar.value > 0 ? Math.max(height, 2) : 0;
          return (
            <g key={bar.from}>
              <title>{`${formatSpan(bar)}: ${format(bar.value)}`}</title>
              <rect class="usage-day" x={index} y={0} width={1} height={100} />
              <rect class="usage-bar" x={index + 0.1} y={100 - shown} width={0.8} height={shown} />
            </g>
          );
        })}
      </svg>
      <p class="usage-dates muted" aria-hidden="true">
        <span>{formatDate(first.from)}</span>
        <span>{formatDate(last.to)}</span>
      </p>
    </figure>
  );
}

function formatSpan({ from, to }: Bar): string {
  return from === to ? formatDate(from) : `${formatDate(from)} – ${formatDate(to)}`;
}
