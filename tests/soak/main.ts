/**
 * `deno task soak --minutes N [--requests N]`: writers and askers on one server for as long as was asked, through kills, stops, full disks and a
 * model that drops or dawdles. After each life every acknowledged write has to be there; over the last, long one what the server
 * holds in memory has to stay the same; that life lasts until so many requests were confirmed, if a number is given. Ends with 1 when either fails; `--write` puts the figures into docs/benchmarks.md.
 */
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/fake_llm.ts";
import { RestlessAsker, RestlessWriter } from "../helpers/processes/restless_writer.ts";
import { fill } from "../helpers/processes/storage_small_disk.ts";
import { growthOf, type HeldMemory, openProbe, PROBED, residentBytes } from "./memory.ts";
import { writeSoakSection } from "./report.ts";

const [WRITERS, ASKERS] = [12, 4];
/** Share of the time that goes into lives that end by force; the rest is one life, over which memory is watched. */
const SHORT_LIVES = 0.6;
const MAX_LIFE_MS = 12_000;
const DISK_MIB = 768;
/** Beyond this what the server holds has grown over the long life. A life of a day's requests shows a smaller growth. */
const [MAX_GROWTH, MAX_DAY_GROWTH] = [1.15, 1.05];
/** Requests of a day that count as one. */
const DAY_REQUESTS = 200_000;
/** Between two looks at what it holds, each of which collects its garbage. */
const LOOK_EVERY_MS = 10_000;

const option = (name: string) =>
  Deno.args.includes(name)
    ? Number(/^(\d+(?:\.\d+)?)$/.exec(Deno.args[Deno.args.indexOf(name) + 1] ?? "")?.[1])
    : undefined;
const minutes = option("--minutes") ?? NaN;
const requests = option("--requests") ?? 0;
if (!(minutes > 0) || Number.isNaN(requests)) {
  console.error("Usage: deno task soak --minutes N [--requests N] [--write]");
  Deno.exit(2);
}
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const counts = {
  lives: 0,
  kills: 0,
  stops: 0,
  "full disks": 0,
  "broken upstreams": 0,
  "slow upstreams": 0,
  refused: 0,
};
const clients = [
  ...Array.from({ length: WRITERS }, (_, n) => new RestlessWriter(n)),
  ...Array.from({ length: ASKERS }, (_, n) => new RestlessAsker(n)),
];
const dataDir = await Deno.makeTempDir({ prefix: "parlor-soak-" });
const isMounted = await mount(dataDir);
if (!isMounted) console.warn("SKIPPED full disks: only root on Linux can mount a small file system");
const usual = { words: 30, delay_between: 2, fail: "none", after: 0 } as const;
const llm = await openFakeLlm({ switches: usual });
try {
  await run(Date.now() + minutes * 60_000);
} finally {
  await llm[Symbol.asyncDispose]();
  if (isMounted) await new Deno.Command("umount", { args: [dataDir] }).output();
  await Deno.remove(dataDir, { recursive: true });
}

async function run(endMs: number): Promise<void> {
  const shortUntilMs = endMs - (endMs - Date.now()) * (1 - SHORT_LIVES);
  while (Date.now() < shortUntilMs) {
    await live(async (server) => {
      await trouble(Math.min(MAX_LIFE_MS * (0.2 + 0.8 * Math.random()), shortUntilMs - Date.now() + 500));
      const isKilled = Math.random() < 0.7;
      counts[isKilled ? "kills" : "stops"]++;
      await server.kill(isKilled ? "SIGKILL" : "SIGTERM");
    });
  }
  const held: HeldMemory[] = [];
  let peakBytes = 0;
  const confirmedBefore = confirmedRequests();
  const isLongOver = () => Date.now() >= endMs && confirmedRequests() - confirmedBefore >= requests;
  await live(async (server) => {
    using probe = await openProbe(server);
    for (let lookAt = Date.now() + LOOK_EVERY_MS; !isLongOver();) {
      const until = trouble(requests > 0 ? MAX_LIFE_MS : Math.min(MAX_LIFE_MS, endMs - Date.now()));
      for (let isOver = false; !isOver;) {
        peakBytes = Math.max(peakBytes, await residentBytes(server.pid));
        if (Date.now() >= lookAt) {
          held.push(await probe.look());
          lookAt = Date.now() + LOOK_EVERY_MS;
        }
        isOver = await Promise.race([until.then(() => true), sleep(1_000).then(() => false)]);
      }
    }
  }, PROBED);
  await live(() => sleep(0)); // which checks what the long life left

  const acknowledged = confirmedRequests();
  const heap = growthOf(held.map(({ heapBytes }) => heapBytes));
  const resident = growthOf(held.map(({ residentBytes }) => residentBytes));
  const formatGrowth = ({ beginMib, endMib, ratio }: typeof heap) =>
    `${beginMib} MiB, then ${endMib} MiB (${ratio.toFixed(2)} ×)`;
  const lines = [
    `${minutes} minutes, ${acknowledged} writes and replies confirmed, all of them found`,
    `${acknowledged - confirmedBefore} of them in the long run`,
    Object.entries(counts).map(([what, count]) => `${what}: ${count}`).join(", "),
    `memory in the first and the last third of the long run: heap ${formatGrowth(heap)}, the process ${
      formatGrowth(resident)
    }`,
    `peak memory of the process, including garbage: ${Math.round(peakBytes / 1024 / 1024)} MiB`,
  ];
  for (const line of lines) console.log(line);
  if (Deno.args.includes("--write")) await writeSoakSection(lines);
  const atMost = requests >= DAY_REQUESTS ? MAX_DAY_GROWTH : MAX_GROWTH;
  if (Math.max(heap.ratio, resident.ratio) <= atMost) return;
  console.error(`What the server holds has grown beyond ${atMost} ×`);
  Deno.exitCode = 1;
}

/** Returns how many writes and replies the server has confirmed so far. */
function confirmedRequests(): number {
  return clients.reduce((sum, client) => sum + client.acknowledged, 0);
}

/** One process from its start to its end, with everybody writing meanwhile. */
async function live(while_: (server: ChildServer) => Promise<void>, denoFlags: string[] = []): Promise<void> {
  await using server = await startChildServer({ dataDir, denoFlags });
  if (counts.lives++ === 0) {
    await server.json("PUT", "/api/connections", { id: "d", kind: "openai", base_url: llm.url, model: "fake-model" });
    await server.json("POST", "/api/connections/d/activate");
  }
  await Promise.all(clients.map((client) => client.check(server)));
  const life = { isOver: false };
  const writing = clients.map((client) => keepWriting(client, server, life));
  await while_(server);
  life.isOver = true;
  await server.kill();
  await Promise.all(writing);
}

/**
 * A refusal for a full disk, a broken model or a stop is an answer like another: nothing of it may be there, and the next one is tried. So
 * is that the last reply is still being settled, which a full disk delays.
 */
async function keepWriting(
  client: RestlessWriter | RestlessAsker,
  server: ChildServer,
  life: { isOver: boolean },
): Promise<void> {
  while (!life.isOver) {
    try {
      return await client.write(server);
    } catch (error) {
      if (!/answered with (409|50[02347])/.test(String(error))) throw error;
      counts.refused++;
      await sleep(20);
    }
  }
}

/** Makes trouble of one kind for a time, or none. */
async function trouble(ms: number): Promise<void> {
  const kinds = [sleep, brokenUpstream, slowUpstream, ...(isMounted ? [fullDisk] : [])];
  await kinds[Math.floor(Math.random() * kinds.length)]!(ms);
}

async function brokenUpstream(ms: number): Promise<void> {
  counts["broken upstreams"]++;
  await withSwitches({ fail: "cut", after: 10 }, ms);
}

async function slowUpstream(ms: number): Promise<void> {
  counts["slow upstreams"]++;
  await withSwitches({ delay_first: 1_500, delay_between: 50 }, ms);
}

async function withSwitches(switches: Partial<FakeLlm["switches"]>, ms: number): Promise<void> {
  const before = { ...llm.switches };
  Object.assign(llm.switches, switches);
  await sleep(ms);
  Object.assign(llm.switches, before);
}

async function fullDisk(ms: number): Promise<void> {
  counts["full disks"]++;
  await sleep(ms / 2);
  await fill(`${dataDir}/filler`);
  await sleep(Math.min(2_000, ms / 4));
  await Deno.remove(`${dataDir}/filler`);
  await sleep(ms / 4);
}

async function mount(path: string): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0) return false;
  const options = { args: ["-t", "tmpfs", "-o", `size=${DISK_MIB}m,mode=0700`, "tmpfs", path] };
  return (await new Deno.Command("mount", options).output()).success;
}
