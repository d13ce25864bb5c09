/** What a preset says of order, words and samplers, as a scene takes it. */
import type { Preset, PromptBlock } from "../presets/preset.ts";
import type { LayoutItem, PromptLayout } from "./prompt_layout.ts";
import type { ScenePreset } from "./prompt_context.ts";

/** By SillyTavern's numbers; a field of its own for the name (1) is more than many servers take. */
const NAMES: Record<number, PromptLayout["names"]> = { [-1]: "never", 2: "always" };

/** Gives the layout of a preset for one kind of generation. @param generation In SillyTavern's words: `normal`, … */
export function scenePreset(preset: Preset, generation: string): ScenePreset {
  const { id, name, blocks, texts, sampler, maxTokens, contextSize, isBuiltin } = preset;
  const prefill = generation === "impersonate" ? texts.impersonationPrefill : texts.assistantPrefill;
  return {
    ...{ id, name, contextSize },
    params: { ...sampler, ...(maxTokens !== undefined && { max_tokens: maxTokens }) },
    layout: {
      items: blocks.filter(({ triggers }) => triggers.length === 0 || triggers.includes(generation))
        .map((block) => itemOf(block, isBuiltin)),
      formats: {
        personality: texts.personalityFormat,
        scenario: texts.scenarioFormat,
        lore: texts.lorebookFormat || "{0}",
        chatBegins: texts.newChat,
        groupChatBegins: texts.newGroupChat,
        exampleBegins: texts.newExampleChat,
        groupNudge: texts.groupNudge,
        impersonation: texts.impersonation,
        emptyTurn: texts.sendIfEmpty,
      },
      prefill,
      ...(!preset.continuesByPrefill && texts.continueNudge.trim() !== "" && {
        continuation: { nudge: texts.continueNudge, joint: texts.continuePostfix },
      }),
      squashesSystem: preset.squashesSystemMessages,
      names: NAMES[preset.namesBehavior] ?? "group",
    },
  };
}

function itemOf(
  { identifier, name, role, content, marker, depth, depthOrder, forbidsOverrides }: PromptBlock,
  isBuiltin: boolean,
): LayoutItem {
  return {
    ...{ identifier, name, role, isFixed: forbidsOverrides },
    ...(marker === undefined && { content }),
    ...(depth !== undefined && { depth, order: depthOrder }),
    // Nobody chose that: where there is no character it would speak of none.
    ...(isBuiltin && marker === undefined && { needsCharacter: true }),
  };
}
