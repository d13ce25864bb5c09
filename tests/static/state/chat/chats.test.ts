import type { ConversationSummary, Page, RunningReply } from "../../../../static/src/api/types.ts";
import { beforeEach, expect, test } from "vitest";
import type { Api } from "../../../../static/src/api/api.ts";
import { Chats } from "../../../../static/src/state/chat/chats.ts";

const item = (changes: Partial<ConversationSummary> = {}) =>
  ({
    id: "c1",
    title: "Plain",
    snippet: "",
    character_ids: [],
    updated_at: "2026-01-01T00:00:00.000Z",
    ...changes,
  }) as ConversationSummary;

/** Requests that wait for the test's response. */
let lists: PromiseWithResolvers<Page<ConversationSummary>>[];
let changes: PromiseWithResolvers<void>[];
let replies: PromiseWithResolvers<RunningReply[]>[];
let chats: Chats;
beforeEach(() => {
  [lists, changes, replies] = [[], [], []];
  const waiting = <T>(all: PromiseWithResolvers<T>[]) => {
    all.push(Promise.withResolvers<T>());
    return all.at(-1)!.promise;
  };
  chats = new Chats({
    listConversations: () => waiting(lists),
    changeConversation: () => waiting(changes),
    listReplies: () => waiting(replies),
  } as unknown as Api);
});

const answer = (n: number, ...items: ConversationSummary[]) => lists[n]!.resolve({ items, next_cursor: null });
const listed = async (...items: ConversationSummary[]) => {
  const refreshed = chats.refresh();
  answer(lists.length - 1, ...items);
  await refreshed;
};

test("a list requested before a change was accepted doesn't undo it", async () => {
  await listed(item());
  const refreshed = chats.refresh();
  const changed = chats.change("c1", { folder: "Letters" });
  changes[0]!.resolve();
  await changed;
  answer(1, item());
  await refreshed;
  expect(chats.items.value).toEqual([item({ folder: "Letters" })]);
  await listed(item({ folder: "Elsewhere" }));
  expect(chats.items.value).toEqual([item({ folder: "Elsewhere" })]);
});

test("applies pending changes, in order, to a list that arrives", async () => {
  await listed(item());
  const first = chats.change("c1", { title: "One", pinned: true });
  const second = chats.change("c1", { title: "Two" });
  await listed(item());
  expect(chats.items.value).toEqual([item({ title: "Two", pinned: true })]);
  expect(changes, "requests at the same time may arrive in any order").toHaveLength(1);
  changes[0]!.resolve();
  await first;
  changes[1]!.resolve();
  await second;
  await listed(item({ title: "Three" }));
  expect(chats.items.value).toEqual([item({ title: "Three" })]);
});

test("reverts a refused change, and later lists don't have it", async () => {
  await listed(item());
  const refreshed = chats.refresh();
  const changed = chats.change("c1", { pinned: true });
  changes[0]!.reject(new Error("full"));
  await expect(changed).rejects.toThrow("full");
  answer(1, item());
  await refreshed;
  expect(chats.items.value).toEqual([item()]);
});

test("the load that started last wins, whichever response arrives last", async () => {
  const older = chats.refresh();
  await listed(item({ title: "Newer" }));
  answer(0, item({ title: "Older" }));
  await older;
  expect(chats.items.value).toEqual([item({ title: "Newer" })]);
});

test("a reply that has ended isn't shown as running, although an older list arrives last", async () => {
  const [started, ended] = [chats.refreshReplies(), chats.refreshReplies()];
  replies[1]!.resolve([]);
  expect(await ended).toEqual([]);
  const running: RunningReply = {
    assistant_message_id: "m1",
    conversation_id: "c1",
    started_at: "2026-01-01T00:00:00.000Z",
    status: "streaming",
    is_waiting: false,
    pending_calls: [],
  };
  replies[0]!.resolve([running]);
  expect(await started).toEqual([]);
  expect([...chats.replyingIds.value]).toEqual([]);
});
