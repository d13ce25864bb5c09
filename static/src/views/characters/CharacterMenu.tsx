/** What can be done with a character beside talking: its picture, its files, its end. */
import { useRef } from "preact/hooks";
import { characterPath } from "../../api/character_endpoints.ts";
import type { Character } from "../../api/character_types.ts";
import { Menu, type MenuItem } from "../../components/Menu.tsx";
import type { CharacterPage } from "../../state/character_page.ts";
import { removeCharacter } from "../../state/gallery.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Pictures the server takes. */
const PICTURES = "image/png,image/jpeg,image/webp,image/gif";

/** The menu, and the choice of a file behind it. */
export function CharacterMenu({ page, character }: { page: CharacterPage; character: Character }) {
  const store = useStore();
  const chooser = useRef<HTMLInputElement>(null);
  const t = texts.characters;
  const replace = async (file: File | undefined) => {
    if (!file) return;
    try {
      await page.replacePicture(file);
      store.toasts.show(t.replaced);
    } catch (thrown) {
      store.report(thrown);
    }
  };
  return (
    <>
      <input
        ref={chooser}
        type="file"
        hidden
        accept={PICTURES}
        onChange={(event) => {
          void replace(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      <Menu label={t.more} items={itemsOf(store, page, character, () => chooser.current?.click())} />
    </>
  );
}

function itemsOf(
  store: Store,
  page: CharacterPage,
  character: Character,
  choosePicture: () => void,
): (MenuItem | "line")[] {
  const t = texts.characters;
  const exports = (["png", "json", "charx"] as const).map((format): MenuItem => ({
    label: t.exportAs(format.toUpperCase()),
    icon: "down",
    href: `${characterPath(character.id)}/export?format=${format}`,
  }));
  if (character.external) return exports;
  const { state } = page.portrait.peek();
  const remove = () => {
    store.router.go("/characters");
    removeCharacter(store, character.id, { done: t.removed(character.name), undo: texts.undo });
  };
  return [
    { label: t.replace, icon: "image", onSelect: choosePicture },
    {
      label: t.draw,
      icon: "pencil",
      isDisabled: state === "pending" || state === "running",
      onSelect: () => void page.drawPortrait().catch((thrown) => store.report(thrown)),
    },
    "line",
    ...exports,
    "line",
    { label: t.remove, icon: "trash", isDanger: true, onSelect: remove },
  ];
}
