import { afterEach, beforeEach, expect, test } from "vitest";
import { useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
  await useModel(app, llm);
  await app.put("/api/personas/ann", { name: "Ann", description: "persona-word" });
  for (const [id, tag] of [["mara", "sailor"], ["tor", "smith"]] as const) {
    await app.put(`/api/characters/${id}`, {
      name: id === "mara" ? "Mara" : "Tor",
      description: `${id}-description`,
      personality: `${id}-personality`,
      scenario: `${id}-scenario`,
      creator_notes: `${id}-notes`,
      tags: [tag],
      extensions: { depth_prompt: { prompt: `${id}-depth`, depth: 4, role: "system" } },
    });
  }
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

/** Stores a World Info file and returns its ID. */
async function addBook(entries: object[]): Promise<string> {
  const file = { entries: Object.fromEntries(entries.map((entry, uid) => [uid, { uid, comment: "", ...entry }])) };
  const form = new FormData();
  form.set("file", new File([JSON.stringify(file)], "book.json"));
  return (await (await app.post("/api/lorebooks/import", form)).json()).id;
}

/** Returns the contents of the entries in the prompt for a speaker, among `contents`. */
async function listActive(characters: string[], book: string, contents: string[], speaker = characters[0]) {
  await app.put("/api/conversations/c1", {
    participants: characters.map((character_id) => ({ character_id })),
    persona_id: "ann",
    lorebook_ids: [book],
    messages: [],
  });
  const response = await app.post("/api/chat/preview", {
    conversation_id: "c1",
    context: "server",
    ...(speaker !== undefined && { character_id: speaker }),
    messages: [{ role: "user", content: "The harbor at noon" }],
  });
  expect(response.status).toBe(200);
  const text = JSON.stringify((await response.json()).messages);
  return contents.filter((content) => text.includes(content));
}

test.each([
  ["alone", ["mara"], "mara", ["for-mara", "for-sailors", "not-smiths"]],
  ["alone", ["tor"], "tor", ["not-mara"]],
  ["in a group", ["mara", "tor"], "mara", ["for-mara", "for-sailors", "not-smiths"]],
  ["in a group", ["mara", "tor"], "tor", ["not-mara"]],
  ["without a character", [], undefined, ["not-mara", "not-smiths"]],
])("%s, %j has the entries for its speaker", async (_, characters, speaker, expected) => {
  const limit = (content: string, characterFilter: object) => ({ key: ["harbor"], content, characterFilter });
  const book = await addBook([
    limit("for-mara", { isExclude: false, names: ["Mara"], tags: [] }),
    limit("not-mara", { isExclude: true, names: ["Mara"], tags: [] }),
    limit("for-sailors", { isExclude: false, names: [], tags: ["sailor"] }),
    limit("not-smiths", { isExclude: true, names: [], tags: ["smith"] }),
  ]);
  const contents = ["for-mara", "not-mara", "for-sailors", "not-smiths"];
  expect(await listActive(characters, book, contents, speaker)).toEqual(expected);
});

test.each([
  ["alone", ["mara"], "mara"],
  ["in a group", ["mara", "tor"], "tor"],
])("%s, an entry finds its key in the texts it names, and only there", async (_, characters, speaker) => {
  const sources = {
    matchPersonaDescription: "persona-word",
    matchCharacterDescription: `${speaker}-description`,
    matchCharacterPersonality: `${speaker}-personality`,
    matchCharacterDepthPrompt: `${speaker}-depth`,
    matchScenario: `${speaker}-scenario`,
    matchCreatorNotes: `${speaker}-notes`,
  };
  const names = Object.keys(sources);
  const entries = Object.entries(sources).flatMap(([field, word]) => [
    { key: [word], content: `with-${field}`, [field]: true },
    { key: [word], content: `without-${field}` },
  ]);
  const book = await addBook(entries);
  const contents = names.flatMap((field) => [`with-${field}`, `without-${field}`]);
  expect(await listActive(characters, book, contents, speaker)).toEqual(names.map((field) => `with-${field}`));
});

test("a test of a book with a conversation applies limits to its first character", async () => {
  const book = await addBook([
    { key: ["harbor"], content: "hers", characterFilter: { isExclude: false, names: ["Mara"], tags: [] } },
    { key: ["harbor"], content: "not hers", characterFilter: { isExclude: true, names: ["Mara"], tags: [] } },
  ]);
  await app.put("/api/conversations/c1", { participants: [{ character_id: "tor" }], messages: [] });
  const response = await app.post("/api/lorebooks/test", {
    lorebook_id: book,
    conversation_id: "c1",
    text: "the harbor",
  });
  expect(response.status).toBe(200);
  expect((await response.json()).entries).toMatchObject([{ content: "not hers" }]);
});
