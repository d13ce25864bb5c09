/** A preset while it is edited. */
import type { Preset } from "../../api/types.ts";
import type { ReadDocument } from "../../api/documents.ts";
import type { PresetApi, PresetFields } from "../../api/presets.ts";
import { newId } from "../app/ids.ts";
import { type Standing, VersionedEditor } from "./versioned_editor.ts";

/** One preset being edited. Without a name it is not saved. */
export class PresetEditor extends VersionedEditor<Preset, PresetFields> {
  constructor(api: PresetApi, id: string) {
    super({
      id,
      kind: "preset",
      read: async () => standing(await api.read(id)),
      write: async (fields, version) => standing(await api.save(id, fields, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

/** Gives what a person changes in a preset. */
export function fieldsOf({ name, models, sampler, prompts, prompt_order, rest, dialect }: Preset): PresetFields {
  return { name, models, sampler, prompts, prompt_order, rest, dialect };
}

function standing({ document, version }: ReadDocument<Preset>): Standing<Preset, PresetFields> {
  return { whole: document, data: fieldsOf(document), version };
}

/** Makes a preset out of another one; gives its id. The models stay with the one they were given to. @throws {ApiError} */
export async function copyPreset(api: PresetApi, id: string, name: string): Promise<string> {
  const { document } = await api.read(id);
  const made = newId();
  await api.save(made, { ...fieldsOf(document), name, models: [] });
  return made;
}
