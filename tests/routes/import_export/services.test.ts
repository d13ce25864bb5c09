import { expect, test } from "vitest";
import { importReport } from "../../helpers/app/imported.ts";
import { dataUrl, picture } from "../../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

// deno-lint-ignore no-explicit-any -- a conversation as it came
async function onlyChat(app: TestApp): Promise<any> {
  const chats = await (await app.get("/api/conversations")).json();
  expect(chats).toHaveLength(1);
  return chats[0];
}

async function variantsOf(app: TestApp, id: string, mid: string): Promise<string[]> {
  const variants = await (await app.get(`/api/conversations/${id}/messages/${mid}/variants`)).json();
  return variants.map(({ content }: { content: string }) => content);
}

/** A conversation as ChatGPT exports it: the reply has two versions, and the chat went on after the first. */
function chatGptExport() {
  const said = (id: string, parent: string, children: string[], role: string, text: string, more: object = {}) => ({
    [id]: {
      id,
      parent,
      children,
      message: {
        author: { role },
        create_time: 1_700_000_000,
        content: { content_type: "text", parts: [text] },
        ...more,
      },
    },
  });
  const mapping = {
    root: { id: "root", message: null, parent: null, children: ["s"] },
    ...said("s", "root", ["q"], "system", "", {}),
    ...said("q", "s", ["a1", "a2"], "user", 'What is "[{,"?'),
    ...said("a1", "q", ["q2"], "assistant", "A bracket."),
    ...said("q2", "a1", [], "user", "And?"),
    ...said("a2", "q", [], "assistant", "Signs.", { metadata: { model_slug: "gpt-x" } }),
  };
  const times = { create_time: 1_700_000_000.5, update_time: 1_700_000_100 };
  return { title: "Signs", conversation_id: "k1", current_node: "a2", mapping, ...times };
}

const allChats = async (app: TestApp) => await (await app.get("/api/conversations")).json();
const said = ({ messages }: { messages: { content: string }[] }) => messages.map(({ content }) => content);

test("imports the shown path of a ChatGPT tree, other replies as variants, and a branch at a reply as a linked chat", async () => {
  await using app = await openTestApp();
  const bytes = json([chatGptExport(), { title: "Empty", mapping: {} }]);
  const report = await importReport(app, "kind=chatgpt&name=conversations.json", bytes);
  expect(report.counts.conversation.added).toBe(2);
  expect(report.lines.map(({ level, source }) => [level, source])).toEqual([["refused", "conversations.json#1"]]);
  const chats = await allChats(app);
  const chat = chats.find((one: Record<string, unknown>) => one.forked_from === undefined);
  expect(chat).toMatchObject({ title: "Signs", created_at: "2023-11-14T22:13:20.500Z" });
  expect(chat.messages.map(({ role, content }: Record<string, string>) => [role, content])).toEqual([
    ["user", 'What is "[{,"?'],
    ["assistant", "Signs."],
  ]);
  expect(chat.messages[1]).toMatchObject({ model: "gpt-x", variant_count: 2, active_variant: 1 });
  expect(await variantsOf(app, chat.id, chat.messages[1].id)).toEqual(["A bracket.", "Signs."]);
  const branch = chats.find((one: Record<string, unknown>) => one.forked_from !== undefined);
  expect(said(branch)).toEqual(['What is "[{,"?', "A bracket.", "And?"]);
  expect(branch.forked_from).toEqual({ conversation_id: chat.id, message_id: chat.messages[0].id });
  const { forks } = await (await app.get(`/api/conversations/${chat.id}/branches`)).json();
  expect(forks).toMatchObject([{ conversation_id: branch.id, message_id: chat.messages[0].id }]);
  const again = await importReport(app, "kind=chatgpt&name=conversations.json", bytes);
  expect(again.counts.conversation).toMatchObject({ added: 0, present: 2 });
});

test("imports edited messages of a ChatGPT tree as versions with what follows each, and drops nothing", async () => {
  await using app = await openTestApp();
  const node = (id: string, parent: string, role: string) => ({
    id,
    parent,
    children: [],
    message: { author: { role }, content: { content_type: "text", parts: [id] } },
  });
  // Two first messages: the reply to the second has two versions, and the other continues in two versions.
  const mapping = Object.fromEntries([
    { id: "root", message: null, parent: null, children: ["q1", "q2"] },
    ...[node("q1", "root", "user"), node("a1", "q1", "assistant"), node("r1", "a1", "user")],
    ...[node("q2", "root", "user"), node("a2", "q2", "assistant"), node("b2", "q2", "assistant")],
    ...[
      node("x1", "b2", "user"),
      node("x2", "b2", "user"),
      node("y1", "x1", "assistant"),
      node("y2", "x2", "assistant"),
    ],
  ].map((one) => [one.id, one]));
  await importReport(app, "kind=chatgpt&name=conversations.json", json([{ id: "k", current_node: "a2", mapping }]));
  const chats = await allChats(app);
  expect(chats).toHaveLength(2);
  const chat = chats.find((one: Record<string, unknown>) => one.forked_from === undefined);
  expect(said(chat)).toEqual(["q2", "a2"]);
  const path = `/api/conversations/${chat.id}`;
  expect(await variantsOf(app, chat.id, chat.messages[0].id)).toEqual(["q1", "q2"]);
  expect((await app.patch(`${path}/messages/${chat.messages[0].id}`, { active_variant: 0 })).status).toBe(200);
  expect(said(await (await app.get(path)).json())).toEqual(["q1", "a1", "r1"]);
  const branch = chats.find((one: Record<string, unknown>) => one.forked_from !== undefined);
  expect(said(branch)).toEqual(["q2", "b2", "x2", "y2"]);
  await app.patch(`/api/conversations/${branch.id}/messages/${branch.messages[2].id}`, { active_variant: 0 });
  expect(said(await (await app.get(`/api/conversations/${branch.id}`)).json())).toEqual(["q2", "b2", "x1", "y1"]);
});

test("a tree with a cycle ends", async () => {
  await using app = await openTestApp();
  const chat = chatGptExport();
  Object.assign((chat.mapping as Record<string, object>).q!, { parent: "a2" });
  const report = await importReport(app, "kind=chatgpt&name=conversations.json", json([chat]));
  expect(report.counts.conversation.added).toBe(2);
});

test("Open WebUI's chats are imported with reasoning, images and alternative replies", async () => {
  await using app = await openTestApp();
  const at = { timestamp: 1_700_000_000 };
  const messages = {
    u: {
      id: "u",
      parentId: null,
      childrenIds: ["a", "b"],
      role: "user",
      content: "Look.",
      ...at,
      files: [{ type: "image", url: dataUrl(picture(4)) }],
    },
    a: { id: "a", parentId: "u", childrenIds: [], role: "assistant", content: "A boat.", model: "m:1", ...at },
    b: {
      id: "b",
      parentId: "u",
      childrenIds: [],
      role: "assistant",
      model: "m:2",
      ...at,
      content: '<details type="reasoning" done="true">\n<summary>Thought</summary>\n&gt; Hm.\n</details>\nA ship.',
    },
  };
  const record = {
    id: "w1",
    title: "Boats",
    chat: { history: { messages, currentId: "b" }, params: { system: "Be." } },
  };
  const report = await importReport(app, "kind=openwebui&name=export.json", json([record]));
  expect(report.lines).toEqual([]);
  const chat = await onlyChat(app);
  expect(chat).toMatchObject({ title: "Boats", system_prompt: "Be." });
  const [first, second] = chat.messages;
  expect(first.content[1].image_url.url).toMatch(/^\/api\/attachments\//);
  expect(second).toMatchObject({ content: "A ship.", reasoning: "Hm.", model: "m:2", active_variant: 1 });
  expect(await variantsOf(app, chat.id, second.id)).toEqual(["A boat.", "A ship."]);
});

test("a truncated file is named, and what precedes the cut is imported", async () => {
  await using app = await openTestApp();
  const whole = json([chatGptExport(), chatGptExport()]);
  const cut = whole.slice(0, whole.length - 30);
  const report = await importReport(app, "kind=chatgpt&name=conversations.json", cut);
  expect(report.counts.conversation.added).toBe(2);
  expect(report.lines).toContainEqual(expect.objectContaining({ level: "refused", source: "conversations.json" }));
});
