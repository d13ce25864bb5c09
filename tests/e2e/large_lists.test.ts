/**
 * Unusually large lists and conversations, on a server in its own process, whose memory is measured.
 *
 * @slow A server stores and lists thousands of items.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forgetPeak, peakBytes, residentBytes } from "../bench/process_facts.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type TempFolder, tempFolder } from "../helpers/files/storage_folder.ts";

const CONVERSATIONS = 10_000;
const LISTS = 1_000;
const MEGABYTES = 50;
const WRITERS = 16;
const MAX_GROWTH_BYTES = 400 * 1024 * 1024;
const SLOW_MS = 600_000;

describe.skipIf(Deno.build.os !== "linux")("a large library", () => {
  let home: TempFolder;
  let server: ChildServer;
  let idleBytes: number;

  beforeAll(async () => {
    home = await tempFolder();
    server = await startChildServer({ dataDir: home.file("data") });
    await server.json("GET", "/api/conversations");
    idleBytes = await residentBytes(server.pid);
    let next = 0;
    const write = async () => {
      for (let n = next++; n < CONVERSATIONS; n = next++) {
        const messages = [{ id: `m${n}`, role: "user", content: `What is chapter ${n} about?` }];
        await server.json("PUT", `/api/conversations/c${n}`, { title: `Chapter ${n}`, messages });
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, write));
  }, SLOW_MS);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await home?.[Symbol.asyncDispose]();
  });

  /** Runs an action and returns how far the server's memory rose above its idle size. */
  async function growthDuring(action: () => Promise<void>): Promise<number> {
    await forgetPeak(server.pid);
    await action();
    return await peakBytes(server.pid) - idleBytes;
  }

  test(
    `${CONVERSATIONS} conversations are listed completely within the memory limit`,
    { tags: ["L04"], timeout: SLOW_MS },
    async () => {
      const growth = await growthDuring(async () => {
        const listed = await server.json<{ id: string; messages: unknown[] }[]>("GET", "/api/conversations");
        expect(listed).toHaveLength(CONVERSATIONS);
        expect(new Set(listed.map(({ id }) => id)).size).toBe(CONVERSATIONS);
        expect(listed.every(({ messages }) => messages.length === 1)).toBe(true);
      });
      expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    },
  );

  test(`${LISTS} parallel lists are each returned completely or refused with Retry-After`, {
    tags: ["L04"],
    timeout: SLOW_MS,
  }, async () => {
    const growth = await growthDuring(async () => {
      const answers = Array.from({ length: LISTS }, async () => {
        const answer = await server.request("GET", "/api/conversations?view=summary&limit=100");
        if (answer.status === 200) expect((await answer.json()).items).toHaveLength(100);
        else {
          expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
          await answer.body?.cancel();
        }
        return answer.status;
      });
      expect((await Promise.all(answers)).filter((status) => status === 200).length).toBeGreaterThan(0);
    });
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    expect(await server.json<unknown[]>("GET", "/api/conversations")).toHaveLength(CONVERSATIONS);
  });

  test(
    `a conversation of ${MEGABYTES} MB is saved, read and listed completely within the memory limit`,
    { tags: ["L04"], timeout: SLOW_MS },
    async () => {
      const content = "0123456789abcdef".repeat(1024 * 1024 / 16);
      const messages = Array.from({ length: MEGABYTES }, (_, n) => ({ id: `b${n}`, role: "user", content }));
      const growth = await growthDuring(async () => {
        await server.json("PUT", "/api/conversations/large", { title: "Large", messages });
        const read = await server.json<{ messages: { content: string }[] }>("GET", "/api/conversations/large");
        expect(read.messages.map((message) => message.content === content)).toEqual(Array(MEGABYTES).fill(true));
        const listed = await server.json<{ id: string; messages: unknown[] }[]>("GET", "/api/conversations");
        expect(listed.find(({ id }) => id === "large")!.messages).toHaveLength(MEGABYTES);
      });
      expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    },
  );
});
