/** The menu of a character: image, files, delete. */
import type { Character, CharacterItem } from "../../api/types.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { characterPath } from "../../api/characters.ts";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import type { CharacterPage } from "../../state/characters/character_page.ts";
import { getGallery, removeCharacters } from "../../state/characters/gallery.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ACCEPTED_IMAGES, convertImage } from "../../state/chat/attachments.ts";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";
import { warnAboutLargeExport } from "../documents/large_export.ts";
import { FolderDialog } from "../shell/ChatDialogs.tsx";
import { Icon } from "../../components/Icon.tsx";

/** The menu and its file input. */
export function CharacterMenu({ page, character }: { page: CharacterPage; character: Character }) {
  const store = useStore();
  const chooser = useRef<HTMLInputElement>(null);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const [isFiling, setFiling] = useState(false);
  const t = texts.characters;
  const replace = async (file: File | undefined) => {
    if (!file) return;
    try {
      await page.replaceImage(await convertImage(file));
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
        accept={ACCEPTED_IMAGES}
        onChange={(event) => {
          void replace(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      <Menu
        label={t.more}
        items={listItems(store, page, character, {
          choosePicture: () => chooser.current?.click(),
          openHistory: () => setHistoryOpen(true),
          openFolder: () => setFiling(true),
        })}
      />
      {isFiling && <CharacterFolder character={character} onClose={() => setFiling(false)} />}
      {isHistoryOpen && (
        <HistoryDialog
          path={characterPath(character.id)}
          name={character.name}
          current={character.card.data}
          fieldsOf={({ card }) => (card as { data: Record<string, unknown> }).data}
          names={texts.editor.fields}
          onRestored={() => void page.reload()}
          onClose={() => setHistoryOpen(false)}
        />
      )}
    </>
  );
}

/** Moves the character to a folder, new or existing. */
function CharacterFolder({ character: { id, folder }, onClose }: { character: Character; onClose: () => void }) {
  const store = useStore();
  const gallery = getGallery(store);
  useEffect(() => void gallery.loadFolders().catch((thrown) => store.report(thrown)), []);
  return (
    <FolderDialog
      draftKey={`folder:character:${id}`}
      title={texts.characters.fileTitle}
      folder={folder ?? undefined}
      folders={gallery.folders.value.map(({ name }) => name)}
      canRemove={folder !== null}
      onSave={(chosen) => {
        if (chosen !== folder) gallery.setFolder(id, chosen).catch((thrown) => store.report(thrown));
      }}
      onClose={onClose}
    />
  );
}

function listItems(
  store: Store,
  page: CharacterPage,
  character: Character,
  { choosePicture, openHistory, openFolder }: Record<"choosePicture" | "openHistory" | "openFolder", () => void>,
): (MenuItem | "line")[] {
  const t = texts.characters;
  const createExport = (label: string, query: string): MenuItem => {
    const href = `${characterPath(character.id)}/export?${query}`;
    return { label, icon: "export", href, onSelect: () => warnAboutLargeExport(store, href) };
  };
  const exports = (["png", "json", "charx"] as const).map((format) =>
    createExport(t.exportAs(format.toUpperCase()), `format=${format}`)
  );
  if (character.has_avatar) exports.push(createExport(t.exportWithMetadata, "format=png&image_metadata=keep"));
  if (character.external) return exports;
  const { state } = page.portrait.peek();
  const remove = () => {
    store.router.go("/characters");
    removeCharacters(store, [character.id], { done: t.removed(character.name), undo: texts.undo });
  };
  return [
    { label: t.replace, icon: "image", onSelect: choosePicture },
    {
      label: t.draw,
      icon: "wand",
      isDisabled: state === "pending" || state === "running",
      onSelect: () => void page.drawPortrait().catch((thrown) => store.report(thrown)),
    },
    { label: texts.nav.file, icon: "folder", onSelect: openFolder },
    { label: texts.history.open, icon: "history", onSelect: openHistory },
    "line",
    ...exports,
    "line",
    { label: t.remove, icon: "trash", isDanger: true, onSelect: remove },
  ];
}

/** Adds the character to the favorites or removes it. @param props.tabIndex In a grid with one tab stop. */
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
