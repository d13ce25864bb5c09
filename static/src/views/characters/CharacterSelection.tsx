/** Actions for several selected characters. */
import type { CharacterItem } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import { SelectionBar } from "../../components/lists/SelectionBar.tsx";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import { downloadAll } from "../../components/ApiFile.tsx";
import { changeAll } from "../../state/app/selection.ts";
import { type Gallery, removeCharacters } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { FolderDialog } from "../shell/ChatDialogs.tsx";

/** The bar above the grid. Characters in folders of other programs can only be exported. */
export function CharacterSelection({ gallery }: { gallery: Gallery }) {
  const store = useStore();
  const { selection } = gallery;
  const [isFiling, setFiling] = useState(false);
  const t = texts.selection;
  const items = gallery.shown.value;
  const chosen = items.filter(({ id }) => selection.ids.value?.has(id));
  const own = chosen.filter(({ external }) => !external);
  const isFavorite = own.length > 0 && own.every(({ favorite }) => favorite);
  const favor = () => {
    const changed = own.filter(({ favorite }) => favorite === isFavorite);
    selection.end();
    void changeAll(store, changed, async ({ id }: CharacterItem) => {
      await gallery.setFavorite(id, !isFavorite);
      return () => gallery.setFavorite(id, isFavorite);
    }, isFavorite ? t.unfavored : t.favored);
  };
  const file = (folder: string | null) => {
    const changed = own.filter((item) => item.folder !== folder);
    selection.end();
    void changeAll(store, changed, async ({ id, folder: before }: CharacterItem) => {
      await gallery.setFolder(id, folder);
      return () => gallery.setFolder(id, before);
    }, t.charactersFiled);
  };
  const remove = () => {
    selection.end();
    removeCharacters(store, own.map(({ id }) => id), { done: t.charactersRemoved(own.length), undo: texts.undo });
  };
  const createExport = (label: string, choice: { format: string; image_metadata?: "keep" }): MenuItem => ({
    label,
    icon: "export",
    onSelect: () => void downloadAll(store, { kind: "characters", ids: chosen.map(({ id }) => id), ...choice }),
  });
  return (
    <>
      <SelectionBar
        selection={selection}
        count={chosen.length}
        allIds={items.map(({ id }) => id)}
        within=".characters-page"
      >
        <IconButton
          icon="folder"
          label={texts.nav.file}
          isDisabled={own.length === 0}
          onClick={() => setFiling(true)}
        />
        <IconButton
          icon="star"
          label={isFavorite ? t.unfavorite : t.favorite}
          isDisabled={own.length === 0}
          onClick={favor}
        />
        <Menu
          label={t.export}
          icon="export"
          isDisabled={chosen.length === 0}
          items={[
            ...(["png", "json", "charx"] as const).map((format) =>
              createExport(texts.characters.exportAs(format.toUpperCase()), { format })
            ),
            ...chosen.some(({ has_avatar }) => has_avatar)
              ? [createExport(texts.characters.exportWithMetadata, { format: "png", image_metadata: "keep" })]
              : [],
          ]}
        />
        <IconButton icon="trash" label={texts.characters.remove} isDisabled={own.length === 0} onClick={remove} />
      </SelectionBar>
      {isFiling && (
        <FolderDialog
          draftKey="folder:characters"
          title={t.fileCharacters(own.length)}
          folder={own.every(({ folder }) => folder === own[0]!.folder) ? own[0]?.folder ?? undefined : undefined}
          folders={gallery.folders.value.map(({ name }) => name)}
          canRemove={own.some(({ folder }) => folder !== null)}
          onSave={file}
          onClose={() => setFiling(false)}
        />
      )}
    </>
  );
}
