/** The star of a character. */
import type { CharacterItem } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { getGallery } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Makes the character a favorite, or no longer. @param props.tabIndex In a grid with one tab stop. */
export function FavoriteButton({ item, tabIndex }: { item: CharacterItem; tabIndex?: number }) {
  const store = useStore();
  const t = texts.characters;
  const label = item.favorite ? t.unfavorite(item.name) : t.favorite(item.name);
  return (
    <button
      type="button"
      class="icon-button quiet favorite"
      title={label}
      aria-label={label}
      aria-pressed={item.favorite}
      tabIndex={tabIndex}
      onClick={() =>
        void getGallery(store).setFavorite(item.id, !item.favorite).catch((thrown) => store.report(thrown))}
    >
      <Icon name="star" />
    </button>
  );
}
