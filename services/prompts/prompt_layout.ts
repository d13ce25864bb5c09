/** In which order the pieces of a prompt stand, and the words around them; see preset_layout.ts for where both come from. */
import type { Preset, PromptBlock } from "../presets/preset.ts";
import type { ScenePreset } from "./prompt_context.ts";

/** One item of the order: a piece that everybody knows by its name, or a text of its own. */
export interface LayoutItem {
  /** `main`, `charDescription`, `chatHistory`, … as presets name them, or a name of its own. */
  identifier: string;
  name?: string;
  role: "system" | "user" | "assistant";
  /** What a piece says that is not filled from card, persona or lorebooks. */
  content?: string;
  /** Set into the history with so many messages behind it; in its place in the order without. */
  depth?: number;
  /** Among those of one depth. */
  order?: number;
  /** True where a card must not put its own text in the place of this one. */
  isFixed?: boolean;
  /** True where it says nothing without a character. */
  needsCharacter?: boolean;
}

/** Words around the pieces. `{{…}}` are macros; `{0}` is what stands in the middle. */
export interface LayoutFormats {
  personality: string;
  scenario: string;
  lore: string;
  chatBegins: string;
  groupChatBegins: string;
  exampleBegins: string;
  groupNudge: string;
  impersonation: string;
  /** The owner's turn where there is none. */
  emptyTurn: string;
}

/** The order and the words. */
export interface PromptLayout {
  /** Those that are switched on, in their order. */
  items: LayoutItem[];
  formats: LayoutFormats;
  /** The begin of every answer. */
  prefill?: string;
  /**
   * How a continuation is asked for by a sentence: the sentence, sent last, and what stands between the answer and what
   * is added. Without it the answer itself stands last, as the begin of what the model writes.
   */
  continuation?: { nudge: string; joint: string };
  /** System messages that follow one another become one, also where they come from different parts. */
  squashesSystem?: boolean;
  /** Where the name of whoever speaks stands before a message. */
  names: "group" | "always" | "never";
}

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
