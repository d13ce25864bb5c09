/** Preset files of SillyTavern, there and back, and what prompts make of them. */
import { readPreset } from "../../../services/presets/preset.ts";
import { parsePresetFile, parseSillyTavernPreset, toSillyTavernPreset } from "../../../services/presets/sillytavern.ts";
import { jsonText, mutateBytes, mutateJson } from "../mutations.ts";
import { claim, claimSame, target, unlessRefused } from "../target.ts";

const SAMPLES = ["preset_chat_completion.json", "preset_text_completion.json"].map((name) =>
  JSON.parse(Deno.readTextFileSync(new URL(`../../fixtures/sillytavern/${name}`, import.meta.url)))
);

const encoder = new TextEncoder();

export const PRESETS = target<Uint8Array>({
  name: "presets",
  generate(random) {
    const bytes = encoder.encode(jsonText(random, mutateJson(random, random.pick(SAMPLES))));
    return random.chance(0.1) ? mutateBytes(random, bytes) : bytes;
  },
  run(bytes) {
    const file = unlessRefused(() => parsePresetFile(bytes));
    if (file === undefined) return;
    const again = parseSillyTavernPreset(JSON.parse(JSON.stringify(toSillyTavernPreset(file.preset))));
    claimSame(toSillyTavernPreset(again), toSillyTavernPreset(file.preset), "A preset changes when it is read again");
    const { blocks, texts, sampler } = readPreset({ id: "p", name: "p", isBuiltin: false }, file.preset);
    claim(blocks.some(({ marker }) => marker === "chatHistory"), () => "A preset has no place for the chat");
    claim(
      blocks.every(({ content, name }) => typeof content === "string" && typeof name === "string"),
      () => "No text",
    );
    claim(Object.values(texts).every((text) => typeof text === "string"), () => "A text of a preset is none");
    claim(Object.values(sampler).every((value) => typeof value === "number"), () => "A sampler is no number");
  },
  cases: {
    "100,000 levels of JSON": () => encoder.encode(`${'{"prompts":['.repeat(100_000)}1`),
    "2,000 prompts in 1,000 orders": () => {
      const prompts = Array.from({ length: 2_000 }, (_, n) => ({ identifier: `p${n}`, content: "x" }));
      const order = prompts.slice(0, 40).map(({ identifier }) => ({ identifier, enabled: true }));
      const orders = Array.from({ length: 1_000 }, (_, n) => ({ character_id: n, order }));
      return encoder.encode(JSON.stringify({ temperature: 1, prompts, prompt_order: orders }));
    },
    "a prompt named like a member of every object": () =>
      encoder.encode('{"temperature":1,"__proto__":{"a":1},"prompts":[{"identifier":"constructor","content":"x"}]}'),
  },
});
