import { expect, test } from "vitest";
import { Counter, formatFamilies, Gauge, Histogram } from "../../../services/metrics/metrics.ts";

test("a counter adds up by its labels, and special characters are escaped", () => {
  const requests = new Counter("requests_total", "Back\\slash\nand line");
  requests.add({ route: 'a"b\\c\nd' });
  requests.add({ route: 'a"b\\c\nd' }, 2);
  requests.add({ route: "/" });
  expect(formatFamilies([requests])).toBe(
    `# HELP requests_total Back\\\\slash\\nand line
# TYPE requests_total counter
requests_total{route="a\\"b\\\\c\\nd"} 3
requests_total{route="/"} 1
`,
  );
});

test("a histogram has cumulative buckets with the bound included, a sum and a count", () => {
  const durations = new Histogram("duration_seconds", "Time", [0.1, 1]);
  for (const value of [0.1, 0.5, 3]) durations.observe({ method: "GET" }, value);
  expect(formatFamilies([durations])).toBe(
    `# HELP duration_seconds Time
# TYPE duration_seconds histogram
duration_seconds_bucket{method="GET",le="0.1"} 1
duration_seconds_bucket{method="GET",le="1"} 2
duration_seconds_bucket{method="GET",le="+Inf"} 3
duration_seconds_sum{method="GET"} 3.6
duration_seconds_count{method="GET"} 3
`,
  );
});

test("a family without samples is left out", () => {
  expect(formatFamilies([new Gauge("nothing", "None", () => [])])).toBe("\n");
});
