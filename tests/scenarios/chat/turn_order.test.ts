/** Speakers of a conversation: messages keep their character and persona. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  [app, llm] = await Promise.all([openTestApp(), openFakeLlm()]);
  await useModel(app, llm);
  await app.put("/api/characters/fox", { name: "Fox", first_mes: "Hello {{user}}, I am {{char}}." });
  await app.put("/api/personas/robin", { name: "Robin" });
  await app.put("/api/personas/grey", { name: "Grey" });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const messages = async (id: string) => (await (await app.get(`/api/conversations/${id}`)).json()).messages;

test("stores the persona and the character of each message, also after a switch of the persona", async () => {
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "fox" }],
    persona_id: "robin",
    messages: [],
  });
  await gather(await ask(app, 1));
  await app.patch("/api/conversations/c1", { persona_id: "grey" });
  await gather(await ask(app, 2));
  await app.patch("/api/conversations/c1", { persona_id: null });
  await gather(await ask(app, 3));
  const all: { persona_id?: string; character_id?: string }[] = await messages("c1");
  expect(all.map(({ persona_id, character_id }) => persona_id ?? character_id)).toEqual(
    ["robin", "fox", "grey", "fox", undefined, "fox"],
  );
});

test("stores no names in a conversation without a character", async () => {
  await gather(await ask(app, 1));
  for (const message of await messages("c1")) {
    expect(message).not.toHaveProperty("persona_id");
    expect(message).not.toHaveProperty("character_id");
  }
});

test("uses the persona's name in the greeting, or the user's if the persona was deleted", async () => {
  await app.patch("/api/settings", { display_name: "Kim" });
  const greetedAs = async (persona_id?: string) => {
    const begun = await app.post("/api/conversations", { character_ids: ["fox"], persona_id });
    return (await begun.json()).messages[0].content;
  };
  expect(await greetedAs("robin")).toBe("Hello Robin, I am Fox.");
  expect(await greetedAs("nobody")).toBe("Hello Kim, I am Fox.");
  expect(await greetedAs()).toBe("Hello Kim, I am Fox.");
});
