/** A lorebook while it is edited. */
import type { Lorebook } from "../../api/types.ts";
import type { ReadDocument } from "../../api/documents.ts";
import type { LorebookApi, LorebookFields } from "../../api/lorebooks.ts";
import { type Standing, VersionedEditor } from "./versioned_editor.ts";

/** One lorebook being edited. Without a name it is not saved. */
export class LorebookEditor extends VersionedEditor<Lorebook, LorebookFields> {
  constructor(api: LorebookApi, id: string) {
    super({
      id,
      kind: "lorebook",
      read: async () => standing(await api.read(id)),
      write: async (fields, version) => standing(await api.save(id, fields, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

function standing({ document, version }: ReadDocument<Lorebook>): Standing<Lorebook, LorebookFields> {
  const { name, enabled, scope, character_ids, persona_ids, book } = document;
  return { whole: document, data: { name, enabled, scope, character_ids, persona_ids, book }, version };
}
