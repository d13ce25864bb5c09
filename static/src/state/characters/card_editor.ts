/** The editor of a card. */
import type { CardData, Character, DocumentUse } from "../../api/types.ts";
import type { VersionedCharacter } from "../../api/characters.ts";
import type { Api } from "../../api/api.ts";
import { type StoredVersion, VersionedEditor } from "../documents/versioned_editor.ts";

/** One card in the editor. It is not saved without a name. */
export class CardEditor extends VersionedEditor<Character, CardData> {
  readonly #api: Api;

  constructor(api: Api, id: string) {
    super({
      id,
      kind: "character",
      read: async () => toStoredVersion(await api.getCharacter(id)),
      write: async (data, version, { card }) =>
        toStoredVersion(await api.saveCharacter(id, { ...card, data }, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
    this.#api = api;
  }

  /** Changes the documents of the character; unsaved changes of its card are saved first. @throws {ApiError} */
  async changeDocuments(change: (uses: readonly DocumentUse[]) => DocumentUse[]): Promise<void> {
    await this.save();
    const { character, version } = await this.#api.getCharacter(this.id);
    await this.#api.saveCharacterDocuments(this.id, character.card, change(character.documents ?? []), version);
    await this.open();
  }
}

function toStoredVersion({ character, version }: VersionedCharacter): StoredVersion<Character, CardData> {
  return { whole: character, data: character.card.data, version };
}
