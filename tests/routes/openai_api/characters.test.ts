/** Character prompts around a client's messages. */
import { expect, test } from "vitest";
import { type OpenAiApp, openOpenAiApp, saveMira } from "../../helpers/app/openai_app.ts";

interface Sent {
  role: string;
  content: string;
}

/** Sends a message to Mira and returns the model request. */
async function askMira(at: OpenAiApp, messages: unknown[], more: Record<string, unknown> = {}): Promise<Sent[]> {
  const body = { model: "character:mira", messages, ...more };
  const response = await at.send("POST", "/api/v1/chat/completions", body);
  expect(await response.json()).toMatchObject({
    model: "character:mira",
    choices: [{ message: { content: "Hello" } }],
  });
  return at.llm.chats.at(-1)!.json!.messages as Sent[];
}

test("the server sends card and persona before the client's messages", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  const sent = await askMira(at, [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello {{user}}" },
    { role: "user", content: "How are you?" },
  ]);
  expect(sent[0]!.role).toBe("system");
  expect(sent[0]!.content).toContain("Speak as Mira.");
  expect(sent[0]!.content).toMatch(/Mira keeps the lighthouse of \S/);
  expect(sent[0]!.content).not.toContain("{{");
  expect(sent[0]!.content).not.toContain("freezes");
  expect(sent.slice(-3)).toEqual([
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello {{user}}" },
    { role: "user", content: "How are you?" },
  ]);
});

test("a key in the client's messages activates the card's lorebook", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  const sent = await askMira(at, [{ role: "user", content: "Is the harbor open?" }]);
  expect(sent.map(({ content }) => content).join("\n")).toContain("The harbor freezes in winter.");
});

test("system messages of the client follow the main prompt unexpanded; later ones stay in place", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  const sent = await askMira(at, [
    { role: "system", content: "Answer in {{char}} JSON" },
    { role: "developer", content: [{ type: "text", text: "Never apologize" }] },
    { role: "user", content: "Hi" },
    { role: "system", content: "The lamp goes out" },
    { role: "user", content: "Oh" },
  ]);
  const systems = sent.filter(({ role }) => role === "system" || role === "developer");
  expect(systems).toHaveLength(2);
  const [main, card] = [
    systems[0]!.content.indexOf("Speak as Mira."),
    systems[0]!.content.indexOf("keeps the lighthouse"),
  ];
  const own = systems[0]!.content.indexOf("Answer in {{char}} JSON\n\nNever apologize");
  expect([main >= 0, own > main, card > own]).toEqual([true, true, true]);
  expect(sent.slice(-3)).toEqual([
    { role: "user", content: "Hi" },
    { role: "system", content: "The lamp goes out" },
    { role: "user", content: "Oh" },
  ]);
});

test("the preset's parameters apply, but the request's take precedence", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  const preset = {
    name: "Warm",
    sampler: { temperature: 0.9, top_p: 0.5 },
    prompts: [{ identifier: "main", role: "system", content: "Main" }],
    prompt_order: [{ character_id: 100001, order: [{ identifier: "main", enabled: true }] }],
  };
  const imported = await at.send("PUT", "/api/presets/warm", preset, at.ownerToken);
  expect(imported.status).toBe(201);
  await at.send("PATCH", "/api/settings", { preset_id: "warm" }, at.ownerToken);
  await askMira(at, [{ role: "user", content: "Hi" }], { top_p: 0.7 });
  expect(at.llm.chats.at(-1)!.json).toMatchObject({ temperature: 0.9, top_p: 0.7 });
});

test("a conversation that is too long loses its oldest messages, and no tool result loses its call", async () => {
  await using at = await openOpenAiApp({ personality: "llama.cpp" }); // 2048 tokens of context
  await saveMira(at);
  const filler = "word ".repeat(700);
  const messages = [
    { role: "user", content: `first ${filler}` },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: filler } }],
    },
    { role: "tool", tool_call_id: "t1", content: `result ${filler}` },
    { role: "assistant", content: "Done" },
    { role: "user", content: "And now?" },
  ];
  const sent = await askMira(at, messages);
  expect(sent.some(({ content }) => content?.startsWith("first"))).toBe(false);
  const results = sent.filter(({ role }) => role === "tool").length;
  const calls = sent.filter((message) => "tool_calls" in message).length;
  expect(results).toBe(calls);
  expect(sent.at(-1)).toEqual({ role: "user", content: "And now?" });
});

test("a character is found by the slug of its name, unless that is ambiguous", async () => {
  await using at = await openOpenAiApp();
  await saveMira(at);
  const save = (id: string, name: string) => {
    const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name } };
    return at.send("PUT", `/api/characters/${id}`, card, at.ownerToken);
  };
  await save("c2", "Älva of the Moor!");
  const ask = async (model: string) => {
    const response = await at.send("POST", "/api/v1/chat/completions", {
      model,
      messages: [{ role: "user", content: "Hi" }],
    });
    return [response.status, (await response.json()).error?.code];
  };
  expect(await ask("character:älva-of-the-moor")).toEqual([200, undefined]);
  expect(await ask("character:c2")).toEqual([200, undefined]);
  await save("c3", "Älva, of the Moor");
  expect(await ask("character:älva-of-the-moor")).toEqual([404, "model_not_found"]);
  for (
    const model of [
      "character:nobody",
      "gpt-4o",
      "connection:none/x",
      "connection:double",
      "character:",
      "connection:/x",
    ]
  ) {
    expect([model, ...await ask(model)]).toEqual([model, 404, "model_not_found"]);
  }
});
