import { expect, test } from "vitest";
import { Search } from "../../../../services/conversations/search/search.ts";
import { FoldedTexts, parseQuery } from "../../../../services/conversations/search/search_text.ts";
import { scan, type ScanPage } from "../../../../services/conversations/search/search_scan.ts";
import { createOpener, createSealer, type Opener, type PurposeSealer } from "../../../../services/crypto/sealer.ts";
import { openReader } from "../../../../services/storage/database/database.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../../helpers/files/stored_database.ts";

const never = new AbortController().signal;

/** Conversations with a unique word each and "needle" in all; every message fills one block. */
async function openFilled(conversations: number, messages: number): Promise<TestApp> {
  const app = await openTestApp();
  for (let c = 0; c < conversations; c++) {
    await (await app.services.conversations()).conversations.put(`c${c}`, {
      title: `Chat ${c}`,
      messages: Array.from({ length: messages }, (_, m) => ({
        id: `c${c}m${m}`,
        role: "user",
        content: `needle word${c}x${m} ${"filler ".repeat(2200)}`,
      })),
    });
  }
  return app;
}

async function sealerOf(app: TestApp, purpose = "conversations"): Promise<PurposeSealer> {
  return createSealer(await Deno.readFile(`${app.dataDir}/storage-key`)).forPurpose(purpose);
}

async function openSearch(app: TestApp, options: { startWorker?: () => Worker; idleMs?: number } = {}) {
  const search = new Search({
    path: `${app.dataDir}/app.db`,
    sealer: await sealerOf(app),
    documentSealer: await sealerOf(app, "documents"),
    ...options,
  });
  return Object.assign(search, { [Symbol.asyncDispose]: () => search.close() });
}

/** Runs SQL on the file, as a user could. */
function tamper(app: TestApp, sql: string): void {
  using file = openStoredDatabase(app.dataDir);
  file.exec(sql);
}

const startOurs = () =>
  new Worker(new URL("../../../../services/conversations/search/search_worker.ts", import.meta.url), {
    type: "module",
  });

test(
  "skips blocks and titles that can't be opened",
  { tags: ["K02", "K03"] },
  async () => {
    await using app = await openFilled(3, 3);
    tamper(
      app,
      "UPDATE block SET sealed = x'0102' WHERE rowid IN (SELECT rowid FROM block WHERE conversation_id = 'c0' LIMIT 1)",
    );
    tamper(app, "UPDATE block SET conversation_id = 'c0', position = 9 WHERE conversation_id = 'c1' AND position = 2");
    tamper(app, "UPDATE conversation SET summary = substr(summary, 1, length(summary) - 1) WHERE id = 'c2'");
    const { items, next_cursor } = await (await app.services.search()).search({ query: "needle" }, never);
    expect(items.map((hit) => "message_id" in hit ? hit.message_id : "").sort()).toEqual([
      "c0m1",
      "c0m2",
      "c1m0",
      "c1m2",
      "c2m0",
      "c2m1",
      "c2m2",
    ]);
    expect(items.find((hit) => "conversation_id" in hit && hit.conversation_id === "c2")!.title).toBe("");
    expect(next_cursor).toBeNull();
  },
);

test("returns a page with a hit without waiting for rare ones, which its cursor reaches", async () => {
  await using app = await openFilled(2, 700);
  const seldom = { query: "word1x699 needle" };
  const first = await (await app.services.search()).search(seldom, never);
  expect(first.items.map((hit) => "message_id" in hit ? hit.message_id : "")).toEqual(["c1m699"]);
  expect(first.next_cursor).not.toBeNull();
  const pages = [first];
  while (pages.at(-1)!.next_cursor !== null) {
    pages.push(await (await app.services.search()).search({ ...seldom, cursor: pages.at(-1)!.next_cursor! }, never));
  }
  expect(pages.slice(1).flatMap((page) => page.items)).toEqual([]);
});

test("stops a scan when its client disconnects", async () => {
  await using app = await openFilled(1, 300);
  const inner = await createOpener((await sealerOf(app)).copyKey());
  const client = new AbortController();
  let openedBlocks = 0;
  const opener: Opener = {
    open(place, sealed) {
      if (place.table === "block" && ++openedBlocks === 20) client.abort();
      return inner.open(place, sealed);
    },
  };
  const reader = openReader(`${app.dataDir}/app.db`);
  try {
    await expect(scan({ reader, opener }, { terms: ["nowhere"] }, client.signal)).rejects.toThrow("aborted");
    const atEnd = openedBlocks;
    expect(atEnd).toBeLessThan(80);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(openedBlocks).toBe(atEnd);
    const whole = await scan({ reader, opener: inner }, { terms: ["nowhere"] }, never);
    expect(whole).toEqual({ items: [] } satisfies ScanPage);
  } finally {
    reader.close();
  }
});

test("opens only blocks that may hold a hit once their conversation was searched", async () => {
  await using app = await openFilled(3, 5);
  const { conversations, conversationWriter, conversationTrash } = await app.services.conversations();
  await conversations.put("c9", {
    title: "",
    messages: [{ id: "c9m0", role: "user", content: "Größe „needle“ ＷＩＤＥ" }],
  });
  const inner = await createOpener((await sealerOf(app)).copyKey());
  let openedBlocks = 0;
  const opener: Opener = {
    open(place, sealed) {
      if (place.table === "block") openedBlocks++;
      return inner.open(place, sealed);
    },
  };
  const reader = openReader(`${app.dataDir}/app.db`);
  const folded = new FoldedTexts();
  const find = async (...terms: string[]) => {
    openedBlocks = 0;
    const { items, next, unreadable } = await scan({ reader, opener, folded }, { terms }, never);
    expect([next, unreadable]).toEqual([undefined, undefined]);
    return [items.map((hit) => hit.message_id), openedBlocks];
  };
  try {
    expect(await find("nowhere")).toEqual([[], 16]);
    expect(await find("nowhere")).toEqual([[], 0]);
    expect(await find("word1x3")).toEqual([["c1m3"], 1]);
    expect(await find(...parseQuery("größe wide"))).toEqual([["c9m0"], 1]);
    await conversationWriter.editMessage("c1", "c1m3", (before) => ({ ...before, content: "word1x9" }));
    expect(await find("word1x3")).toEqual([[], 5]);
    expect(await find("word1x9")).toEqual([["c1m3"], 1]);
    await conversationTrash.remove("c0");
    expect(await find("word0x3")).toEqual([[], 0]);
  } finally {
    reader.close();
  }
});

test("answers a short search before a long one that started earlier", async () => {
  await using app = await openFilled(1, 700);
  await (await app.services.conversations()).conversations.put("short", {
    title: "",
    messages: [{ id: "s1", content: "needle" }],
  });
  const order: string[] = [];
  const long = (await app.services.search()).search({ query: "nowhere" }, never).then(() => order.push("long"));
  const short = (await app.services.search()).search({ query: "needle", conversationId: "short" }, never)
    .then(() => order.push("short"));
  await Promise.all([long, short]);
  expect(order).toEqual(["short", "long"]);
});

test("rejects with the signal's reason, before and during a search", async () => {
  await using app = await openFilled(1, 300);
  const reason = new Error("gone");
  await expect((await app.services.search()).search({ query: "x" }, AbortSignal.abort(reason))).rejects.toBe(reason);
  const client = new AbortController();
  const answer = (await app.services.search()).search({ query: "nowhere" }, client.signal);
  client.abort(reason);
  await expect(answer).rejects.toBe(reason);
});

test("fails running searches when the Worker dies, and starts another for the next", async () => {
  await using app = await openFilled(1, 2);
  let started = 0;
  const broken = new URL("../../../helpers/processes/search_broken_worker.ts", import.meta.url);
  await using search = await openSearch(app, {
    startWorker: () => started++ === 0 ? new Worker(broken, { type: "module" }) : startOurs(),
  });
  await expect(search.search({ query: "needle" }, never)).rejects.toMatchObject({ code: "internal" });
  expect((await search.search({ query: "needle" }, never)).items).toHaveLength(2);
});

test("reports an unreadable database, and recovers with it", async () => {
  await using app = await openFilled(1, 2);
  const path = `${app.dataDir}/elsewhere.db`;
  const search = new Search({ path, sealer: await sealerOf(app), documentSealer: await sealerOf(app, "documents") });
  try {
    await expect(search.search({ query: "needle" }, never)).rejects.toMatchObject({ code: "internal" });
    tamper(app, `VACUUM INTO '${path}'`);
    expect((await search.search({ query: "needle" }, never)).items).toHaveLength(2);
  } finally {
    await search.close();
  }
});

test("ends an idle Worker, and starts a new one for the next search", async () => {
  await using app = await openFilled(1, 2);
  let started = 0;
  const ended = Promise.withResolvers<void>();
  await using search = await openSearch(app, {
    idleMs: 0,
    startWorker() {
      started++;
      const worker = startOurs();
      const terminate = worker.terminate.bind(worker);
      worker.terminate = () => {
        terminate();
        ended.resolve();
      };
      return worker;
    },
  });
  expect((await search.search({ query: "needle" }, never)).items).toHaveLength(2);
  await ended.promise;
  expect((await search.search({ query: "needle" }, never)).items).toHaveLength(2);
  expect(started).toBe(2);
});

test("ends running searches on close, and rejects later ones", async () => {
  await using app = await openFilled(1, 300);
  const search = await openSearch(app);
  const answer = search.search({ query: "nowhere" }, never);
  const closed = search.close();
  await expect(answer).rejects.toMatchObject({ code: "not_available" });
  await closed;
  await expect(search.search({ query: "needle" }, never)).rejects.toMatchObject({ code: "not_available" });
});
