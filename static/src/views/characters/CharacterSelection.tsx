/** What can be done with several selected characters. */
import type { CharacterItem } from "../../api/types.ts";
import { IconButton } from "../../components/Button.tsx";
import { SelectionBar } from "../../components/lists/SelectionBar.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { changeAll, downloadAll } from "../../state/app/bulk.ts";
import { type Gallery, removeCharacters } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The bar above the grid. Characters in folders of other programs can only be exported. */
export function CharacterSelection({ gallery }: { gallery: Gallery }) {
  const store = useStore();
  const { selection } = gallery;
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
  const remove = () => {
    selection.end();
    removeCharacters(store, own.map(({ id }) => id), { done: t.charactersRemoved(own.length), undo: texts.undo });
  };
  return (
    <SelectionBar
      selection={selection}
      count={chosen.length}
      allIds={items.map(({ id }) => id)}
      within=".characters-page"
    >
      <IconButton
        icon="star"
        label={isFavorite ? t.unfavorite : t.favorite}
        isDisabled={own.length === 0}
        onClick={favor}
      />
      <Menu
        label={t.export}
        icon="down"
        isDisabled={chosen.length === 0}
        items={(["png", "json", "charx"] as const).map((format) => ({
          label: texts.characters.exportAs(format.toUpperCase()),
          icon: "down",
          onSelect: () => void downloadAll(store, { kind: "characters", ids: chosen.map(({ id }) => id), format }),
        }))}
      />
      <IconButton icon="trash" label={texts.characters.remove} isDisabled={own.length === 0} onClick={remove} />
    </SelectionBar>
  );
}
