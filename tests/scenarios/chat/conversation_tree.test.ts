/**
 * The tree of a conversation against a model in memory: two clients that edit, switch, delete, restore, save and are answered
 * at random. Seeded; a failure names its last steps.
 * @slow A server is compared with a model after each of thousands of steps.
 */
import { expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../../helpers/app/child_server.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { sample } from "../../helpers/files/sample.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { TreeWalk, type WalkedServer } from "../../helpers/app/tree_walk.ts";

/** Steps of one walk in the process of the test, and against a server that is killed. */
const EACH = sample(300, 1_620);
const KILLED = sample(60, 300);
const SEEDS = [1, 2, 3, 4, 5, 6];
/** What every walk does at least once. */
const DONE = [
  "edit",
  "switch",
  "restore",
  "put",
  "undo",
  "send",
  "regenerate",
  "failed regenerate",
  "removeFrom",
  "during a reply",
];

/** Activates a connection to the fake. Titles and summaries are off, so that it is called only for replies. */
async function connect({ request }: WalkedServer, llm: FakeLlm): Promise<void> {
  const connection = { id: "double", name: "Double", kind: "openai", base_url: llm.url, model: "fake-model" };
  const requests: [method: string, path: string, body?: unknown][] = [
    ["PATCH", "/api/settings", { auto_title: false, auto_summary: false }],
    ["PUT", "/api/connections", connection],
    ["POST", "/api/connections/double/activate"],
  ];
  for (const [method, path, body] of requests) {
    const answer = await request(method, path, body);
    if (!answer.ok) throw new Error(await answer.text());
    await answer.body?.cancel();
  }
}

async function walkInProcess(seed: number): Promise<TreeWalk> {
  await using app = await openTestApp();
  await using llm = await openFakeLlm();
  const server: WalkedServer = {
    request: (method, path, body, headers) => app.request(method, path, body as Record<string, unknown>, { headers }),
    restart: () => app.restart(),
    isKilled: false,
  };
  await connect(server, llm);
  const walk = new TreeWalk(server, llm, `c${seed}`, seed);
  await walk.go(EACH.count);
  return walk;
}

test(`matches a model of the tree after each random step of ${SEEDS.length} walks: ${EACH} steps`, async () => {
  // In parallel, because a walk mostly waits for the disk.
  const walks = await Promise.all(SEEDS.map(walkInProcess));
  for (const walk of walks) {
    for (const name of DONE) expect(walk.done.get(name), name).toBeGreaterThan(0);
  }
}, 900_000);

test(`matches the model after kills during replies and writes: ${KILLED} steps`, async () => {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
  await using llm = await openFakeLlm();
  let child: ChildServer | undefined;
  try {
    child = await startChildServer({ dataDir });
    const server: WalkedServer = {
      request: (method, path, body, headers) => child!.request(method, path, body, { headers }),
      async restart() {
        await child!.kill("SIGKILL");
        child = await startChildServer({ dataDir });
      },
      isKilled: true,
    };
    await connect(server, llm);
    const walk = new TreeWalk(server, llm, "killed", 7);
    await walk.go(KILLED.count);
    expect(walk.done.get("restart")).toBeGreaterThan(0);
  } finally {
    await child?.kill("SIGKILL");
    await Deno.remove(dataDir, { recursive: true });
  }
}, 900_000);
