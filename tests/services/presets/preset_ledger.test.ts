import { expect, test } from "vitest";
import { runAtOnce } from "../../../services/async/delay.ts";
import { BUILTIN_PRESET } from "../../../services/presets/preset.ts";
import { collectPresetLedger } from "../../../services/presets/preset_ledger.ts";
import { parseSillyTavernPreset } from "../../../services/presets/sillytavern.ts";

test("names scripts, unknown parts of the chat and settings without effect", () => {
  expect(runAtOnce(collectPresetLedger(BUILTIN_PRESET))).toEqual([]);
  const preset = parseSillyTavernPreset({
    temperature: 1,
    top_p: "high",
    new_chat_prompt: "Begin",
    wrap_in_quotes: false,
    openai_model: "big",
    chat_completion_source: "openai",
    seed_words: ["fox"],
    prompts: [
      { identifier: "main", content: "Hello" },
      { identifier: "charDescription", marker: true },
      { identifier: "weather", name: "Weather", marker: true },
    ],
    extensions: { regex_scripts: [{ scriptName: "Bold" }], SPreset: { on: true } },
  });
  expect(runAtOnce(collectPresetLedger(preset)).map(({ kind, count, examples }) => ({ kind, count, examples })))
    .toEqual([
      { kind: "preset_marker", count: 1, examples: ["Weather"] },
      { kind: "preset_setting", count: 3, examples: ["top_p", "seed_words", "extensions: SPreset"] },
      { kind: "preset_connection", count: 2, examples: ["openai_model", "chat_completion_source"] },
      { kind: "preset_regex_script", count: 1, examples: ["Bold"] },
    ]);
});

test("names the macros of prompts that Parlor doesn't have", () => {
  const prompts = [{ identifier: "main", content: "{{char}} {{upper::a}}{{if .a}}{{setvar::b}}c{{/setvar}}{{/if}}" }];
  expect(runAtOnce(collectPresetLedger(parseSillyTavernPreset({ temperature: 1, prompts })))).toMatchObject([
    { kind: "unknown_macro", count: 1, examples: ["{{upper}}"] },
  ]);
});

test("names the texts of the logit bias, or its list if that isn't in the file", () => {
  const read = (fields: object) =>
    runAtOnce(collectPresetLedger(parseSillyTavernPreset({ temperature: 1, ...fields })))
      .map(({ kind, examples }) => [kind, ...examples ?? []]);
  expect(read({ bias_preset_selected: "Default (none)" })).toEqual([]);
  expect(read({ bias_preset_selected: "Mine" })).toEqual([["preset_setting", "bias_preset_selected"]]);
  expect(read({ bias_preset_selected: "Mine", logit_bias: [{ text: "wolf", value: 1 }] })).toEqual([
    ["preset_logit_bias", "wolf"],
  ]);
});
