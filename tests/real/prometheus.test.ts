/** A real Prometheus scrapes the metrics, and all queries of the dashboard work. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openTestApp } from "../helpers/app/test_app.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { realPart } from "./helpers/real_part.ts";
import { freePort } from "./helpers/free_port.ts";

const PROMETHEUS = realPart("REAL_PROMETHEUS_DIR", "prometheus.sh");
const BOARD = fileURLToPath(new URL("../../docs/grafana/parlor.json", import.meta.url));

interface Answer {
  status: string;
  data: { result: { metric: Record<string, string>; value: [number, string] }[] };
}

test.skipIf(PROMETHEUS === undefined)(
  "Prometheus scrapes the server, and the dashboard's queries have results",
  async () => {
    await using folder = await tempFolder();
    await using app = await openTestApp({ config: { metrics: true } });
    await app.get("/api/settings");
    await app.get("/metrics");
    const lint = new Deno.Command(`${PROMETHEUS}/bin/promtool`, {
      args: ["check", "metrics"],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const input = lint.stdin.getWriter();
    await input.write(new TextEncoder().encode(await (await app.get("/metrics")).text()));
    await input.close();
    const { code, stderr } = await lint.output();
    expect([code, new TextDecoder().decode(stderr)]).toEqual([0, ""]);

    const [shown = ""] = await readTexts("docs/guide/monitoring.md", "yaml");
    expect(shown).toContain('["localhost:8787"]');
    await Deno.writeTextFile(
      folder.file("prometheus.yml"),
      `global:\n  scrape_interval: 1s\n${shown.replace("localhost:8787", `localhost:${app.port}`)}`,
    );
    const port = freePort();
    await using _prometheus = start(`${PROMETHEUS}/bin/prometheus`, [
      `--config.file=${folder.file("prometheus.yml")}`,
      `--storage.tsdb.path=${folder.file("tsdb")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const ask = async (query: string): Promise<Answer> => {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
      return await (await fetch(url)).json();
    };
    const patient = { timeout: 60_000, interval: 500 };
    // Two scrapes, so that there are rates.
    const count = "count_over_time(parlor_streams_active[5m])";
    await expect.poll(async () => Number((await ask(count).catch(() => undefined))?.data.result[0]?.value[1]), patient)
      .toBeGreaterThan(1);
    const { panels } = JSON.parse(await Deno.readTextFile(BOARD));
    const queries: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m"))
    );
    expect(queries.length).toBeGreaterThan(9);
    // Without failures, tokens and tasks, these three have no series.
    const quiet = /status=~"5\.\."|parlor_tokens_total|parlor_jobs/;
    for (const query of queries) {
      const { status } = await ask(query);
      expect([query, status]).toEqual([query, "success"]);
      if (quiet.test(query)) continue;
      // On a busy machine, a scrape may take longer than its second; until the next one, series have no value then.
      await expect.poll(async () => [query, (await ask(query)).data.result.length > 0], patient).toEqual([query, true]);
    }
  },
  600_000,
);

function start(program: string, args: string[]): AsyncDisposable {
  const child = new Deno.Command(program, { args, stdin: "null", stdout: "null", stderr: "null" }).spawn();
  let hasEnded = false;
  child.status.then(() => hasEnded = true);
  return {
    async [Symbol.asyncDispose]() {
      if (!hasEnded) child.kill("SIGTERM");
      await child.status;
    },
  };
}
