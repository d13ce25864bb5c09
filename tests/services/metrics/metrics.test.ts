import { expect, test } from "vitest";
import type { JobSnapshot } from "../../../services/jobs/job_store.ts";
import { Counter, formatFamilies, Gauge, Histogram, Metrics } from "../../../services/metrics/metrics.ts";

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

test("thousands of routes, statuses and tasks make at most 100 kB, and none is lost", async () => {
  const jobs = Array.from({ length: 5_000 }, (_, n) => ({
    id: `${n}`,
    kind: ["download", "import", "document", "backup"][n % 4]!,
    state: ["queued", "running", "done", "failed"][n % 3]!,
    createdAtMs: 0,
  })) as unknown as JobSnapshot[];
  const metrics = new Metrics({
    version: "1.0.0",
    log: () => {},
    jobs: { list: () => jobs },
    databasePath: "/nowhere/app.db",
    measureData: () => Promise.resolve({}),
    now: () => 0,
  });
  for (let n = 0; n < 10_000; n++) {
    const route = `/api/area-of-work-${n % 100}/:conversation_id/messages/:message_id/part-${n}`;
    metrics.countRequest({ method: "DELETE", route, status: 200 + n % 300, seconds: 0.01 });
  }
  const text = await metrics.render();
  await metrics.close();
  expect(text.length).toBeLessThan(100_000);
  const sum = (name: string) =>
    text.split("\n").filter((line) => line.startsWith(`${name}{`)).reduce(
      (all, line) => all + Number(line.split(" ").at(-1)),
      0,
    );
  expect(sum("parlor_http_requests_total")).toBe(10_000);
  expect(sum("parlor_http_request_duration_seconds_count")).toBe(10_000);
  expect(text).toContain('parlor_http_requests_total{method="other",route="other",status="other"}');
});
