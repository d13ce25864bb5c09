import { expect, test } from "vitest";
import chatPreset from "../../fixtures/sillytavern/preset_chat_completion.json" with { type: "json" };
import textPreset from "../../fixtures/sillytavern/preset_text_completion.json" with { type: "json" };
import { BUILTIN_PRESET, type PresetDocument, readPreset } from "../../../services/presets/preset.ts";
import { matchesModel } from "../../../services/presets/presets.ts";
import { parsePresetFile, parseSillyTavernPreset, toSillyTavernPreset } from "../../../services/presets/sillytavern.ts";

const use = (document: PresetDocument) => readPreset({ id: "p", name: "P", isBuiltin: false }, document);

test.each([["chat completion", chatPreset], ["text completion", textPreset]])(
  "a preset for %s is unchanged, with unknown fields",
  (_, file) => {
    expect(toSillyTavernPreset(parseSillyTavernPreset(file))).toEqual(file);
  },
);

test("uses API names for sampler parameters, and omits neutral values", () => {
  const chat = use(parseSillyTavernPreset(chatPreset));
  expect(chat.sampler).toEqual({ temperature: 0.85, top_p: 0.92, top_k: 40, min_p: 0.05, frequency_penalty: 0.1 });
  expect(chat).toMatchObject({ maxTokens: 700, contextSize: 16384 });
  const text = use(parseSillyTavernPreset(textPreset));
  expect(text.sampler).toEqual({
    temperature: 1.15,
    min_p: 0.08,
    repetition_penalty: 1.07,
    repeat_last_n: 2048,
    dry_multiplier: 0.8,
    dry_base: 1.75,
    dry_allowed_length: 2,
    dry_penalty_last_n: 0,
    xtc_threshold: 0.1,
    xtc_probability: 0.5,
    mirostat_tau: 5,
    mirostat_eta: 0.1,
  });
  expect(text).toMatchObject({ maxTokens: 420, contextSize: 12288 });
});

test("exports a changed parameter under the file's own name", () => {
  const document = parseSillyTavernPreset(textPreset);
  document.sampler.repetition_penalty = 1.2;
  delete document.sampler.min_p;
  const { min_p: _, ...others } = textPreset;
  expect(toSillyTavernPreset(document)).toEqual({ ...others, rep_pen: 1.2 });
});

test("orders enabled blocks by the order for all characters", () => {
  const { blocks } = use(parseSillyTavernPreset(chatPreset));
  expect(blocks.map(({ identifier, marker }) => marker ?? `= ${identifier}`)).toEqual([
    ...["= main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality", "scenario", "= nsfw"],
    ...["worldInfoAfter", "dialogueExamples", "= 9f1c2a60-51f4-4f0e-9f6f-0b3c6f0f2f11", "chatHistory", "= jailbreak"],
  ]);
  expect(blocks[0]).toEqual({
    identifier: "main",
    name: "Main Prompt",
    role: "system",
    depthOrder: 100,
    triggers: [],
    content: "Tell the story of {{char}} and {{user}} by the sea.",
    forbidsOverrides: false,
  });
  expect(blocks[9]).toMatchObject({ role: "user", depth: 3, depthOrder: 90, triggers: ["normal", "continue"] });
});

test("uses the preset's texts, with built-in defaults", () => {
  expect(use(parseSillyTavernPreset(chatPreset))).toMatchObject({
    texts: { newChat: "[The chat starts here]", lorebookFormat: "[Lore: {0}]", continuePostfix: "\n" },
    squashesSystemMessages: true,
    continuesByPrefill: true,
    namesBehavior: 2,
  });
  const { texts, blocks } = use(parseSillyTavernPreset(textPreset));
  expect(texts).toEqual(use(BUILTIN_PRESET).texts);
  expect(blocks).toEqual(use(BUILTIN_PRESET).blocks);
  expect(Object.values(texts).filter((text) => text === "undefined")).toEqual([]);
});

test("the built-in preset has the documented order and no sampler parameters", () => {
  const { blocks, sampler } = use(BUILTIN_PRESET);
  expect(sampler).toEqual({});
  expect(blocks.map(({ identifier }) => identifier)).toEqual([
    ...["main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality", "scenario", "nsfw"],
    ...["worldInfoAfter", "dialogueExamples", "chatHistory", "jailbreak"],
  ]);
});

test("always includes the history", () => {
  const order = (order: { identifier: string; enabled: boolean }[]) => {
    const document = { ...parseSillyTavernPreset(chatPreset), prompt_order: [{ character_id: 100001, order }] };
    return use(document).blocks.map(({ identifier }) => identifier);
  };
  const main = { identifier: "main", enabled: true };
  const jailbreak = { identifier: "jailbreak", enabled: true };
  expect(order([main, jailbreak])).toEqual(["main", "chatHistory", "jailbreak"]);
  expect(order([{ identifier: "chatHistory", enabled: false }, main])).toEqual(["chatHistory", "main"]);
  expect(order([main, main, { identifier: "nobody", enabled: true }])).toEqual(["main", "chatHistory"]);
});

test("keeps invalid values in the file without using them", () => {
  const odd = {
    temperature: "hot",
    top_p: null,
    prompts: [1],
    prompt_order: "none",
    openai_max_tokens: -5,
    seed: 7,
    new_chat_prompt: 5,
  };
  const document = parseSillyTavernPreset(odd);
  expect(toSillyTavernPreset(document)).toEqual(odd);
  expect(use(document)).toMatchObject({ sampler: { seed: 7 }, texts: { newChat: use(BUILTIN_PRESET).texts.newChat } });
  expect(use(document).maxTokens).toBeUndefined();
});

test.each<[string, string]>([
  ["no JSON", "{"],
  ["a list", "[]"],
  ["neither samplers nor prompts", '{"entries":{}}'],
  ["a number without bounds", '{"temperature":1e999}'],
  ["one nested without end (P07)", `{"temperature":1,"x":${"[".repeat(5000)}${"]".repeat(5000)}}`],
])("rejects %s", (_, text) => {
  expect(() => parsePresetFile(new TextEncoder().encode(text))).toThrow(
    expect.objectContaining({ code: "unprocessable" }),
  );
});

test.each<[string, string, boolean]>([
  ["mistral-7b", "Mistral-7B", true],
  ["mistral", "mistral-7b", false],
  ["mistral*", "mistral-7b", true],
  ["*7b*", "mistral-7b-instruct", true],
  ["*", "anything", true],
  ["a*b*c", "aXbYc", true],
  ["a*b*c", "acb", false],
  ["ab*ba", "aba", false],
  ["a.c", "abc", false],
  ["*a*a*a*a*a*a*a*a*b", "a".repeat(5000), false],
])("matches the pattern %s against %s: %s", (pattern, name, isFitting) => {
  expect(matchesModel(pattern, name)).toBe(isFitting);
});
