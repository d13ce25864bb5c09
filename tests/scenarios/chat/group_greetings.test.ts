/** V3's group_only_greetings: offered only in groups. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
  const card = {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      name: "Fox",
      first_mes: "Hello {{user}}.",
      alternate_greetings: ["Hi."],
      group_only_greetings: ["", "Good evening, all. I am {{char}}."],
    },
  };
  await app.put("/api/characters/fox", { card });
  await app.put("/api/characters/owl", { name: "Owl", first_mes: "Hoo, {{user}}." });
  await app.put("/api/characters/mole", { name: "Mole", description: "says nothing first" });
  await app.patch("/api/settings", { display_name: "Kim" });
});
afterEach(() => app[Symbol.asyncDispose]());

interface Said {
  id: string;
  content: string;
  character_id: string;
  variant_count: number;
  active_variant: number;
}
const begin = async (body: Record<string, unknown>): Promise<{ id: string; messages: Said[] }> =>
  await (await app.post("/api/conversations", body)).json();
const textsOf = async (id: string, mid: string) =>
  (await (await app.get(`/api/conversations/${id}/messages/${mid}/variants`)).json()).map((text: Said) => text.content);
const greet = (id: string, character_id: string) => app.post(`/api/conversations/${id}/greeting`, { character_id });

test("starts a group chat with the group greeting, and the others as versions", async () => {
  const { id, messages: [greeting] } = await begin({ character_ids: ["fox", "owl"] });
  expect(greeting).toMatchObject({ content: "Good evening, all. I am Fox.", active_variant: 2 });
  expect(await textsOf(id, greeting!.id)).toEqual(["Hello Kim.", "Hi.", "Good evening, all. I am Fox."]);
  const named = await begin({ character_ids: ["fox", "owl"], greeting: 0 });
  expect(named.messages[0]!.content).toBe("Hello Kim.");
  const plain = await begin({ character_ids: ["owl", "fox"] });
  expect(plain.messages[0]!.content).toBe("Hoo, Kim.");
});

test("doesn't use group greetings with a single character", async () => {
  const { id, messages: [greeting] } = await begin({ character_ids: ["fox"] });
  expect(await textsOf(id, greeting!.id)).toEqual(["Hello Kim.", "Hi."]);
  const beyond = await app.post("/api/conversations", { character_ids: ["fox"], greeting: 3 });
  expect([beyond.status, (await beyond.json()).error.code]).toEqual([400, "invalid_request"]);
});

test("adds a greeting of a new participant, with the others as versions", async () => {
  const { id } = await begin({ character_ids: ["owl"] });
  await app.patch(`/api/conversations/${id}`, { participants: [{ character_id: "owl" }, { character_id: "fox" }] });
  const answer = await greet(id, "fox");
  expect(answer.status).toBe(201);
  const said: Said = await answer.json();
  expect(said).toMatchObject({ content: "Good evening, all. I am Fox.", character_id: "fox", variant_count: 3 });
  expect(await textsOf(id, said.id)).toContain("Hello Kim.");
  const { messages, revision } = await (await app.get(`/api/conversations/${id}`)).json();
  expect(messages.map(({ id }: Said) => id).at(-1)).toBe(said.id);
  const switched = await app.patch(`/api/conversations/${id}/messages/${said.id}`, { active_variant: 0 });
  expect((await switched.json()).content).toBe("Hello Kim.");
  expect(revision).toBe(3);
});

test("rejects a greeting of a character that isn't a participant or has none", async () => {
  const { id } = await begin({ character_ids: ["owl", "mole"] });
  for (const [who, why] of [["fox", /isn't part of this conversation/], ["mole", /has no greeting/]] as const) {
    const refused = await greet(id, who);
    expect(refused.status).toBe(400);
    expect((await refused.json()).error).toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(why),
    });
  }
  expect((await greet("nothing", "fox")).status).toBe(404);
});
