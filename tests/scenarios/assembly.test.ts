import { afterEach, beforeEach, expect, test } from "vitest";
import { gather, until, useModel } from "../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { readConversation, say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const lastSent = () => llm.chats.at(-1)!.json!.messages as { role: string; content: string }[];
const made = async (asked: Promise<Response>) => {
  const response = await asked;
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return await response.json();
};
const ada = {
  name: "Ada Byron",
  nickname: "Ada",
  description: "{{char}} builds engines.",
  personality: "precise",
  scenario: "A workshop in {{random:London,Paris}}.",
  first_mes: "Good day, {{user}}.",
  mes_example: "<START>\n{{user}}: Hi\n{{char}}: Hello.\n<START>\n{{char}}: Numbers!",
  system_prompt: "Be {{char}}. {{original}}",
  post_history_instructions: "Stay in {{char}}'s time.",
  extensions: { depth_prompt: { prompt: "Ada is tired.", depth: 2, role: "system" } },
  character_book: {
    name: "Engines",
    extensions: {},
    entries: [
      entry({
        id: 1,
        name: "Mill",
        keys: ["mill"],
        content: "The mill is where {{char}} counts.",
        position: "before_char",
      }),
      entry({
        id: 2,
        name: "Store",
        keys: ["engine"],
        content: "@@depth 1\nThe store holds numbers.",
        insertion_order: 5,
      }),
      entry({ id: 3, name: "Always", constant: true, content: "It is the year 1843.", position: "after_char" }),
      entry({ id: 4, name: "Never", keys: ["mill"], content: "Off.", enabled: false }),
    ],
  },
};
function entry(fields: Record<string, unknown>) {
  return { keys: [], content: "", extensions: {}, enabled: true, insertion_order: 10, use_regex: false, ...fields };
}

async function addCharacter(id: string, data: Record<string, unknown>) {
  const card = { spec: "chara_card_v3", spec_version: "3.0", data };
  await made(app.put(`/api/characters/${id}`, { card }));
}

async function beginWithAda(more: Record<string, unknown> = {}) {
  await addCharacter("ada", ada);
  await made(app.put("/api/personas/sam", { name: "Sam", description: "{{user}} asks {{char}} questions." }));
  const { id } = await made(app.post("/api/conversations", { character_ids: ["ada"], persona_id: "sam" }));
  await made(
    app.patch(`/api/conversations/${id}`, { note: { text: "Rain falls.", depth: 1, role: "system" }, ...more }),
  );
  return id as string;
}

const turn = (id: string, content: string) => ({
  conversation_id: id,
  context: "server",
  messages: [{ role: "user", content }],
});

const BEGIN = (scenario: string) =>
  [
    "Be Ada. This is a conversation between Ada and Sam. Write what Ada says and does next, true to who Ada is, and " +
    "leave Sam's words and actions to Sam.",
    "The mill is where Ada counts.",
    "Sam asks Ada questions.",
    "Ada builds engines.",
    "[Ada's personality: precise]",
    `[The scene: A workshop in ${scenario}.]`,
    "It is the year 1843.",
    "[An example of how they talk]\nSam: Hi\nAda: Hello.",
    "[An example of how they talk]\nAda: Numbers!",
    "[A new chat begins]",
  ].join("\n\n");

test("sends card, persona, the card's lorebook, notes and instructions in their order, message by message", async () => {
  const id = await beginWithAda();
  const body = turn(id, "Show me the mill of the engine");
  const seen = await made(app.post("/api/chat/preview", body));
  await gather(await app.post("/api/chat", body));
  const scenario = /workshop in (\w+)/.exec(lastSent()[0]!.content)![1]!;
  expect(["London", "Paris"]).toContain(scenario);
  expect(lastSent()).toEqual([
    { role: "system", content: BEGIN(scenario) },
    { role: "system", content: "Ada is tired." },
    { role: "assistant", content: "Good day, Sam." },
    { role: "system", content: "Rain falls.\n\nThe store holds numbers." },
    { role: "user", content: "Show me the mill of the engine" },
    { role: "system", content: "Stay in Ada's time." },
  ]);
  expect(seen.messages).toEqual(lastSent());
  expect(seen.speakers).toEqual(["ada"]);
  expect(seen.parts[0].pieces.map(({ part }: { part: string }) => part)).toEqual([
    ...["main", "lorebook", "persona", "description", "personality", "scenario", "lorebook"],
    ...["examples", "examples", "chat_begins"],
  ]);
  expect(seen.parts[0].pieces[1].entry).toEqual({
    lorebook_id: "character:ada",
    lorebook_name: "Engines",
    entry_id: "1",
    entry_name: "Mill",
    reason: { kind: "key", key: "mill" },
  });
  expect(seen.parts[0].pieces[6].entry).toMatchObject({ entry_name: "Always", reason: { kind: "constant" } });
  expect(seen.tokens).toBe(seen.parts.reduce((sum: number, { tokens }: { tokens: number }) => sum + tokens, 0));
});

test("a note with an interval is only sent with every so many messages of the user", async () => {
  const note = { text: "Rain falls.", depth: 0, role: "system", interval: 2 };
  const id = await beginWithAda({ note });
  const isSent = async (body: ReturnType<typeof turn>) => {
    const { messages } = await made(app.post("/api/chat/preview", body));
    return JSON.stringify(messages).includes("Rain falls.");
  };
  const one = turn(id, "One");
  expect(await isSent(one)).toBe(false);
  await gather(await app.post("/api/chat", one));
  expect(await isSent(turn(id, "Two"))).toBe(true);
  await made(app.patch(`/api/conversations/${id}`, { note: { ...note, interval: 0 } }));
  expect(await isSent(turn(id, "Two"))).toBe(false);
});

test("the chat's variables are set from the start, and messages can read those that the card sets", async () => {
  const id = await beginWithAda({ variables: { hp: "5" }, note: { text: "HP {{incvar::hp}}.", depth: 0 } });
  await addCharacter("ada", { ...ada, description: "{{setvar::mood::glad}}Engines." });
  const { messages } = await made(app.post("/api/chat/preview", turn(id, "I feel {{.mood}} at {{getvar::hp}}.")));
  const text = JSON.stringify(messages);
  expect(text).toContain("I feel glad at 5.");
  expect(text).toContain("HP 6.");
});

test("example dialogue without names is sent", async () => {
  const id = await beginWithAda();
  await addCharacter("ada", { ...ada, mes_example: "<START>\nNumbers hum in the night." });
  const { messages } = await made(app.post("/api/chat/preview", turn(id, "Hi")));
  expect(messages[0].content).toContain("Numbers hum in the night.");
});

test("a prompt that changes a variable is the same when it's sent again", async () => {
  const id = await beginWithAda({ variables: { hp: "5" }, note: { text: "HP {{incvar::hp}}.", depth: 0 } });
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  const first = lastSent();
  expect(JSON.stringify(first)).toContain("HP 6.");
  const again = { conversation_id: id, context: "server", assistant_message_id: "a1", action: "regenerate" };
  await gather(await app.post("/api/chat", again));
  expect(lastSent()).toEqual(first);
});

test("names in stored messages are expanded, also in SillyTavern's old form", async () => {
  const id = await beginWithAda();
  await gather(await app.post("/api/chat", turn(id, "I am <USER>, {{char}} is <BOT>. <b>")));
  expect(JSON.stringify(lastSent())).toContain("I am Sam, Ada is Ada. <b>");
});

test("an outlet's entries are in the prompts that name it, the highest order first, and empty in the card", async () => {
  const outlet = (content: string, order: number, outletName: string) => ({
    ...{ key: ["mill"], content, order, position: 7, outletName },
  });
  const form = new FormData();
  const entries = {
    0: outlet("It creaks.", 1, "mill"),
    1: outlet("It's {{char}}'s.", 2, "mill"),
    2: outlet("No", 3, "x"),
  };
  form.set("file", new File([JSON.stringify({ entries })], "Mill.json", { type: "application/json" }));
  const { id: book } = await made(app.post("/api/lorebooks/import", form));
  const id = await beginWithAda({ lorebook_ids: [book], system_prompt: "Main <{{outlet::mill}}> <{{outlet::none}}>." });
  await addCharacter("ada", { ...ada, description: "Engines <{{outlet::mill}}>", extensions: {} });
  const body = turn(id, "Show me the mill");
  const { messages } = await made(app.post("/api/chat/preview", body));
  const text = messages.map(({ content }: { content: string }) => content).join("\n");
  expect(text).toContain("Main <It's Ada's.\nIt creaks.> <>.");
  expect(text).toContain("Engines <>");
  expect(text.split("It creaks.").length).toBe(2);
  expect(text).not.toContain("\nNo\n");
});

const fixture = (name: string) => Deno.readTextFile(new URL(`../fixtures/sillytavern/${name}.json`, import.meta.url));

test("sends a chat with card, persona, two lorebooks and a SillyTavern preset, message by message", async () => {
  await addCharacter("orla", {
    name: "Orla",
    nickname: "Captain",
    // The entry "Smugglers" is limited to this name and tag.
    tags: ["t1"],
    description: "{{char}} sails the Heron.",
    personality: "gruff",
    scenario: "The docks of Velm.",
    first_mes: "What do you want, {{user}}?",
    mes_example: "<START>\n{{user}}: Ahoy\n{{char}}: Hm.",
    system_prompt: "{{original}} Be {{char}}.",
    post_history_instructions: "{{original}} Swear little.",
  });
  await made(app.put("/api/personas/sam", { name: "Sam", description: "{{user}} is new to the sea." }));
  const velm = { name: "Velm", scope: "chat", book: JSON.parse(await fixture("world_info")) };
  await made(app.put("/api/lorebooks/velm", velm));
  const sea = {
    entries: [entry({ id: 1, name: "Tide", keys: ["tide"], content: "@@role assistant\n@@depth 0\nIt ebbs." })],
  };
  await made(app.put("/api/lorebooks/sea", { name: "Sea", scope: "global", book: sea }));
  const form = new FormData();
  form.set("file", new File([await fixture("preset_chat_completion")], "Seaside.json", { type: "application/json" }));
  const preset = await made(app.post("/api/presets/import", form));
  // With a fixed ID: then random choices, such as an entry with a probability of 50 %, are the same in every run.
  await made(app.put("/api/conversations/c1", {
    participants: [{ character_id: "orla" }],
    persona_id: "sam",
    preset_id: preset.id,
    lorebook_ids: ["velm"],
    note: { text: "Fog comes up.", depth: 1 },
    messages: [{ ...say("m1", "What do you want, {{user}}?", "assistant"), character_id: "orla" }],
  }));
  llm.contextSize = 32_768;
  const body = turn("c1", "Captain Orla, a smuggler at the harbour asks of the tide");
  const seen = await made(app.post("/api/chat/preview", body));
  await gather(await app.post("/api/chat", body));
  expect(lastSent()).toEqual([
    {
      role: "system",
      content: [
        "Tell the story of Captain and Sam by the sea. Be Captain.",
        "[Lore: Velm is a town of fishers; its people speak little and bargain hard.",
        "The harbour of Velm lies under a cliff of black slate.]",
        "Sam is new to the sea.",
        "Captain sails the Heron.",
        "[Manner of Captain: gruff]",
        "[Setting: The docks of Velm.]",
        "[Sample]\nSam: Ahoy\nCaptain: Hm.",
        "[Sample]\nThe winch of the Heron is cursed, they say.",
        "[The chat starts here]",
      ].join("\n\n"),
    },
    { role: "user", content: "(It is raining.)\n\nCaptain Orla lost her left hand to a winch." },
    { role: "assistant", content: "Captain: What do you want, Sam?" },
    { role: "system", content: "Smugglers mark their crates with a chalk gull.\n\nFog comes up." },
    { role: "user", content: "Sam: Captain Orla, a smuggler at the harbour asks of the tide" },
    { role: "assistant", content: "It ebbs." },
    { role: "system", content: "Keep to two paragraphs. Swear little." },
  ]);
  expect(llm.chats.at(-1)!.json).toMatchObject({ temperature: 0.85, top_k: 40, max_tokens: 700, min_p: 0.05 });
  expect(llm.chats.at(-1)!.json).not.toHaveProperty("presence_penalty");
  expect(seen.messages).toEqual(lastSent());
  expect(seen).toMatchObject({ preset: { id: preset.id, name: "Seaside" }, context_size: 32_768 });
  const fired = seen.parts.flatMap(({ pieces = [] }) => pieces).flatMap(({ entry: one }: { entry?: Fired }) =>
    one === undefined ? [] : [[one.lorebook_name, one.entry_name, one.reason.kind, one.reason.key]]
  );
  expect(fired).toEqual([
    ["Velm", "The town", "constant", undefined],
    ["Velm", "Harbour", "key", "harbour"],
    ["Velm", "Winch", "recursion", "winch"],
    ["Velm", "Orla", "key", "/\\bcaptain\\s+(orla|orsa)\\b/i"],
    ["Velm", "Smugglers", "key", "smuggler"],
    ["Sea", "Tide", "key", "tide"],
  ]);
});

interface Fired {
  lorebook_name: string;
  entry_name: string;
  reason: { kind: string; key?: string };
}

test("the start of the prompt stays identical from turn to turn while the same entries activate", async () => {
  const id = await beginWithAda({ system_prompt: "{{original}} It is {{time}}, {{pick:a,b,c}} {{roll:1000000}}." });
  const begins = new Set<string>();
  for (let n = 0; n < 5; n++) {
    await gather(await app.post("/api/chat", turn(id, `The mill, question ${n}`)));
    begins.add(lastSent()[0]!.content);
  }
  expect(begins.size).toBe(1);
});

test("regenerate, continue and impersonate use the same prompt; impersonate stores nothing", async () => {
  const id = await beginWithAda();
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  const first = lastSent();
  const again = { conversation_id: id, context: "server", assistant_message_id: "a1" };
  await gather(await app.post("/api/chat", { ...again, action: "regenerate" }));
  expect(lastSent()).toEqual(first);
  await gather(await app.post("/api/chat", { ...again, action: "continue" }));
  expect(lastSent().at(-1)).toEqual({ role: "assistant", content: "Hello" });
  expect(lastSent().at(-2)).toEqual({ role: "system", content: "Stay in Ada's time." });

  const before = await readConversation(app, id);
  const asked = { conversation_id: id, context: "server", action: "impersonate" };
  expect(await gather(await app.post("/api/chat", asked))).toMatchObject({ text: "Hello", isDone: true });
  expect(lastSent().at(-1)!.content).toContain("Write Sam's next message");
  expect((await made(app.post("/api/chat", { ...asked, stream: false }))).choices[0].message.content).toBe("Hello");
  expect(await readConversation(app, id)).toEqual(before);
  expect((await app.post("/api/chat", { ...asked, conversation_id: "none" })).status).toBe(404);
});

async function importPreset(more: Record<string, unknown>): Promise<string> {
  const form = new FormData();
  const json = { ...JSON.parse(await fixture("preset_chat_completion")), ...more };
  form.set("file", new File([JSON.stringify(json)], "Seaside.json", { type: "application/json" }));
  return (await made(app.post("/api/presets/import", form))).id;
}

test("a preset's continuation prompt goes last behind the text to continue, and the new text is separated from the old", async () => {
  const nudge = "[Carry on behind: {{lastChatMessage}}]";
  const preset = { continue_prefill: false, continue_nudge_prompt: nudge, continue_postfix: "\n\n" };
  const preset_id = await importPreset({ ...preset, assistant_prefill: "Well," });
  const id = await beginWithAda({ preset_id });
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  const again = { conversation_id: id, context: "server", assistant_message_id: "a1", action: "continue" };
  const { parts } = await made(app.post("/api/chat/preview", again));
  expect(parts.at(-3).pieces.at(-1)).toMatchObject({ part: "instructions" });
  expect(parts.slice(-2).map(({ part }: { part: string }) => part)).toEqual(["history", "continue"]);
  const { text } = await gather(await app.post("/api/chat", again));
  expect(lastSent().slice(-2)).toEqual([
    { role: "assistant", content: "Ada: Well,Hello" },
    { role: "system", content: "[Carry on behind: Ada: Well,Hello]" },
  ]);
  expect(text).toBe("\n\nHello");
  expect((await readConversation(app, id)).messages.at(-1)!.content).toBe("Well,Hello\n\nHello");
});

test.each([
  ["asks for a prefill", { continue_prefill: true, continue_nudge_prompt: "[Carry on.]" }],
  ["has an empty sentence", { continue_prefill: false, continue_nudge_prompt: " " }],
])("when a preset %s, the continued text is last and the reply joins it", async (_, fields) => {
  const id = await beginWithAda({ preset_id: await importPreset({ ...fields, continue_postfix: "\n\n" }) });
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  const again = { conversation_id: id, context: "server", assistant_message_id: "a1", action: "continue" };
  llm.pieces = [" wor", "ld"];
  await gather(await app.post("/api/chat", again));
  expect(lastSent().at(-1)).toEqual({ role: "assistant", content: "Hello" });
  expect((await readConversation(app, id)).messages.at(-1)!.content).toBe("Hello world");
});

test("what the server repeats of a reply isn't stored again, however often it is continued", async () => {
  // As of old: the server ignores the fields that ask for an exact continuation.
  llm.personality = { ...llm.personality, repeatsPrefill: false };
  const id = await beginWithAda();
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  const again = { conversation_id: id, context: "server", assistant_message_id: "a1", action: "continue" };
  llm.pieces = ["Hel", "lo,", " wor"];
  await gather(await app.post("/api/chat", again));
  llm.pieces = ["Hello, wor", "ld"];
  expect((await gather(await app.post("/api/chat", again))).text).toBe("ld");
  llm.pieces = ["Hello, world", ", it's late."];
  await gather(await app.post("/api/chat", { ...again, stream: false }));
  expect((await readConversation(app, id)).messages.at(-1)!.content).toBe("Hello, world, it's late.");
});

test("the start of a reply that a preset sends is stored once", async () => {
  const id = await beginWithAda({ preset_id: await importPreset({ assistant_prefill: "Well," }) });
  llm.pieces = [" hel", "lo"];
  const { text } = await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  expect(lastSent().at(-1)).toEqual({ role: "assistant", content: "Well," });
  expect(text).toBe("Well, hello");
  expect((await readConversation(app, id)).messages.at(-1)!.content).toBe("Well, hello");
});

test("a preset that squashes system messages merges adjacent ones, whatever they contain", async () => {
  const plain = { prompts: undefined, prompt_order: undefined, names_behavior: -1 };
  const id = await beginWithAda({ note: { text: "Rain falls.", depth: 0, role: "system" } });
  const begin = async () => {
    const { messages, parts, tokens } = await made(app.post("/api/chat/preview", turn(id, "Hi")));
    expect(parts.map(({ tokens }: { tokens: number }) => tokens).reduce((a: number, b: number) => a + b)).toBe(tokens);
    return messages as { role: string; content: string }[];
  };
  await made(
    app.patch(`/api/conversations/${id}`, {
      preset_id: await importPreset({ ...plain, squash_system_messages: false }),
    }),
  );
  const apart = await begin();
  expect(apart.map(({ role }) => role)).toEqual(["system", "system", "assistant", "user", "system", "system"]);
  await made(
    app.patch(`/api/conversations/${id}`, {
      preset_id: await importPreset({ ...plain, squash_system_messages: true }),
    }),
  );
  const squashed = await begin();
  expect(squashed.map(({ role }) => role)).toEqual(["system", "assistant", "user", "system"]);
  expect(squashed[0]!.content).toBe(`${apart[0]!.content}\n\n${apart[1]!.content}`);
  expect(squashed[3]!.content).toBe(`${apart[4]!.content}\n\n${apart[5]!.content}`);
});

test("a preset's logit bias is sent, and a chat's extra fields take precedence over it", async () => {
  const logit_bias = [{ text: " wolf", value: -5 }];
  const id = await beginWithAda({ preset_id: await importPreset({ logit_bias }) });
  await gather(await app.post("/api/chat", turn(id, "Hi")));
  expect(llm.chats.at(-1)!.json!.logit_bias).toEqual([[" wolf", -5]]);
  const preset_id = await importPreset({ logit_bias, extra_body: { logit_bias: [[1, 2]] } });
  await made(app.patch(`/api/conversations/${id}`, { preset_id }));
  await gather(await app.post("/api/chat", turn(id, "Hi")));
  expect(llm.chats.at(-1)!.json!.logit_bias).toEqual([[1, 2]]);
});

test("a preset that sends names as fields does so for all turns, with the characters that names may have", async () => {
  const preset_id = await importPreset({ names_behavior: 1 });
  const id = await beginWithAda({ preset_id });
  await addCharacter("bo", { name: `Bo "${"x".repeat(70)}"`, first_mes: "" });
  await made(app.put("/api/personas/sam", { name: "Sam Ø.", description: "" }));
  const named = () => llm.chats.at(-1)!.json!.messages as { role: string; name?: string; content: string }[];
  const turns = () => named().filter(({ name }) => name !== undefined).map(({ name, content }) => [name, content]);
  await gather(await app.post("/api/chat", { ...turn(id, "Hi"), assistant_message_id: "a1" }));
  expect(turns()).toEqual([["Ada", "Good day, Sam."], ["Sam___", "Hi"]]);
  await gather(
    await app.post("/api/chat", {
      ...{ conversation_id: id, context: "server", assistant_message_id: "a1", action: "continue" },
    }),
  );
  expect(turns().at(-1)).toEqual(["Ada", expect.any(String)]);
  const nudging = await importPreset({ names_behavior: 1, continue_prefill: false });
  await made(app.patch(`/api/conversations/${id}`, { preset_id: nudging }));
  await gather(
    await app.post("/api/chat", {
      ...{ conversation_id: id, context: "server", assistant_message_id: "a1", action: "continue" },
    }),
  );
  // As in SillyTavern, the message before the continuation prompt has no name.
  expect(turns()).toEqual([["Ada", "Good day, Sam."], ["Sam___", "Hi"]]);
  expect(named().at(-2)).toEqual({ role: "assistant", content: "Hello" });
  const members = [{ character_id: "ada" }, { character_id: "bo" }];
  await made(app.patch(`/api/conversations/${id}`, { participants: members, preset_id }));
  llm.pieces = ["Hey."];
  await gather(await app.post("/api/chat", { ...turn(id, "Bo?"), character_id: "bo" }));
  await gather(await app.post("/api/chat", { ...turn(id, "And?"), character_id: "ada" }));
  expect(turns().slice(-3)).toEqual([["Sam___", "Bo?"], [`Bo__${"x".repeat(60)}`, "Hey."], ["Sam___", "And?"]]);
});

test("a character's author's note replaces the chat's or is next to it, in its place and with its interval", async () => {
  const withNote = (place: string) =>
    addCharacter("ada", { ...ada, extensions: { parlor: { note: { text: "{{char}} yawns.", place } } } });
  const id = await beginWithAda();
  const read = async () => {
    const { messages } = await made(app.post("/api/chat/preview", turn(id, "Hi")));
    return (messages as { content: string }[]).map(({ content }) => content).filter((text) => text.includes("yawns."));
  };
  await withNote("replace");
  expect(await read()).toEqual(["Ada yawns."]);
  await withNote("before");
  expect(await read()).toEqual(["Ada yawns.\nRain falls."]);
  await withNote("after");
  expect(await read()).toEqual(["Rain falls.\nAda yawns."]);
  const change = (note: unknown) => made(app.patch(`/api/conversations/${id}`, { note }));
  await change({ text: "Rain falls.", depth: 1, role: "system", interval: 3 });
  expect(await read()).toEqual([]);
  await change({ text: "", depth: 0, role: "user", position: "before_main" });
  const { messages } = await made(app.post("/api/chat/preview", turn(id, "Hi")));
  expect(messages[0]).toEqual({ role: "user", content: "Ada yawns." });
  await change(null);
  expect(await read()).toEqual(["Ada yawns."]);
});

test("a sticky entry stays active for its turns and then cools down, even after a restart", async () => {
  const book = {
    name: "B",
    extensions: {},
    entries: [entry({ id: 1, keys: ["fox"], content: "Foxes are red.", extensions: { sticky: 3, cooldown: 2 } })],
  };
  await addCharacter("bob", { name: "Bob", first_mes: "", character_book: book });
  await made(app.put("/api/conversations/c1", { participants: [{ character_id: "bob" }], messages: [] }));
  const fires = async (text: string) => {
    await gather(await app.post("/api/chat", turn("c1", text)));
    const { replies } = await app.services.chat();
    await until(() => replies.listRunning().length === 0, "the reply is settled");
    return lastSent()[0]!.content.includes("Foxes are red.");
  };
  expect(await fires("a fox")).toBe(true);
  await app.restart();
  expect(await fires("nothing")).toBe(true);
  expect(await fires("the fox again")).toBe(false);
  expect(await fires("one more fox")).toBe(true);
});

test("a model whose template needs alternating turns gets them, from the second turn without a failed attempt", async () => {
  const id = await beginWithAda();
  await using strict = await openFakeLlm();
  const refuse: FakeLlm["personality"]["refuse"] = async (request, answer) => {
    const roles = (request.json!.messages as { role: string }[]).map(({ role }) => role);
    const turns = roles[0] === "system" ? roles.slice(1) : roles;
    if (turns.every((role, n) => role === (n % 2 === 0 ? "user" : "assistant"))) return false;
    const message = "Conversation roles must alternate user/assistant/user/assistant/...";
    await answer.json(500, { error: { code: 500, message, type: "server_error" } });
    return true;
  };
  Object.assign(strict, { personality: { ...strict.personality, refuse } });
  await useModel(app, strict, { context_size: 4096 });
  expect(await gather(await app.post("/api/chat", turn(id, "Show me the mill")))).toMatchObject({ text: "Hello" });
  expect(strict.chats).toHaveLength(2);
  const [system, ...turns] = strict.chats[1]!.json!.messages as { role: string; content: string }[];
  expect(system!.content).toContain("Ada is tired.");
  expect(turns).toEqual([
    { role: "user", content: "(The conversation begins.)" },
    { role: "assistant", content: "Good day, Sam." },
    { role: "user", content: "Rain falls.\n\nShow me the mill\n\nStay in Ada's time." },
  ]);
  await gather(await app.post("/api/chat", turn(id, "And now?")));
  expect(strict.chats).toHaveLength(3);
});

test("hidden messages aren't sent, and braces in a conversation without a character are sent unchanged", async () => {
  await made(app.put("/api/conversations/c1", {
    messages: [say("m1", "{{user}} and {{char}}"), { ...say("m2", "hidden"), hidden: true }],
  }));
  await gather(await app.post("/api/chat", turn("c1", "{{random:a,b}}")));
  expect(lastSent().map(({ content }) => content)).toEqual(["{{user}} and {{char}}", "{{random:a,b}}"]);
});

test("the macros of a greeting are expanded when the conversation starts", async () => {
  await addCharacter("bob", {
    name: "Bob",
    first_mes: "{{char}} rolls {{roll:6}}{{// secretly}}, {{user}}: {{unknown}}",
  });
  const { id, messages } = await made(app.post("/api/conversations", { character_ids: ["bob"] }));
  expect(messages[0].content).toMatch(/^Bob rolls [1-6], User: \{\{unknown\}\}$/);
  await gather(await app.post("/api/chat", turn(id, "Hi")));
  expect(lastSent()[1]).toEqual({ role: "assistant", content: messages[0].content });
});

test("dates are in the client's time zone, and an invalid zone is rejected", async () => {
  await addCharacter("bob", { name: "Bob", post_history_instructions: "{{isodate}} {{isotime}}" });
  await made(app.put("/api/conversations/c1", { participants: [{ character_id: "bob" }], messages: [] }));
  const told = async (zone: string) => {
    await gather(await app.post("/api/chat", { ...turn("c1", "Hi"), time_zone: zone }));
    return Date.parse(`${lastSent().at(-1)!.content.replace(" ", "T")}Z`);
  };
  const hours = (await told("Pacific/Kiritimati") - await told("Pacific/Honolulu")) / 3_600_000;
  expect(Math.round(hours)).toBe(24);
  expect((await app.post("/api/chat", { ...turn("c1", "Hi"), time_zone: "Mars/Olympus" })).status).toBe(400);
});

test("each reply of a group is from its character, with its card; the order is by mention, manual or in turn", async () => {
  for (const name of ["Ada", "Bob", "Cy"]) {
    await addCharacter(name.toLowerCase(), { name, description: `${name}'s card.`, extensions: { talkativeness: 0 } });
  }
  const participants = ["ada", "bob", "cy"].map((character_id) => ({ character_id }));
  const messages = [{ id: "m0", role: "user", content: "I leave.", name: "Bea" }];
  await made(app.put("/api/conversations/c1", { participants, messages }));
  await made(app.patch("/api/settings", { display_name: "Sam" }));
  const speaker = async (text: string | undefined, more: Record<string, unknown> = {}) => {
    const body = { ...turn("c1", text ?? ""), ...more };
    const seen = await made(app.post("/api/chat/preview", text === undefined ? { ...body, messages: [] } : body));
    await gather(await app.post("/api/chat", text === undefined ? { ...body, messages: [] } : body));
    expect(lastSent()).toEqual(seen.messages);
    const { messages } = await readConversation(app, "c1");
    expect(seen.speakers[0]).toBe(messages.at(-1)!.character_id);
    return messages.at(-1)!.character_id;
  };
  expect(await speaker("What does Cy say?")).toBe("cy");
  expect(lastSent()[0]!.content).toContain("Cy's card.");
  expect(lastSent()[0]!.content).not.toContain("Ada's card.");
  expect(lastSent().slice(1)).toEqual([
    // Another persona keeps its name.
    { role: "user", content: "Bea: I leave." },
    { role: "user", content: "What does Cy say?" },
    { role: "system", content: "[Write Cy's next message, and nobody else's]" },
  ]);
  expect(await speaker("And bob, or Ada?")).toBe("bob");
  expect(await speaker(undefined)).toBe("ada");
  expect(lastSent().map(({ content }) => content)).toContain("Cy: Hello");
  expect(await speaker("Cy again?", { character_id: "ada" })).toBe("ada");

  const change = (fields: Record<string, unknown>) => made(app.patch("/api/conversations/c1", fields));
  await change({ participants: participants.map((one) => ({ ...one, muted: one.character_id === "cy" })) });
  expect(await speaker("Cy?")).not.toBe("cy");
  await change({ reply_order: "list", participants });
  await speaker("one", { character_id: "cy" });
  expect(await speaker("two")).toBe("ada");
  expect(await speaker(undefined)).toBe("bob");
  await change({ reply_order: "manual" });
  expect((await app.post("/api/chat", turn("c1", "Who?"))).status).toBe(400);
  await change({ reply_order: "natural", participants: participants.slice(0, 2) });
  expect(await speaker("Cy?"), "who has left says nothing").not.toBe("cy");
  expect((await app.post("/api/chat", { ...turn("c1", "Cy?"), character_id: "cy" })).status).toBe(400);
});

test("an unreadable card fails the reply with an error; a deleted one doesn't", async () => {
  await Deno.writeTextFile(`${app.dataDir}/characters/broken.json`, '{"spec":"chara_card_v3","data":{}}');
  await made(app.put("/api/conversations/c2", { participants: [{ character_id: "broken" }], messages: [] }));
  const refused = await app.post("/api/chat", turn("c2", "Hi"));
  expect([refused.status, (await refused.json()).error.code]).toEqual([422, "unprocessable"]);
  expect((await readConversation(app, "c2")).messages).toMatchObject([{ content: "Hi" }, { status: "failed" }]);
  expect(llm.chats).toHaveLength(0);
  await made(app.put("/api/conversations/c1", { participants: [{ character_id: "gone" }], messages: [] }));
  await gather(await app.post("/api/chat", turn("c1", "Hi")));
  expect(lastSent()).toEqual([{ role: "user", content: "Hi" }]);
});
