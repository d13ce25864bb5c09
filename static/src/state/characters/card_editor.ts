/** A card while it is edited. */
import type { CardData, Character } from "../../api/types.ts";
import type { ReadCharacter } from "../../api/characters.ts";
import type { Api } from "../../api/api.ts";
import { type Standing, VersionedEditor } from "../documents/versioned_editor.ts";

/** One card being edited. Without a name it is not saved. */
export class CardEditor extends VersionedEditor<Character, CardData> {
  constructor(api: Api, id: string) {
    super({
      id,
      kind: "character",
      read: async () => standing(await api.getCharacter(id)),
      write: async (data, version, { card }) => standing(await api.saveCharacter(id, { ...card, data }, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

function standing({ character, version }: ReadCharacter): Standing<Character, CardData> {
  return { whole: character, data: character.card.data, version };
}
