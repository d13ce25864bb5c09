/**
 * Long runs against one data folder. Each ends with 1 when it fails; `--write` puts its figures into docs/benchmarks.md.
 *
 * `deno task soak --minutes N`: writers and askers for as long as was asked, through kills, stops, full disks and a model
 * server that drops or dawdles. After each life of the server every acknowledged write has to be there; over the last, long
 * one what it holds in memory has to stay the same.
 *
 * `deno task soak --requests N`: writers, askers and readers on one server without trouble until so many requests were
 * answered, 200,000 for a busy day. What it holds in memory has to stay the same.
 */
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { RestlessAsker, RestlessReader, RestlessWriter } from "../helpers/processes/restless_writer.ts";
import { fill } from "../helpers/processes/storage_small_disk.ts";
import { freePort } from "../real/helpers/free_port.ts";
import { growthOf, inspectFlags, MemoryRecord, openProbe, residentBytes } from "./memory.ts";
import { writeSoakSection } from "./report.ts";

const [WRITERS, ASKERS, READERS] = [12, 4, 4];
/** Share of the time that goes into lives that end by force; the rest is one life, over which memory is watched. */
const SHORT_LIVES = 0.6;
const MAX_LIFE_MS = 12_000;
const DISK_MIB = 768;
/** Beyond this what the server holds has grown over the long life, and over a busy day. */
const [MAX_GROWTH, MAX_DAY_GROWTH] = [1.15, 1.05];
/** Between two looks at what it holds, each of which collects its garbage. */
const LOOK_EVERY_MS = 10_000;
/** Looks over a busy day. */
const DAY_LOOKS = 60;
/** Questions in one chat of a busy day. */
const PER_CHAT = 100;

const option = (name: string) =>
  Deno.args.includes(name)
    ? Number(/^(\d+(?:\.\d+)?)$/.exec(Deno.args[Deno.args.indexOf(name) + 1] ?? "")?.[1])
    : undefined;
const minutes = option("--minutes");
const requests = option("--requests");
if ((minutes === undefined) === (requests === undefined) || !((minutes ?? requests)! > 0)) {
  console.error("Usage: deno task soak --minutes N [--write]\n       deno task soak --requests N [--write]");
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
const perChat = requests === undefined ? Infinity : PER_CHAT;
const clients = [
  ...Array.from({ length: WRITERS }, (_, n) => new RestlessWriter(n)),
  ...Array.from({ length: ASKERS }, (_, n) => new RestlessAsker(n, { perChat })),
  ...Array.from({ length: requests === undefined ? 0 : READERS }, (_, n) => new RestlessReader(n)),
];
const dataDir = await Deno.makeTempDir({ prefix: "parlor-soak-" });
const isMounted = requests === undefined && await mount(dataDir);
if (!isMounted && requests === undefined) {
  console.warn("SKIPPED full disks: only root on Linux can mount a small file system");
}
const usual = { words: 30, delay_between: 2, fail: "none", after: 0 } as const;
const llm = await openFakeLlm({ switches: usual });
try {
  if (requests === undefined) await runThroughTrouble(Date.now() + minutes! * 60_000);
  else await runDay(requests);
} finally {
  await llm[Symbol.asyncDispose]();
  if (isMounted) await new Deno.Command("umount", { args: [dataDir] }).output();
  await Deno.remove(dataDir, { recursive: true });
}

async function runThroughTrouble(endMs: number): Promise<void> {
  const shortUntilMs = endMs - (endMs - Date.now()) * (1 - SHORT_LIVES);
  while (Date.now() < shortUntilMs) {
    await live(async (server) => {
      await trouble(Math.min(MAX_LIFE_MS * (0.2 + 0.8 * Math.random()), shortUntilMs - Date.now() + 500));
      const isKilled = Math.random() < 0.7;
      counts[isKilled ? "kills" : "stops"]++;
      await server.kill(isKilled ? "SIGKILL" : "SIGTERM");
    });
  }
  const memory = new MemoryRecord();
  const port = freePort();
  await live(async (server) => {
    using probe = await openProbe(server, port);
    for (let lookAt = Date.now() + LOOK_EVERY_MS; Date.now() < endMs;) {
      const until = trouble(Math.min(MAX_LIFE_MS, endMs - Date.now()));
      for (let isOver = false; !isOver;) {
        memory.notePeak(await residentBytes(server.pid));
        if (Date.now() >= lookAt) {
          memory.held.push(await probe.look());
          lookAt = Date.now() + LOOK_EVERY_MS;
        }
        isOver = await Promise.race([until.then(() => true), sleep(1_000).then(() => false)]);
      }
    }
  }, inspectFlags(port));
  await live(() => sleep(0)); // which checks what the long life left
  await report("minutes", [
    `${minutes} minutes, ${confirmedRequests()} writes and replies confirmed, all of them found`,
    Object.entries(counts).map(([what, count]) => `${what}: ${count}`).join(", "),
  ], { memory, during: "the long run", atMost: MAX_GROWTH });
}

async function runDay(requests: number): Promise<void> {
  const memory = new MemoryRecord();
  const port = freePort();
  const beganAt = Date.now();
  await live(async (server) => {
    using probe = await openProbe(server, port);
    let isOver = false;
    // A trash that fills for a week would only measure how much was deleted.
    const emptying = (async () => {
      while (!isOver) {
        await (await server.request("DELETE", "/api/trash")).body?.cancel();
        await sleep(1_000);
      }
    })();
    for (let looks = 1; looks <= DAY_LOOKS;) {
      await sleep(1_000);
      memory.notePeak(await residentBytes(server.pid));
      if (confirmedRequests() < requests * looks / DAY_LOOKS) continue;
      memory.held.push(await probe.look());
      looks++;
    }
    isOver = true;
    await emptying;
  }, inspectFlags(port));
  const seconds = Math.round((Date.now() - beganAt) / 1000);
  await live(() => sleep(0));
  await report("requests", [
    `${confirmedRequests()} requests in ${seconds} s: ${WRITERS} writers, ${ASKERS} askers and ${READERS} readers; refused: ${counts.refused}`,
  ], { memory, during: "the run", atMost: MAX_DAY_GROWTH });
}

async function report(
  way: "minutes" | "requests",
  lines: string[],
  { memory: { held, peakBytes }, during, atMost }: { memory: MemoryRecord; during: string; atMost: number },
): Promise<void> {
  const heap = growthOf(held.map(({ heapBytes }) => heapBytes));
  const resident = growthOf(held.map(({ residentBytes }) => residentBytes));
  const formatGrowth = ({ beginMib, endMib, ratio }: typeof heap) =>
    `${beginMib} MiB, then ${endMib} MiB (${ratio.toFixed(2)} ×)`;
  const all = [
    ...lines,
    `memory in the second and the last third of ${during}: heap ${formatGrowth(heap)}, the process ${
      formatGrowth(resident)
    }`,
    `peak memory of the process, including garbage: ${Math.round(peakBytes / 1024 / 1024)} MiB`,
  ];
  for (const line of all) console.log(line);
  if (Deno.args.includes("--write")) await writeSoakSection(way, all);
  if (Math.max(heap.ratio, resident.ratio) <= atMost) return;
  console.error(`What the server holds has grown beyond ${atMost} ×`);
  Deno.exitCode = 1;
}

/** Returns how many requests the server has answered with success so far. */
function confirmedRequests(): number {
  return clients.reduce((sum, client) => sum + client.acknowledged, 0);
}

/** One process from start to end, with all writers running. */
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
  client: RestlessWriter | RestlessAsker | RestlessReader,
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
