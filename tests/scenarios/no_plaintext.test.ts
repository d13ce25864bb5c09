import { expect, test } from "vitest";
import { ask, gather, until, useModel } from "../helpers/app/chat_client.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { range, readConversation, say } from "../helpers/app/stored_chat.ts";
import { filesBelow, filesWithText } from "../helpers/files/storage_folder.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

/** Unique words, each of which enters the server in one way. */
const NEEDLES = [
  ...["needleMessage", "needleEdited", "needleBeforeEdit", "needleRemoved", "needleVariant", "needleReasoning"],
  ...[
    "needleTitle",
    "needleOldTitle",
    "needleMadeTitle",
    "needleDraft",
    "needleOldDraft",
    "needlePrompt",
    "needleNote",
  ],
  ...["needleAsked", "needleRunning", "needleThought", "needleTrashed", "needleForked", "needleFolder", "needleCustom"],
  ...["needleName", "needleKey", "needleModel", "needleSearch"],
  ...["needleBook", "needleEntry", "needleLore", "needleRemovedBook", "needlePreset", "needleInstruction"],
];

test("no message, draft, title or setting is found in the data directory: database, log, journals, all files", {
  tags: ["K01"],
}, async () => {
  await using llm = await openFakeLlm({ pieces: ["needleVariant "], reasoning: ["needleReasoning "] });
  await using app = await openTestApp({ titleIdleMs: 10 });
  const c1 = "/api/conversations/c1";
  await useModel(app, llm, { model: "needleModel", api_key: "needleKey" });
  await app.patch("/api/settings", { display_name: "needleName", auto_title: false });
  await app.put(c1, { title: "needleOldTitle", folder: "needleFolder", custom: "needleCustom", messages: [say("m0")] });
  await app.put(c1, {
    title: "needleTitle",
    system_prompt: "needlePrompt",
    note: { text: "needleNote", depth: 1 },
    // Of many blocks, and more than one write-ahead log page.
    messages: [
      ...range(80).map((i) => say(`n${i}`, `needleMessage ${"x".repeat(700)} ${i}`)),
      ...[say("m0", "needleBeforeEdit"), say("m1", "needleRemoved")],
    ],
  });
  await app.patch(`${c1}/messages/m0`, { content: "needleEdited" });
  await app.delete(`${c1}/messages/m1`);
  await app.patch(`${c1}/draft`, { draft: "needleOldDraft" });
  await app.patch(`${c1}/draft`, { draft: "needleDraft" });
  await app.post(`${c1}/fork`, { message_id: "n3" });
  const entries = [{ keys: ["needleEntry"], content: "needleLore" }];
  await app.put("/api/lorebooks/b1", { name: "needleBook", book: { entries } });
  await app.put("/api/lorebooks/b2", { name: "needleRemovedBook", book: { entries } });
  await app.delete("/api/lorebooks/b2");
  const prompts = [{ identifier: "main", content: "needleInstruction" }];
  await app.put("/api/presets/p1", { name: "needlePreset", models: ["needleModel"], prompts });
  await app.put("/api/conversations/gone", { title: "needleTrashed", messages: [say("g0", "needleForked")] });
  await app.delete("/api/conversations/gone");

  await gather(await ask(app, 1, { messages: [{ role: "user", content: "needleAsked" }] }));
  llm.reasoning = [];
  await gather(await ask(app, 1, { action: "regenerate", messages: [{ role: "user", content: "needleAsked" }] }));
  await app.get("/api/search?q=needleSearch");
  await app.patch("/api/settings", { auto_title: true });
  llm.pieces = ["needleMadeTitle"];
  await gather(await ask(app, 2, { conversation_id: "c2" }));
  await until(async () => (await readConversation(app, "c2")).title === "needleMadeTitle", "the title is made");

  // The journal of a running reply has the text so far.
  llm.switches.manual = "on";
  const asked = ask(app, 3, { conversation_id: "c3" });
  const call = await llm.nextCall();
  await call.think("needleThought ");
  await call.emit("needleRunning ");
  const reply = gather(await asked);
  await until(
    async () => (await readConversation(app, "c3")).messages[1]!.content === "needleRunning ",
    "the reply has begun",
  );
  const names = (await filesBelow(app.dataDir)).map((path) => path.slice(app.dataDir.length + 1));
  expect(names).toEqual(expect.arrayContaining(["app.db", "app.db-wal", expect.stringMatching(/^replies\//)]));
  for (const needle of NEEDLES) expect([needle, await filesWithText(app.dataDir, needle)]).toEqual([needle, []]);
  await call.finish();
  await reply;

  await app.restart(); // which moves the log into the database file
  for (const needle of NEEDLES) expect([needle, await filesWithText(app.dataDir, needle)]).toEqual([needle, []]);
  expect(app.logLines.filter((line) => NEEDLES.some((needle) => line.includes(needle)))).toEqual([]);
  await Deno.writeTextFile(`${app.dataDir}/plain`, "needleMessage");
  expect(await filesWithText(app.dataDir, "needleMessage"), "the search finds what is there").toHaveLength(1);
});
