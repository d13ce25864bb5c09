/** Regex scripts in chats: on messages that are sent, on messages that are shown, and on a message that is edited. */
import type { ConversationHead } from "../conversations/conversation.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { PromptSource } from "../prompts/prompt.ts";
import { listScriptSources, type OpenPromptContext, type PromptContexts } from "../prompts/prompt_context.ts";
import type { Presets } from "../presets/presets.ts";
import type { ScriptPlacement, ScriptPurpose, ScriptText } from "../regex_scripts/regex_script.ts";
import type { AttachedScripts, RegexScripts } from "../regex_scripts/regex_scripts.ts";
import type { ScriptResult } from "../regex_scripts/script_runner.ts";
import { asString } from "../json/type_guards.ts";

/**
 * Returns a function that runs regex scripts on messages, newest first.
 *
 * @param offset 1 if the newest message is continued: the depth of messages counts from the one before it.
 */
export function createMessageScripts(
  { runScripts }: Pick<OpenPromptContext, "runScripts">,
  offset = 0,
): PromptSource["runScripts"] {
  if (runScripts === undefined) return undefined;
  return async (messages) => {
    // Calls of tools and their results aren't messages of the chat.
    const depths: number[] = [];
    let depth = -offset;
    for (const { message } of messages) depths.push(message.role === "tool" || message.tool_calls ? depth : depth++);
    const texts = messages.flatMap(({ scripted }, n) =>
      scripted?.texts.map((text): ScriptText => ({ text, placement: scripted.placement, depth: depths[n]! })) ?? []
    );
    const { texts: changed } = await runScripts(texts, "prompt");
    let at = 0;
    return messages.map((entry) => {
      const { scripted } = entry;
      if (scripted === undefined) return entry;
      const own = changed.slice(at, at += scripted.texts.length);
      return own.every((text, n) => text === scripted.texts[n])
        ? entry
        : { ...entry, message: scripted.toMessage(own) };
    });
  };
}

/** Dependencies of `ChatScripts`. */
export interface ChatScriptsDeps {
  store: ConversationStore;
  scenes: PromptContexts;
  presets: Pick<Presets, "resolve">;
  regexScripts: RegexScripts;
  /** Returns the model that the next reply of a conversation will probably come from, which may decide its preset. */
  findModel(head: ConversationHead): string | undefined;
}

/** A text of a message that is shown or edited. */
export interface ShownText extends ScriptText {
  placement: Extract<ScriptPlacement, "user_input" | "ai_output" | "reasoning">;
  /** The character that wrote it; by default the conversation's first one. */
  characterId?: string;
}

/** The scripts of conversations. */
export class ChatScripts {
  readonly #deps: ChatScriptsDeps;

  constructor(deps: ChatScriptsDeps) {
    this.#deps = deps;
  }

  /**
   * Lists the scripts of a conversation's preset and characters, with the owner's decisions.
   *
   * @returns Also whether any script changes what is shown or edited, and the deepest limit of those that do.
   * @throws {AppError} `not_found`, and as `PromptContexts.loadParticipants`
   */
  async list(id: string): Promise<{ attached: AttachedScripts[]; hasActive: boolean; maxDepth: number }> {
    const { store, scenes, presets, regexScripts, findModel } = this.#deps;
    const { head } = store.get(id);
    const [participants, preset] = await Promise.all([
      scenes.loadParticipants(head),
      presets.resolve({ conversationPresetId: asString(head.preset_id), model: findModel(head) ?? "" }),
    ]);
    const [ofPreset, ...first] = listScriptSources(preset, participants[0]);
    const sources = [
      ofPreset!,
      ...first,
      ...participants.slice(1).flatMap((member) => listScriptSources(preset, member).slice(1)),
    ];
    const shown = regexScripts.listActive(sources).map(({ script }) => script)
      .filter(({ isEnabled, isPromptOnly, isDisplayOnly }) => isEnabled && (isDisplayOnly || !isPromptOnly));
    return {
      attached: regexScripts.listAttached(sources),
      hasActive: shown.length > 0,
      maxDepth: Math.max(0, ...shown.flatMap(({ minDepth = 0, maxDepth = 0 }) => [minDepth, maxDepth])),
    };
  }

  /**
   * Runs the scripts on texts that are shown or edited.
   *
   * @throws {AppError} `not_found`, and as `PromptContexts.open`
   */
  async run(
    id: string,
    texts: readonly ShownText[],
    purpose: Exclude<ScriptPurpose, "prompt">,
    timeZone?: string,
  ): Promise<ScriptResult> {
    const { store, scenes, findModel } = this.#deps;
    const { head, messageCount } = store.get(id);
    const participants = await scenes.loadParticipants(head);
    const result: ScriptResult = { texts: texts.map(({ text }) => text), problems: [] };
    const groups = Map.groupBy(texts.keys(), (n) => texts[n]!.characterId);
    for (const [characterId, indexes] of groups) {
      const { runScripts } = await scenes.open({
        ...{ conversationId: id, fields: head, participants, messageCount, timeZone },
        ...{ model: findModel(head) ?? "", action: "reply", generation: "normal" },
        characterId: participants.some((member) => member.id === characterId) ? characterId : undefined,
      });
      if (runScripts === undefined) continue;
      const run = await runScripts(indexes.map((n) => texts[n]!), purpose);
      for (const [at, n] of indexes.entries()) result.texts[n] = run.texts[at]!;
      for (const problem of run.problems) {
        if (!result.problems.some(({ name }) => name === problem.name)) result.problems.push(problem);
      }
    }
    return result;
  }
}
