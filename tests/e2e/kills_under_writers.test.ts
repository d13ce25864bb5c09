import { expect, test } from "vitest";
import { startChildServer } from "../helpers/app/child_server.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { RestlessAsker, RestlessWriter } from "../helpers/processes/restless_writer.ts";
import { sample } from "../helpers/files/sample.ts";

const KILLS = sample(6, 200);
const [WRITERS, ASKERS] = [16, 4];
/** Under load, the first write takes about 30 ms. Longer delays find nothing new. */
const MAX_LIFE_MS = 500;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test(
  `every acknowledged write exists after each kill: ${KILLS} at random moments, under 20 writers`,
  { tags: ["D02"], timeout: 120_000 + KILLS.count * 60_000 },
  async () => {
    await using llm = await openFakeLlm({ switches: { words: 30, delay_between: 2 } });
    const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
    try {
      const writers = [
        ...Array.from({ length: WRITERS }, (_, n) => new RestlessWriter(n)),
        ...Array.from({ length: ASKERS }, (_, n) => new RestlessAsker(n)),
      ];
      for (let kill = 0; kill <= KILLS.count; kill++) {
        await using server = await startChildServer({ dataDir });
        if (kill === 0) {
          const connection = { id: "double", kind: "openai", base_url: llm.url, model: "fake-model" };
          await server.json("PUT", "/api/connections", connection);
          await server.json("POST", "/api/connections/double/activate");
        }
        await Promise.all(writers.map((writer) => writer.check(server)));
        if (kill === KILLS.count) break;
        const writing = Promise.all(writers.map((writer) => writer.write(server)));
        const death = new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * MAX_LIFE_MS));
        await Promise.race([death, writing]);
        // The first run lasts until every writer has acknowledged data, however busy the machine is.
        while (kill === 0 && writers.some(({ acknowledged }) => acknowledged === 0)) await sleep(10);
        await server.kill("SIGKILL");
        await writing;
      }
      expect(Math.min(...writers.map(({ acknowledged }) => acknowledged))).toBeGreaterThan(0);
    } finally {
      await Deno.remove(dataDir, { recursive: true });
    }
  },
);
