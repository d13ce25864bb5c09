/** Changes since a revision. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, beginReply, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { countRows, idsOf, range, readConversation, say, type StoredMessage } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
  await put(range(5).map((i) => say(`m${i}`)));
});
afterEach(() => app[Symbol.asyncDispose]());

interface Changes {
  revision: number;
  changed: string[];
  removed: string[];
  order_changed: boolean;
}

const C1 = "/api/conversations/c1";
const put = (messages: unknown[]) => app.put(C1, { title: "Chat", messages });
const read = () => readConversation(app);
const since = async (revision: number): Promise<Changes> =>
  await (await app.get(`${C1}/changes?since=${revision}`)).json();
const NOTHING = { changed: [], removed: [], order_changed: false };

test("lists nothing for the current revision, and only the message that was edited, added or removed", async () => {
  expect(await since(1)).toEqual({ ...NOTHING, revision: 1 });
  await app.patch(`${C1}/messages/m1`, { content: "edited" });
  expect(await since(1)).toEqual({ ...NOTHING, revision: 2, changed: ["m1"] });
  await app.post(`${C1}/messages`, { message: say("n1"), after: "m2" });
  await app.delete(`${C1}/messages/m4`);
  expect(await since(1)).toEqual({ ...NOTHING, revision: 4, changed: ["m1", "n1"], removed: ["m4"] });
  expect(await since(2)).toEqual({ ...NOTHING, revision: 4, changed: ["n1"], removed: ["m4"] });
  expect(await since(3)).toEqual({ ...NOTHING, revision: 4, removed: ["m4"] });
  const answer = await app.get(`${C1}/changes?since=4`);
  expect(answer.headers.get("etag")).toBe('"4"');
});

test("lists what a save of the whole conversation changes, and a move sets order_changed alone", async () => {
  const { messages } = await read();
  const [m0, m1, m2, m3, m4] = messages;
  await put([m0, m1, { ...m2, content: "edited" }, m4, say("n1")]);
  expect(await since(1)).toEqual({ revision: 2, changed: ["n1", "m2"], removed: ["m3"], order_changed: false });
  const saved = (await read()).messages;
  await put(saved.toReversed());
  expect(await since(2)).toEqual({ ...NOTHING, revision: 3, order_changed: true });
  await put(saved.toReversed());
  expect(await since(3)).toEqual({ ...NOTHING, revision: 4 });
  await app.patch(C1, { title: "Renamed" });
  expect(await since(4)).toEqual({ ...NOTHING, revision: 5 });
  await app.post(`${C1}/revisions/1/restore`);
  const all = await since(1);
  expect([...all.changed].sort()).toEqual(["m2", "m3"]);
  expect(all.removed).toEqual([]);
  expect(m3!.id).toBe("m3");
});

test("omits messages added and removed since, and lists a restored one", async () => {
  await app.post(`${C1}/messages`, { message: say("n1") });
  await app.delete(`${C1}/messages/n1`);
  expect(await since(1)).toEqual({ ...NOTHING, revision: 3 });
  await app.delete(`${C1}/messages/m1?following=true`);
  expect((await since(1)).removed).toEqual(["m1", "m2", "m3", "m4"]);
  const [item] = await (await app.get("/api/trash")).json();
  await app.post(`/api/trash/${item.id}/restore`);
  expect(await since(1)).toEqual({ ...NOTHING, revision: 5, changed: ["m1", "m2", "m3", "m4"] });
});

test("lists a reply at its start and end, with no revision in between", async () => {
  await using llm = await openFakeLlm();
  const { call, reply } = await beginReply(app, llm, "Hel");
  expect(await since(1)).toEqual({ ...NOTHING, revision: 2, changed: ["u1", "a1"] });
  await call.emit("lo");
  expect((await since(2)).revision).toBe(2);
  await call.finish();
  await reply;
  expect(await since(2)).toEqual({ ...NOTHING, revision: 3, changed: ["a1"] });
  llm.switches.manual = "off";
  await gather(await ask(app, 1, { action: "regenerate" }));
  await app.patch(`${C1}/messages/a1`, { active_variant: 0 });
  expect(await since(3)).toEqual({ ...NOTHING, revision: 6, changed: ["a1"] });
});

test("lists a message whose versions a save replaces", async () => {
  const [m0, ...rest] = (await read()).messages;
  await put([{ ...m0, variants: [{ content: m0!.content }, { content: "other" }] }, ...rest]);
  expect((await since(1)).changed).toEqual(["m0"]);
  const saved = (await read()).messages;
  await put([{ ...saved[0], variants: [{ content: m0!.content }, { content: "another" }] }, ...rest]);
  expect((await since(2)).changed).toEqual(["m0"]);
});

test("returns 410 for a future revision and one beyond the log, also after a restart", async () => {
  const answers = async (revision: number) => {
    const answer = await app.get(`${C1}/changes?since=${revision}`);
    return [answer.status, (await answer.json()).error?.code];
  };
  expect(await answers(2)).toEqual([410, "gone"]);
  expect(await answers(0)).toEqual([410, "gone"]);
  expect((await app.get(`${C1}/changes?since=-1`)).status).toBe(400);
  expect((await app.get(`${C1}/changes?since=x`)).status).toBe(400);
  expect((await app.get(`${C1}/changes`)).status).toBe(400);
  expect((await app.get("/api/conversations/none/changes?since=1")).status).toBe(404);
  for (const i of range(205)) await app.patch(C1, { title: `Title ${i}` });
  expect(countRows(app, "change")).toBe(200);
  expect(await answers(5)).toEqual([410, "gone"]);
  await app.restart();
  expect(await since(6)).toEqual({ ...NOTHING, revision: 206 });
  await put(range(4_000).map((i) => say(`n${i}`)));
  expect(await answers(206), "a change too large to be listed").toEqual([410, "gone"]);
  expect(countRows(app, "change")).toBe(0);
  await app.delete(C1);
  await app.delete("/api/trash");
});

test("a client that reloads the listed messages has the server's state", async () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const held = new Map<string, StoredMessage>();
  const load = async () => {
    const { messages, revision } = await read();
    held.clear();
    for (const message of messages) held.set(message.id, message);
    return revision;
  };
  let revision = await load();
  let count = 0;
  const change = async () => {
    const { messages } = await read();
    const mid = messages[random(Math.max(1, messages.length))]?.id;
    const kind = random(7);
    if (kind === 0 || mid === undefined) await app.post(`${C1}/messages`, { message: say(`x${count++}`) });
    else if (kind === 1) await app.post(`${C1}/messages`, { message: say(`x${count++}`), after: mid });
    else if (kind === 2) await app.patch(`${C1}/messages/${mid}`, { content: `edit ${count++}` });
    else if (kind === 3) await app.delete(`${C1}/messages/${mid}`);
    else if (kind === 4) {
      const [item] = await (await app.get("/api/trash")).json();
      if (item !== undefined) await app.post(`/api/trash/${item.id}/restore`);
    } else if (kind === 5) {
      const left = messages.filter(() => random(4) > 0);
      await put([...left.slice(random(3)), say(`x${count++}`)]);
    } else await put([...messages.slice(2), ...messages.slice(0, 2)]);
  };
  for (const _ of range(40)) {
    for (const _ of range(1 + random(4))) await change();
    const { changed, removed, order_changed, revision: present } = await since(revision);
    const before = [...held.keys()];
    for (const mid of removed) expect(held.delete(mid) || true).toBe(true);
    for (const mid of changed) held.set(mid, await (await app.get(`${C1}/messages/${mid}`)).json());
    const { messages, revision: now } = await read();
    expect(present).toBe(now);
    expect(new Map([...held].sort())).toEqual(
      new Map(messages.map((message): [string, StoredMessage] => [message.id, message]).sort()),
    );
    const stayed = idsOf(messages).filter((mid) => before.includes(mid) && !changed.includes(mid));
    if (!order_changed) expect(stayed).toEqual(before.filter((mid) => stayed.includes(mid)));
    revision = await load();
  }
}, 300_000);

test("lists the messages that an edit or a switch of versions adds to and removes from the path", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await put([say("u1"), say("r1", "one", "assistant"), say("u2"), say("r2", "two", "assistant")]);
  const edit = { action: "edit", messages: [{ role: "user", content: "other" }] };
  const at = async () => (await read()).revision;
  const before = await at();
  await gather(await ask(app, 1, { ...edit, user_message_id: "u1", assistant_message_id: "b1" }));
  const edited = await since(before);
  expect([edited.changed.sort(), edited.removed.sort()]).toEqual([["b1", "u1"], ["r1", "r2", "u2"]]);
  const onOther = await at();
  await app.patch(`${C1}/messages/u1`, { active_variant: 0 });
  const back = await since(onOther);
  expect([back.changed.sort(), back.removed]).toEqual([["r1", "r2", "u1", "u2"], ["b1"]]);
  expect(back.order_changed).toBe(false);
  const onFirst = await at();
  await app.post(`${C1}/revisions/${onFirst - 1}/restore`);
  await app.patch(`${C1}/messages/u1`, { active_variant: 1 });
  const path = idsOf((await read()).messages);
  expect((await since(onFirst)).removed.filter((mid) => path.includes(mid))).toEqual([]);
  const beforeSave = await at();
  await put([...(await read()).messages, say("n1")]);
  expect(await since(beforeSave)).toEqual({ ...NOTHING, revision: beforeSave + 1, changed: ["n1"] });
  await app.delete(`${C1}/messages/u1`);
  expect((await since(beforeSave + 1)).removed.sort(), "what isn't on the path isn't listed").toEqual([
    "b1",
    "n1",
    "u1",
  ]);
  const [item] = await (await app.get("/api/trash")).json();
  await app.post(`/api/trash/${item.id}/restore`);
  expect((await since(beforeSave + 2)).changed.sort()).toEqual(["b1", "n1", "u1"]);
});

test("returns 410 for a switch that changes more messages than an entry can hold", async () => {
  await using llm = await openFakeLlm();
  await useModel(app, llm);
  await put(range(500).map((i) => say(`m${i}`)));
  const body = { action: "edit", messages: [{ role: "user", content: "other" }] };
  const { revision } = await read();
  await gather(await ask(app, 1, { ...body, user_message_id: "m1", assistant_message_id: "b1" }));
  expect((await app.get(`${C1}/changes?since=${revision}`)).status).toBe(410);
});
