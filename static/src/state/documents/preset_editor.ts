/** The editor of a preset, and the order of its prompts. */
import type { Preset, PresetOrder, PresetPrompt, PromptOrderItem } from "../../api/types.ts";
import type { PresetApi, PresetDraft, VersionedDocument } from "../../api/documents.ts";
import { newId } from "../app/ids.ts";
import { type StoredVersion, VersionedEditor } from "./versioned_editor.ts";

/** One preset in the editor. It is not saved without a name. */
export class PresetEditor extends VersionedEditor<Preset, PresetDraft> {
  constructor(api: PresetApi, id: string) {
    super({
      id,
      kind: "preset",
      read: async () => toStoredVersion(await api.read(id)),
      write: async (fields, version) => toStoredVersion(await api.save(id, fields, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

/** Returns the fields that the editor changes. */
function toPresetDraft(preset: Preset): PresetDraft {
  const { name, models, sampler, prompts, prompt_order, rest, extra_body = null, dialect } = preset;
  return { name, models, sampler, prompts, prompt_order, rest, extra_body, dialect };
}

function toStoredVersion({ document, version }: VersionedDocument<Preset>): StoredVersion<Preset, PresetDraft> {
  return { document, data: toPresetDraft(document), version };
}

/** Copies a preset and returns the copy's id. The models stay with the original. @throws {ApiError} */
export async function copyPreset(api: PresetApi, id: string, name: string): Promise<string> {
  const { document } = await api.read(id);
  const newPresetId = newId();
  await api.save(newPresetId, { ...toPresetDraft(document), name, models: [] });
  return newPresetId;
}

/** SillyTavern's number of the order for every character. */
const COMMON_ORDER = 100001;
const LEGACY_ORDER = 100000;

/** Parts of the chat that the order names. */
const MARKERS = [
  "worldInfoBefore",
  "personaDescription",
  "charDescription",
  "charPersonality",
  "scenario",
  "worldInfoAfter",
  "dialogueExamples",
  "chatHistory",
] as const;

/** Prompts that every preset has and that can't be removed. */
const FIXED: readonly string[] = [...MARKERS, "main", "nsfw", "jailbreak"];

/** One row of the order. */
export interface OrderedPrompt extends PromptOrderItem {
  prompt: PresetPrompt;
}

/** Returns whether a prompt is a marker for a part of the chat. */
export function isMarker(identifier: string): boolean {
  return (MARKERS as readonly string[]).includes(identifier);
}

/** Returns whether every preset has this prompt. */
export function isFixed(identifier: string): boolean {
  return FIXED.includes(identifier);
}

/** Returns the prompts in the order that applies. */
export function listOrder(preset: PresetDraft): OrderedPrompt[] {
  const known = new Map(preset.prompts.map((prompt) => [prompt.identifier, prompt]));
  const seen = new Set<string>();
  return (preset.prompt_order[orderAt(preset.prompt_order)]?.order ?? []).flatMap((item) => {
    const { identifier } = item;
    if (seen.has(identifier) || (!known.has(identifier) && !isFixed(identifier))) return [];
    seen.add(identifier);
    return [{ ...item, prompt: known.get(identifier) ?? { identifier, marker: isMarker(identifier) } }];
  });
}

/** Returns the prompts that are not in the order. */
export function listUnordered(preset: PresetDraft): PresetPrompt[] {
  const placed = new Set(listOrder(preset).map(({ identifier }) => identifier));
  return preset.prompts.filter(({ identifier }) => !placed.has(identifier));
}

/** Returns the change that sets the order that applies; other orders of a file stay. */
export function setOrder(
  preset: PresetDraft,
  items: readonly PromptOrderItem[],
): Pick<PresetDraft, "prompt_order"> {
  const order = items.map(({ prompt: _, ...item }: PromptOrderItem & { prompt?: unknown }) => item as PromptOrderItem);
  const at = orderAt(preset.prompt_order);
  if (at < 0) return { prompt_order: [...preset.prompt_order, { character_id: COMMON_ORDER, order }] };
  return { prompt_order: preset.prompt_order.map((each, index) => index === at ? { ...each, order } : each) };
}

/** Returns the change of one prompt. */
export function replacePrompt(
  preset: PresetDraft,
  identifier: string,
  changes: Partial<PresetPrompt>,
): Pick<PresetDraft, "prompts"> {
  const isKnown = preset.prompts.some((prompt) => prompt.identifier === identifier);
  const prompts = isKnown ? preset.prompts : [...preset.prompts, { identifier }];
  return {
    prompts: prompts.map((prompt) => prompt.identifier === identifier ? { ...prompt, ...changes } : prompt),
  };
}

/** Moves one item of a list. */
export function moved<T>(items: readonly T[], from: number, to: number): T[] {
  const rest = items.filter((_, index) => index !== from);
  return [...rest.slice(0, to), items[from]!, ...rest.slice(to)];
}

/** The common order, else the old one, else the first; -1 without any. */
function orderAt(orders: readonly PresetOrder[]): number {
  const byNumber = (number: number) => orders.findIndex(({ character_id }) => Number(character_id) === number);
  const common = byNumber(COMMON_ORDER);
  if (common >= 0) return common;
  const legacy = byNumber(LEGACY_ORDER);
  return legacy >= 0 ? legacy : orders.length > 0 ? 0 : -1;
}
