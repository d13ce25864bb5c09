/**
 * Memory that large requests take in the real server, in its own process. Linux reports the peak.
 * @slow Servers read and write hundreds of megabytes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forgetPeak, peakBytes, residentBytes } from "../bench/process_facts.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { isLong, sample } from "../helpers/files/sample.ts";
import { importChats, largeConversation, unreadAnswers, zipOfChats } from "../helpers/app/large_requests.ts";

const MIB = 1024 * 1024;
/** See docs/decisions/0033-memory-of-large-requests.md. */
const MOST_OVER_IDLE_BYTES = 400 * MIB;
/** Tens of megabytes are stored and read; a busy machine takes minutes. */
const LIMIT_MS = 10 * 60_000;
const LARGE_BYTES = 46_000_000;
/** Answers that none of them reads would take gigabytes if they were gathered. */
const CLIENTS = sample(100, 400);
const isLinux = Deno.build.os === "linux";

/** Returns how far the memory of a server rises above its idle size during `run`. */
async function risenBytes(server: ChildServer, run: () => Promise<void>): Promise<number> {
  // The first requests of a page load the server's code.
  for (const path of ["/api/conversations?view=summary", "/api/settings", "/api/chat/replies"]) {
    await (await server.request("GET", path)).text();
  }
  const idleBytes = await residentBytes(server.pid);
  await forgetPeak(server.pid);
  await run();
  return await peakBytes(server.pid) - idleBytes;
}

async function withServers(use: (start: () => Promise<ChildServer>) => Promise<void>): Promise<void> {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
  try {
    await use(() => startChildServer({ dataDir }));
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
}

/** Saves a conversation and discards the body of the response. */
async function saved(server: ChildServer, id: string, body: Uint8Array<ArrayBuffer>): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${server.url}/api/conversations/${id}`, { method: "PUT", headers, body });
  await drain(answer);
  return answer;
}

async function drain(answer: Response): Promise<number> {
  let size = 0;
  for await (const piece of answer.body ?? []) size += piece.length;
  return size;
}

/** Many small messages and few large ones; those between behave like one of them. */
const MESSAGES: [string, number][] = [
  ["messages of 200 bytes", 200],
  ["messages of 1 MB", 1_000_000],
  ...(isLong() ? [["messages of 3.8 KB", 3_800] as [string, number]] : []),
];

test.runIf(isLinux).each(MESSAGES)(
  "three conversations of 38 MB saved at once stay within 400 MiB: %s",
  { tags: ["F07"], timeout: LIMIT_MS },
  async (_name, messageChars) => {
    await withServers(async (start) => {
      await using server = await start();
      const bodies = [1, 2, 3].map((seed) => largeConversation(38_000_000, { seed, messageChars }));
      const risen = await risenBytes(server, async () => {
        const answers = await Promise.all(bodies.map((body, n) => saved(server, `large-${n}`, body)));
        const statuses = answers.map(({ status }) => status);
        expect(statuses).toContain(201);
        for (const { status, headers } of answers) {
          expect([201, 503]).toContain(status);
          if (status === 503) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
        }
        // Nothing acknowledged is lost.
        const list = await server.json<{ items: { id: string }[] }>("GET", "/api/conversations?view=summary");
        const acknowledged = statuses.flatMap((status, n) => status === 201 ? [`large-${n}`] : []);
        expect(list.items.map(({ id }) => id).sort()).toEqual(acknowledged);
      });
      expect(risen / MIB).toBeLessThan(MOST_OVER_IDLE_BYTES / MIB);
    });
  },
);

/** Messages of imported chats. The shorter ones take longer to import. */
const IMPORTED: [string, string][] = [
  ["messages of 6 KB", "la ".repeat(2_000)],
  ...(isLong() ? [["messages of 2 KB", "la ".repeat(680)] as [string, string]] : []),
];

test.runIf(isLinux).each(IMPORTED)(
  "an import of 40 chats of 20 MB, packed into 1 MB, stays within 400 MiB: %s",
  { tags: ["F07"], timeout: LIMIT_MS },
  async (_name, text) => {
    await withServers(async (start) => {
      await using server = await start();
      const zip = await zipOfChats(40, 20_000_000, { text, level: 9 });
      const risen = await risenBytes(server, async () => {
        const { state, added } = await importChats(server.url, zip);
        expect(state).toBe("done");
        expect(added).toBeGreaterThan(10); // those beyond a hundred times the size of the zip are refused
      });
      expect(risen / MIB).toBeLessThan(MOST_OVER_IDLE_BYTES / MIB);
    });
  },
);

describe.runIf(isLinux)("conversations of 46 MB", () => {
  let dataDir: string;

  beforeAll(async () => {
    dataDir = await Deno.makeTempDir({ prefix: "parlor-test-" });
    await using server = await startChildServer({ dataDir });
    for (const n of [0, 1, 2]) {
      const body = largeConversation(LARGE_BYTES, { seed: n + 1, hasVersions: n === 2 });
      expect((await saved(server, `large-${n}`, body)).status).toBe(201);
    }
    await server.kill("SIGTERM");
  }, LIMIT_MS);
  afterAll(() => Deno.remove(dataDir, { recursive: true }));

  test.each([
    { path: "/api/conversations?variants=1", sizeBytes: 3 * LARGE_BYTES },
    { path: "/api/conversations/large-0", sizeBytes: LARGE_BYTES },
    ...(isLong()
      ? [
        { path: "/api/conversations", sizeBytes: 2.4 * LARGE_BYTES },
        { path: "/api/conversations/large-2?variants=1", sizeBytes: LARGE_BYTES },
      ]
      : []),
  ])(
    `${CLIENTS} clients that read nothing of $path stay within 400 MiB until another has read everything, and others get responses`,
    { tags: ["L04"], timeout: LIMIT_MS },
    async ({ path, sizeBytes }) => {
      await using server = await startChildServer({ dataDir });
      const risen = await risenBytes(server, async () => {
        using _unread = await unreadAnswers(Number(new URL(server.url).port), path, CLIENTS.count);
        const small = await server.request("PATCH", "/api/conversations/large-0", { title: "Renamed" });
        expect([small.status, await drain(small) > 0]).toEqual([200, true]);
        const list = await server.json<{ items: unknown[] }>("GET", "/api/conversations?view=summary");
        expect(list.items).toHaveLength(3);
        const whole = await server.request("GET", path);
        expect(whole.status).toBe(200);
        expect(await drain(whole)).toBeGreaterThan(sizeBytes);
      });
      expect(risen / MIB).toBeLessThan(MOST_OVER_IDLE_BYTES / MIB);
    },
  );
});
