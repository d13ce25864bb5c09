/** A preset while it is edited. */
import type { Preset } from "../../api/types.ts";
import type { VersionedDocument } from "../../api/documents.ts";
import type { PresetApi, PresetDraft } from "../../api/presets.ts";
import { newId } from "../app/ids.ts";
import { type StoredVersion, VersionedEditor } from "./versioned_editor.ts";

/** One preset being edited. Without a name it is not saved. */
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

/** Gives what a person changes in a preset. */
export function toPresetDraft({ name, models, sampler, prompts, prompt_order, rest, dialect }: Preset): PresetDraft {
  return { name, models, sampler, prompts, prompt_order, rest, dialect };
}

function toStoredVersion({ document, version }: VersionedDocument<Preset>): StoredVersion<Preset, PresetDraft> {
  return { whole: document, data: toPresetDraft(document), version };
}

/** Makes a preset out of another one; gives its id. The models stay with the one they were given to. @throws {ApiError} */
export async function copyPreset(api: PresetApi, id: string, name: string): Promise<string> {
  const { document } = await api.read(id);
  const made = newId();
  await api.save(made, { ...toPresetDraft(document), name, models: [] });
  return made;
}
