/** The editor of a preset. */
import type { Preset } from "../../api/types.ts";
import type { VersionedDocument } from "../../api/documents.ts";
import type { PresetApi, PresetDraft } from "../../api/presets.ts";
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
export function toPresetDraft(preset: Preset): PresetDraft {
  const { name, models, sampler, prompts, prompt_order, rest, extra_body = null, dialect } = preset;
  return { name, models, sampler, prompts, prompt_order, rest, extra_body, dialect };
}

function toStoredVersion({ document, version }: VersionedDocument<Preset>): StoredVersion<Preset, PresetDraft> {
  return { whole: document, data: toPresetDraft(document), version };
}

/** Copies a preset and returns the copy's id. The models stay with the original. @throws {ApiError} */
export async function copyPreset(api: PresetApi, id: string, name: string): Promise<string> {
  const { document } = await api.read(id);
  const made = newId();
  await api.save(made, { ...toPresetDraft(document), name, models: [] });
  return made;
}
