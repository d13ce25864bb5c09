import { unzipSync, zipSync } from "fflate";
import { expect, test } from "vitest";
import { makePrivateChat } from "../../helpers/files/exported_chat.ts";
import { fillHouse } from "../../helpers/app/full_house.ts";
import { added, importJob, importReport, NOTHING_ADDED } from "../../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

/** Fields in which an imported conversation differs from the original. */
// deno-lint-ignore no-explicit-any -- a conversation as it came
function asItWas({ revision: _, updated_at: __, imported: ___, draft_version: ____, ...conversation }: any) {
  return conversation;
}

async function seen(app: TestApp) {
  // deno-lint-ignore no-explicit-any -- answers of many shapes
  const get = async (path: string): Promise<any> => await (await app.get(path)).json();
  const untimed = (items: Record<string, unknown>[]) =>
    items.map(({ updated_at: _, created_at: __, ...item }) => item).sort((a, b) => `${a.id}` < `${b.id}` ? -1 : 1);
  const chat = await get("/api/conversations/c1");
  return {
    chat: asItWas(chat),
    variants: (await get("/api/conversations/c1/messages/a1/variants")).map(({ content }: { content: string }) =>
      content
    ),
    picture: new Uint8Array(await (await app.get("/api/attachments/boat.png")).arrayBuffer()),
    characters: untimed(await get("/api/characters?view=full")),
    personas: untimed(await get("/api/personas")),
    book: untimed([await get("/api/lorebooks/b1")]),
    preset: untimed([await get("/api/presets/s1")]),
  };
}

test("everything the owner has is exported to one zip, which another Parlor imports completely", async () => {
  await using first = await openTestApp();
  await makePrivateChat(first);
  const answer = await first.get("/api/export");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="parlor-[\d-]+\.zip"/);
  const zip = await answer.bytes();
  expect(Object.keys(unzipSync(zip))).toContain("conversations/c1.json"); // as other programs read it

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines).toEqual([]);
  expect(report.counts.conversation).toMatchObject({ added: 1, refused: 0 });
  expect(await seen(second)).toEqual(await seen(first));

  const again = await importReport(second, "kind=parlor", zip);
  for (const { added, updated, refused } of Object.values(again.counts)) {
    expect([added, updated, refused]).toEqual([0, 0, 0]);
  }
  const home = await importReport(first, "kind=parlor", zip);
  expect(added(home)).toEqual(NOTHING_ADDED);
});

test("one chat as Markdown, without hidden messages", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const answer = await app.get("/api/conversations/c1/export?format=markdown");
  expect(answer.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  expect(answer.headers.get("content-disposition")).toContain("filename*=UTF-8''Abend.md");
  const text = await answer.text();
  expect(text).toBe(
    "# Abend\n\n**Ann** · 2025-01-02 03:04\n\nGrüße.\n\n*(a picture)*\n\n**Fox** · 2025-01-02 03:05\n\nSecond.\n",
  );
});

test("one chat as JSON contains all its texts", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const chat = await (await app.get("/api/conversations/c1/export?format=json")).json();
  expect(chat.messages[1].variants.map(({ content }: { content: string }) => content)).toEqual(["First.", "Second."]);
});

test("one chat as SillyTavern's JSONL is imported again with swipes, note and times", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const file = await (await app.get("/api/conversations/c1/export?format=tavern")).bytes();
  const first = JSON.parse(new TextDecoder().decode(file).split("\n")[0]!);
  expect(first).toMatchObject({ user_name: "Ann", character_name: "Fox", chat_metadata: { note_prompt: "It rains." } });
  await importReport(app, "kind=tavern&name=Back.jsonl", file);
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  const { id } = items.find(({ title }: { title: string }) => title === "Back");
  const back = await (await app.get(`/api/conversations/${id}`)).json();
  expect(back).toMatchObject({ note: { text: "It rains.", depth: 2, role: "system" } });
  expect(back.messages.map(({ role, hidden }: { role: string; hidden?: boolean }) => [role, hidden])).toEqual([
    ["user", undefined],
    ["assistant", undefined],
    ["assistant", true],
  ]);
  expect(back.messages[1]).toMatchObject({
    variant_count: 2,
    active_variant: 1,
    created_at: "2025-01-02T03:05:00.000Z",
  });
});

test("several chats or characters go into one zip, each by its name, and what can't be read is listed", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  await app.put("/api/conversations/c2", { title: "abend", messages: [{ role: "user", content: "Hm." }] });
  await app.put("/api/characters/owl", { card: { name: "Owl/1", description: "An owl.", first_mes: "Hoo." } });
  const pack = async (body: Record<string, unknown>) => {
    const answer = await app.post("/api/export", body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="parlor-[\d-]+\.zip"/);
    const files = unzipSync(await answer.bytes());
    return Object.entries(files).map(([path, bytes]) => [path, new TextDecoder().decode(bytes)] as const);
  };
  const chats = await pack({ kind: "conversations", ids: ["c1", "none", "c2"], format: "markdown" });
  expect(chats.map(([path]) => path)).toEqual(["Abend.md", "abend (2).md", "unreadable.json"]);
  expect(chats[1]![1]).toContain("Hm.");
  expect(JSON.parse(chats[2]![1])).toEqual(["none"]);
  const [card] = await pack({ kind: "characters", ids: ["owl"], format: "json" });
  expect(card![0]).toBe("Owl 1.json");
  expect(JSON.parse(card![1]).data.first_mes).toBe("Hoo.");
});

test.each([
  { kind: "conversations", ids: [], format: "json" },
  { kind: "conversations", ids: ["c1"], format: "png" },
  { kind: "personas", ids: ["p1"], format: "json" },
])("rejects the selection %j", async (body) => {
  await using app = await openTestApp();
  const answer = await app.post("/api/export", body);
  expect(answer.status).toBe(400);
  await answer.body?.cancel();
});

test.each([["a chat that is not there", "/api/conversations/none/export?format=json", 404], [
  "a form that is none",
  "/api/conversations/c1/export?format=pdf",
  400,
]])("%s: %s is rejected", async (_, path, status) => {
  await using app = await openTestApp();
  const answer = await app.get(path);
  expect(answer.status).toBe(status);
  await answer.body?.cancel();
});

test("a conversation is exported exactly as stored, with its other texts in a separate file", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const files = unzipSync(await (await app.get("/api/export")).bytes());
  const stored = await (await app.get("/api/conversations/c1")).bytes();
  expect(files["conversations/c1.json"]).toEqual(stored);
  const lines = new TextDecoder().decode(files["variants/c1.jsonl"]).trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{
    message_id: "a1",
    n: 0,
    text: { content: "First." },
  }]);
});

test("unreadable items are named in the zip, and the rest is exported", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  await app.put("/api/conversations/c2", { title: "Whole", messages: [{ id: "w1", role: "user", content: "Hm." }] });
  const db = openStoredDatabase(app.dataDir);
  db.exec("UPDATE block SET sealed = zeroblob(64) WHERE conversation_id = 'c1'");
  db.close();
  await app.restart();
  const files = unzipSync(await (await app.get("/api/export")).bytes());
  expect(JSON.parse(new TextDecoder().decode(files["unreadable.json"]))).toEqual(["conversations/c1"]);
  expect(Object.keys(files)).toContain("conversations/c2.json");
});

/** Fields with times and numbers of writes, and whether a key exists. */
const OF_THE_PLACE = [
  ...[
    "updated_at",
    "revision",
    "draft_version",
    "imported",
    "created_at",
    "modified_at",
    "has_key",
    "version",
    "last_call",
  ],
];

/** Everything in an export of the server, without times and addresses. */
async function wholeHouse(app: TestApp): Promise<Record<string, unknown>> {
  // deno-lint-ignore no-explicit-any -- answers of many shapes
  const plain = (value: any): any => {
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).filter(([name]) => !OF_THE_PLACE.includes(name)).map(([name, one]) => [name, plain(one)]),
    );
  };
  // deno-lint-ignore no-explicit-any -- as above
  const get = async (path: string): Promise<any> => await (await app.get(path)).json();
  const byId = (items: { id: string }[]) => items.sort((a, b) => a.id < b.id ? -1 : 1);
  const whole: Record<string, unknown> = {};
  for (
    const path of [
      ...["characters?view=full", "personas", "lorebooks", "presets", "voices", "connections", "image/connections"],
      ...["image/workflows", "conversations"],
    ]
  ) whole[path] = plain(byId(await get(`/api/${path}`)));
  const opened = [
    ...[
      "settings",
      "tts/config",
      "stt/config",
      "lorebooks/b1",
      "presets/s1",
      "image/workflows/w1",
      "conversations/c1?variants=1",
    ],
    "conversations/c2?variants=1",
  ];
  for (const path of opened) whole[path] = plain(await get(`/api/${path}`));
  const bytes = async (path: string) => new Uint8Array(await (await app.get(path)).arrayBuffer());
  whole.picture = await bytes("/api/attachments/a.png");
  for (const { id } of await get("/api/voices")) whole[`voice ${id}`] = await bytes(`/api/voices/${id}/audio`);
  return whole;
}

test("voices, workflows, servers, settings and drafts are exported; keys, devices and the trash aren't", async () => {
  await using first = await openTestApp();
  await fillHouse(first);
  const seen = { type: "image_url", image_url: { url: "/api/attachments/a.png" } };
  await first.put("/api/conversations/c3", { title: "Seen", messages: [{ id: "s1", role: "user", content: [seen] }] });
  await first.post("/api/image/connections/i1/activate", {});
  const zip = await (await first.get("/api/export")).bytes();
  const files = unzipSync(zip);
  for (const secret of ["sk-house", "sk-image", "sk-speech", "sk-hearing", "credential", "Gone"]) {
    const text = Object.values(files).map((bytes) => new TextDecoder("latin1").decode(bytes)).join("\n");
    expect(text.includes(secret), secret).toBe(false);
  }

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines.map(({ level, source, code }) => [level, source, code])).toEqual([
    ["changed", expect.stringMatching(/^connections\//), "enter_key"],
    ["changed", expect.stringMatching(/^connections\//), "server_not_chosen"],
    ["changed", "image_connections/i1.json", "enter_key"],
    ["changed", "image_connections/i1.json", "server_not_chosen"],
    ["changed", "settings.json", "speech_left_off"],
    ["changed", "settings.json", "transcription_left_off"],
  ]);
  const [here, there] = [await wholeHouse(first), await wholeHouse(second)];
  for (const house of [here, there]) {
    // Only the owner switches servers on.
    for (const path of ["connections", "image/connections"]) {
      for (const item of house[path] as Record<string, unknown>[]) delete item.active;
    }
    for (const path of ["tts/config", "stt/config"]) delete house[path];
  }
  expect(there).toEqual(here);

  const again = await importReport(second, "kind=parlor", zip);
  expect(added(again)).toEqual(NOTHING_ADDED);
  expect(again.lines.map(({ code }) => code)).toEqual(["speech_left_off", "transcription_left_off"]);
});

test("tool servers are exported without their secrets, and are held after an import, even if programs aren't allowed", async () => {
  await using first = await openTestApp({ config: { toolsAllowPrograms: true } });
  const files = { name: "Files", command: "/bin/true", args: ["-y"], env: { KEY: "env-secret" } };
  await first.put("/api/tools/servers/files", files);
  const remote = { name: "Remote", url: "http://127.0.0.1:9/mcp", headers: { "X-Key": "header-secret" } };
  await first.put("/api/tools/servers/remote", { ...remote, client_id: "me", client_secret: "client-secret" });
  const zip = await (await first.get("/api/export")).bytes();
  const text = Object.values(unzipSync(zip)).map((bytes) => new TextDecoder("latin1").decode(bytes)).join("\n");
  expect(text).not.toMatch(/(env|header|client)-secret/);

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines.map(({ source, code }) => [source, code])).toEqual([
    ["tool_servers/files.json", "enter_key"],
    ["tool_servers/files.json", "tool_server_left_off"],
    ["tool_servers/remote.json", "enter_key"],
    ["tool_servers/remote.json", "tool_server_left_off"],
  ]);
  expect(await (await second.get("/api/tools/servers")).json()).toMatchObject([
    {
      id: "files",
      transport: "stdio",
      command: "/bin/true",
      args: ["-y"],
      env_names: [],
      enabled: true,
      state: "held",
    },
    { id: "remote", url: "http://127.0.0.1:9/mcp", client_id: "me", has_client_secret: false, state: "held" },
  ]);
  expect((await second.put("/api/tools/servers/files", { enabled: true })).status).toBe(403);
});

test("an import switches nothing on and names what it left off", { tags: ["J13"] }, async () => {
  const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const url = "http://127.0.0.1:9/v1";
  const zip = zipSync({
    "parlor-export.json": json({ format: 2, version: "0.1.0" }),
    "connections/x.json": json({ kind: "openai", name: "X", baseUrl: url, isActive: true }),
    "image_connections/z.json": json({ kind: "a1111", name: "Z", baseUrl: url, isActive: true }),
    "tool_servers/t.json": json({ transport: "http", name: "T", url, isEnabled: true, permissions: { a: "always" } }),
    "settings.json": json({
      settings: { keep_recordings: true, memory_proposals: true, memory_asked: true, serif: true },
      speech: { baseUrl: url },
      transcription: { baseUrl: url },
    }),
  });
  await using app = await openTestApp();
  for (const query of ["kind=parlor&dry_run=true", "kind=parlor"]) {
    const report = await importReport(app, query, new Uint8Array(zip));
    expect(report.lines.map(({ source, code, params }) => [source, code, params?.server])).toEqual([
      ["connections/x.json", "server_not_chosen", url],
      ["image_connections/z.json", "server_not_chosen", url],
      ["tool_servers/t.json", "tool_server_left_off", url],
      ["settings.json", "proposals_left_off", undefined],
      ["settings.json", "recordings_left_off", undefined],
      ["settings.json", "speech_left_off", url],
      ["settings.json", "transcription_left_off", url],
    ]);
  }
  const get = async (path: string) => await (await app.get(path)).json();
  expect(await get("/api/settings")).toMatchObject({ keep_recordings: false, memory_proposals: false, serif: true });
  expect(await get("/api/tts/config")).toMatchObject({ base_url: "" });
  expect(await get("/api/stt/config")).toMatchObject({ base_url: "" });
  expect((await get("/api/connections")).find(({ id }: { id: string }) => id === "x")).toMatchObject({ active: false });
  expect(await get("/api/image/connections")).toMatchObject([{ id: "z", active: false }]);
  expect(await get("/api/tools/servers")).toMatchObject([{ id: "t", enabled: true, state: "held" }]);
});

test("an import keeps the settings and servers of this server", async () => {
  await using first = await openTestApp();
  await fillHouse(first);
  const zip = await (await first.get("/api/export")).bytes();
  await using second = await openTestApp();
  await second.patch("/api/settings", { display_name: "Bea" });
  const own = { id: "own", name: "Own", kind: "openai", base_url: "http://127.0.0.1:9" };
  await second.put("/api/connections", own);
  await second.post("/api/connections/own/activate", {});
  await importReport(second, "kind=parlor", zip);
  expect(await (await second.get("/api/settings")).json()).toMatchObject({ display_name: "Bea", auto_title: false });
  const connections: { id: string; active: boolean }[] = await (await second.get("/api/connections")).json();
  expect(connections.find(({ active }) => active)?.id).toBe("own");
});

test("prompt templates are exported, and imported where there are none", async () => {
  await using app = await openTestApp();
  const prompt_templates = [
    { name: "sum-up", text: "Sum up [[text]]." },
    { name: "wave", text: "*waves*", button: { label: "Wave", action: "send_after", character_ids: ["mia"] } },
  ];
  await app.patch("/api/settings", { prompt_templates });
  const zip = await (await app.get("/api/export")).bytes();
  expect(added(await importReport(app, "kind=parlor", zip)).settings).toBe(0);
  await app.patch("/api/settings", { prompt_templates: [] });
  expect(added(await importReport(app, "kind=parlor", zip)).settings).toBe(1);
  expect(await (await app.get("/api/settings")).json()).toMatchObject({ prompt_templates });
});

test("imports an export in the earlier format, but not one in a later format", async () => {
  await using app = await openTestApp();
  const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const variants = [{ n: 0, content: "First." }, { n: 1, content: "Second." }];
  const message = { id: "m1", role: "assistant", content: "Second.", variant_count: 2, active_variant: 1, variants };
  const before = zipSync({
    "parlor-export.json": json({ format: 1, version: "0.1.0" }),
    "conversations/k1.json": json({ id: "k1", title: "Old", participants: [], messages: [message] }),
  });
  await importReport(app, "kind=parlor", new Uint8Array(before));
  const texts = await (await app.get("/api/conversations/k1/messages/m1/variants")).json();
  expect(texts.map(({ content }: { content: string }) => content)).toEqual(["First.", "Second."]);
  const later = zipSync({ "parlor-export.json": json({ format: 99, version: "9.0.0" }) });
  const job = await importJob(app, "kind=parlor", new Uint8Array(later));
  expect(job).toMatchObject({ state: "failed", error: { message: expect.stringContaining("9.0.0") } });
});

test("values of servers and settings in an export are validated", async () => {
  await using app = await openTestApp();
  const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const report = await importReport(
    app,
    "kind=parlor",
    new Uint8Array(zipSync({
      "parlor-export.json": json({ format: 2, version: "0.1.0" }),
      "connections/x.json": json({ kind: "shell", name: "X", baseUrl: "http://127.0.0.1:9" }),
      "connections/y.json": json({ kind: "openai", name: "Y", baseUrl: "file:///etc/passwd" }),
      "image_connections/z.json": json({
        kind: "a1111",
        name: "Z",
        baseUrl: "http://127.0.0.1:9",
        defaults: { steps: "" },
      }),
      "voices/v1.json": json({ name: "V", format: "../../x" }),
      "settings.json": json({
        settings: {
          theme: "neon",
          font_size: 1e9,
          portrait_size: "huge",
          message_style: "",
          chat_background: "https://elsewhere.example/forest.png",
          prompt_templates: [{ name: "two words", text: 7 }],
          serif: true,
          other: 1,
        },
        speech: { baseUrl: 7 },
      }),
    })),
  );
  expect(report.lines.map(({ source }) => source)).toEqual([
    ...["voices/v1.json", "connections/x.json", "connections/y.json"],
  ]);
  expect(await (await app.get("/api/tts/config")).json()).toMatchObject({ base_url: "" });
  expect(await (await app.get("/api/settings")).json()).toMatchObject({
    theme: "system",
    font_size: 100,
    portrait_size: "small",
    message_style: "plain",
    chat_background: null,
    prompt_templates: [],
    serif: true,
  });
  const [backend] = await (await app.get("/api/image/connections")).json();
  expect(backend).toMatchObject({ name: "Z", defaults: {} });
});

test("an export of many chats has all of them in order and their images, also after others were cut off", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const sizes = Array.from({ length: 40 }, (_, n) => n % 5 === 0 ? 60_000 : 300);
  for (const [n, size] of sizes.entries()) {
    const messages = [{ id: `m${n}`, role: "user", content: `${n} `.repeat(size / 3) }];
    await app.put(`/api/conversations/many-${n}`, { title: `Chat ${n}`, messages });
  }
  // The last one refers to an image that no other has.
  const [part] = (await (await app.get("/api/conversations/c1")).json()).messages[0].content.slice(-1);
  await app.put("/api/conversations/c1", { title: "Without", messages: [] });
  await app.put("/api/conversations/zz", { title: "Last", messages: [{ id: "z", role: "user", content: [part] }] });
  for (let cut = 0; cut < 3; cut++) {
    const reader = (await app.get("/api/export")).body!.getReader();
    await reader.read();
    await reader.cancel();
  }
  const files = unzipSync(await (await app.get("/api/export")).bytes());
  const paths = Object.keys(files).filter((path) => /^conversations\//.test(path));
  expect(paths).toHaveLength(sizes.length + 2);
  for (const n of sizes.keys()) {
    const { messages } = JSON.parse(new TextDecoder().decode(files[`conversations/many-${n}.json`]));
    expect(messages[0].content.startsWith(`${n} ${n} `)).toBe(true);
  }
  expect(files["attachments/boat.png"]?.length).toBeGreaterThan(0);
  expect(files["unreadable.json"]).toBeUndefined();
});
