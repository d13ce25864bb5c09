import { expect, test } from "vitest";
import { filesWithText } from "../helpers/files/storage_folder.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

const PATH = "/api/settings";

test("settings have defaults, are changed individually, and survive a restart", async () => {
  await using app = await openTestApp();
  const fresh = await app.get(PATH);
  expect([fresh.headers.get("etag"), await fresh.json()]).toMatchObject(['"0"', {
    display_name: "",
    default_persona_id: null,
    auto_title: true,
    auto_summary: true,
    auto_speak: false,
    keep_recordings: false,
    language: null,
    accent_hue: null,
    font_size: 100,
  }]);
  const changed = await app.patch(PATH, { display_name: "Ada 🦆", auto_title: false, accent_hue: 30, unknown: 1 });
  expect([changed.status, changed.headers.get("etag")]).toEqual([200, '"1"']);
  await app.patch(PATH, { language: "ja" });
  await app.restart();
  const settings = await (await app.get(PATH)).json();
  expect(settings).toMatchObject({ display_name: "Ada 🦆", auto_title: false, accent_hue: 30, language: "ja" });
  expect(settings).not.toHaveProperty("unknown");
});

test("voices for narration and speech can be set, and null uses those of the speaker", async () => {
  await using app = await openTestApp();
  const chosen = await (await app.patch(PATH, { narration_voice: "bf_emma", speech_voice: "af_heart" })).json();
  expect(chosen).toMatchObject({ narration_voice: "bf_emma", speech_voice: "af_heart" });
  const cleared = await (await app.patch(PATH, { narration_voice: null })).json();
  expect(cleared).toMatchObject({ narration_voice: null, speech_voice: "af_heart" });
  expect((await app.patch(PATH, { speech_voice: "x".repeat(301) })).status).toBe(400);
});

test("prompt templates have distinct names without spaces, and are encrypted", async () => {
  await using app = await openTestApp();
  const button = { label: "X", action: "send" };
  const prompt_templates = [
    { name: "erklären", text: "needleTemplate [[topic]]" },
    { name: "b-2", text: "x", button: { ...button, conversation_ids: ["k1"] } },
  ];
  expect(await (await app.patch(PATH, { prompt_templates })).json()).toMatchObject({ prompt_templates });
  expect(await filesWithText(app.dataDir, "needleTemplate")).toEqual([]);
  for (
    const wrong of [
      [{ name: "two words", text: "x" }],
      [{ name: "", text: "x" }],
      [{ name: "a", text: "" }],
      [{ name: "a", text: "x".repeat(8_001) }],
      [{ name: "same", text: "x" }, { name: "SAME", text: "y" }],
      Array.from({ length: 201 }, (_, n) => ({ name: `t${n}`, text: "x" })),
      Array.from({ length: 100 }, (_, n) => ({ name: `t${n}`, text: "x".repeat(5_000) })),
      [{ name: "a", text: "x", button: { ...button, label: " " } }],
      [{ name: "a", text: "x", button: { ...button, label: "x".repeat(61) } }],
      [{ name: "a", text: "x", button: { ...button, action: "run" } }],
      [{ name: "a", text: "x", button: { ...button, character_ids: ["../a"] } }],
    ]
  ) expect((await app.patch(PATH, { prompt_templates: wrong })).status, JSON.stringify(wrong).slice(0, 80)).toBe(400);
  expect(await (await app.get(PATH)).json()).toMatchObject({ prompt_templates });
  expect(await (await app.patch(PATH, { prompt_templates: null })).json()).toMatchObject({ prompt_templates: [] });
});

test("null resets a setting to its default", async () => {
  await using app = await openTestApp();
  await app.patch(PATH, { display_name: "Ada", auto_title: false, accent_hue: 30, default_persona_id: "p1" });
  const answer = await app.patch(PATH, { display_name: null, auto_title: null, accent_hue: null });
  expect(await answer.json())
    .toMatchObject({ display_name: "", auto_title: true, accent_hue: null, default_persona_id: "p1" });
});

test("a change of an older version gets 412 and changes nothing; without If-Match it succeeds", async () => {
  await using app = await openTestApp();
  const first = { headers: { "if-match": '"0"' } };
  expect((await app.patch(PATH, { language: "de" }, first)).status).toBe(200);
  const stale = await app.patch(PATH, { language: "fr" }, first);
  expect([stale.status, (await stale.json()).error.code]).toEqual([412, "revision_mismatch"]);
  expect(await (await app.get(PATH)).json()).toMatchObject({ language: "de" });
  expect((await app.patch(PATH, { language: "fr" })).headers.get("etag")).toBe('"2"');
});

test("concurrent changes all survive and publish events; a change without effect doesn't", async () => {
  await using app = await openTestApp();
  const events: unknown[] = [];
  app.services.events.subscribe((event) => events.push(event));
  await Promise.all([
    app.patch(PATH, { display_name: "Ada" }),
    app.patch(PATH, { serif: true }),
    app.patch(PATH, { font_size: 120 }),
  ]);
  await app.patch(PATH, { serif: true, auto_title: true });
  const answer = await app.get(PATH);
  expect(await answer.json()).toMatchObject({ display_name: "Ada", serif: true, font_size: 120 });
  expect(answer.headers.get("etag")).toBe('"3"');
  expect(events).toEqual([1, 2, 3].map((revision) => ({ kind: "settings", id: "owner_settings", revision })));
});

test.each([
  { display_name: 1 },
  { auto_title: "yes" },
  { language: "not a tag" },
  { font_size: 300 },
  { accent_hue: -1 },
  { theme: "neon" },
  { preset_id: "a b" },
])("%j is 400", { tags: ["P12"] }, async (body) => {
  await using app = await openTestApp();
  expect((await app.patch(PATH, body)).status).toBe(400);
});

test(
  "settings are encrypted, and a restored older value is an error, not the settings",
  { tags: ["K01", "K02"] },
  async () => {
    await using app = await openTestApp();
    await app.patch(PATH, { display_name: "Needle-in-settings" });
    await app.restart();
    expect(await filesWithText(app.dataDir, "Needle-in-settings")).toEqual([]);
    using file = openStoredDatabase(app.dataDir);
    file.exec("PRAGMA busy_timeout = 5000"); // a server that has just started still writes
    file.exec("UPDATE setting SET version = 7 WHERE key = 'owner_settings'");
    expect((await app.get(PATH)).status).toBe(500);
    expect((await app.patch(PATH, { serif: true })).status).toBe(500);
  },
);

test("prompt templates are sets of quick replies for SillyTavern, and keep what theirs had", async () => {
  await using app = await openTestApp();
  const quick_reply = { set: "Mine", set_fields: { color: "red" }, fields: { id: 7, title: "Tip" } };
  const prompt_templates = [
    { name: "wave", text: "*waves*", button: { label: "Wave", action: "send" }, quick_reply },
    { name: "plain", text: "Plain." },
  ];
  expect((await app.patch(PATH, { prompt_templates })).status).toBe(200);
  expect(await (await app.get(PATH)).json()).toMatchObject({ prompt_templates });
  const sets = await (await app.get(`${PATH}/quick_reply_sets`)).json();
  expect(sets).toEqual([{ name: "Mine", count: 1 }, { name: "Parlor", count: 1 }]);
  const file = await app.get(`${PATH}/quick_reply_sets/export?set=Mine`);
  expect(file.headers.get("content-disposition")).toContain("Mine.json");
  expect(await file.json()).toMatchObject({
    ...{ version: 2, name: "Mine", disableSend: false, color: "red", idIndex: 7 },
    qrList: [{ id: 7, label: "Wave", title: "Tip", message: "*waves*", isHidden: false }],
  });
  expect((await app.get(`${PATH}/quick_reply_sets/export?set=Other`)).status).toBe(404);
  const long = { ...quick_reply, fields: { title: "x".repeat(8_000) } };
  expect((await app.patch(PATH, { prompt_templates: [{ ...prompt_templates[0], quick_reply: long }] })).status).toBe(
    400,
  );
});
