/** All characters by portrait: search, tags, order, and the ways to add more. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ImportedCard } from "../../api/characters.ts";
import type { CharacterItem } from "../../api/types.ts";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { memo, useMedia, useTitle } from "../../components/hooks.ts";
import { VirtualGrid } from "../../components/lists/VirtualGrid.tsx";
import { Menu, PHONE_QUERY } from "../../components/overlays/Menu.tsx";
import type { CharacterOrder } from "../../api/characters.ts";
import { type Gallery, getGallery } from "../../state/characters/gallery.ts";
import type { Selection } from "../../state/app/selection.ts";
import { CardImports } from "../../state/import_export/card_imports.ts";
import { isProgramExport } from "../../state/import_export/imports.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { CharacterSelection } from "./CharacterSelection.tsx";
import { DropArea } from "./DropArea.tsx";
import { FavoriteButton } from "./CharacterMenu.tsx";
import { describeImported, ImportedCards, ImportNotices, notifyImported } from "./ImportNotices.tsx";
import { NewCharacterDialog } from "./NewCharacterDialog.tsx";
import { toPortraitProps } from "./Avatars.tsx";
import { PageHeader } from "../shell/PageHeader.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";

/** Filter of the file dialog; the server checks the content. */
const CARD_FILES = ".png,.json,.charx,.webp,.jpg,.jpeg,image/png,application/json";

/** Least width of a card in pixels: two fit side by side on a phone. */
const MIN_TILE_PX = 148;
/** More imported cards than this are folded. */
const OPEN_CARDS = 8;
/** The name is below the portrait. */
const NAME_PX = 36;

/** The screen. */
export function GalleryScreen() {
  const store = useStore();
  const gallery = getGallery(store);
  const arrived = useSignal<readonly ImportedCard[]>([]);
  const imports = useMemo(
    () =>
      new CardImports(
        (file) => store.api.importCharacter(file),
        (cards) => {
          // A toast links to a single one.
          arrived.value = cards.length > 1 ? cards : [];
          if (cards.length === 1) notifyImported(store, cards);
        },
        isProgramExport,
      ),
    [],
  );
  const dialog = useSignal<"url" | "new" | undefined>(undefined);
  useTitle(`${texts.characters.title} · ${texts.product}`);
  useEffect(() => gallery.open(), []);
  const close = () => dialog.value = undefined;
  return (
    <main id="main" class="page characters-page" tabIndex={-1}>
      <DropArea
        onFiles={(files, folders) => {
          void imports.add(files, folders.map((name) => ({ name, reason: texts.characters.folder })));
        }}
      >
        <Head
          imports={imports}
          onUrl={() => dialog.value = "url"}
          onNew={() => dialog.value = "new"}
        />
        <ImportNotices imports={imports} />
        {arrived.value.length > 0 && (
          <div class="gallery-note">
            <details open={arrived.value.length <= OPEN_CARDS}>
              <summary>
                <span role="status">{describeImported(arrived.value)}</span>
              </summary>
              <ImportedCards cards={arrived.value} />
              <Button onClick={() => arrived.value = []}>{texts.close}</Button>
            </details>
          </div>
        )}
        <Body gallery={gallery} onNew={() => dialog.value = "new"} />
      </DropArea>
      {dialog.value === "url" && <ImportUrlDialog onClose={close} />}
      {dialog.value === "new" && <NewCharacterDialog onClose={close} />}
    </main>
  );
}

function Head({ imports, onUrl, onNew }: { imports: CardImports<ImportedCard>; onUrl: () => void; onNew: () => void }) {
  const store = useStore();
  const isPhone = useMedia(PHONE_QUERY);
  const chooser = useRef<HTMLInputElement>(null);
  const t = texts.characters;
  const choose = () => chooser.current?.click();
  const restore = async () => {
    try {
      const character = await store.api.restoreBuiltin();
      store.toasts.show(t.restored(character.name));
    } catch (thrown) {
      store.report(thrown);
    }
  };
  return (
    <PageHeader title={t.title}>
      <input
        ref={chooser}
        type="file"
        hidden
        multiple
        accept={CARD_FILES}
        onChange={(event) => {
          void imports.add([...event.currentTarget.files ?? []]);
          event.currentTarget.value = "";
        }}
      />
      {isPhone ? <IconButton icon="plus" label={t.create} onClick={onNew} /> : (
        <>
          <LinkButton href="/characters/browse" icon="search" kind="quiet">{t.browse}</LinkButton>
          <Button onClick={choose}>{t.import}</Button>
          <Button icon="plus" kind="primary" onClick={onNew}>{t.create}</Button>
        </>
      )}
      <Menu
        label={t.moreHere}
        items={[
          ...(isPhone
            ? [
              { label: t.import, icon: "import" as const, onSelect: choose },
              { label: t.browse, icon: "search" as const, href: "/characters/browse" },
            ]
            : []),
          { label: texts.nav.select, icon: "check", onSelect: () => getGallery(store).selection.start() },
          { label: t.importUrl, icon: "next", onSelect: onUrl },
          { label: t.restore, icon: "restore", onSelect: () => void restore() },
        ]}
      />
    </PageHeader>
  );
}

function Body({ gallery, onNew }: { gallery: Gallery; onNew: () => void }) {
  const t = texts.characters;
  const items = gallery.shown.value;
  const error = gallery.error.value;
  if (gallery.state.value === "loading") return <p class="chat-loading" role="status">{texts.loading}</p>;
  if (gallery.state.value === "ready" && items.length === 0 && gallery.isWhole.value) {
    return (
      <EmptyState title={t.emptyTitle} text={t.emptyText}>
        <Button kind="primary" icon="plus" onClick={onNew}>{t.create}</Button>
      </EmptyState>
    );
  }
  return (
    <>
      {gallery.selection.isActive.value ? <CharacterSelection gallery={gallery} /> : <GalleryTools gallery={gallery} />}
      {error && (
        <div class="gallery-note">
          <ErrorNote title={t.loadFailed} error={error} onRetry={() => void gallery.refresh()} />
        </div>
      )}
      {gallery.state.value === "ready" && items.length === 0
        ? (
          <EmptyState title={t.nothing} text={t.nothingText}>
            <Button onClick={() => gallery.narrow({ q: "", tag: "", favorite: false, folder: undefined })}>
              {t.showAll}
            </Button>
          </EmptyState>
        )
        : <Grid gallery={gallery} items={items} />}
    </>
  );
}

function Grid({ gallery, items }: { gallery: Gallery; items: CharacterItem[] }) {
  const { q, tag, favorite, folder, sort } = gallery.query.value;
  const { selection } = gallery;
  const selected = selection.ids.value;
  return (
    <VirtualGrid
      // Another filter scrolls to the top.
      key={JSON.stringify([q, tag, favorite, folder, sort])}
      class="gallery"
      label={texts.characters.title}
      items={items}
      keyOf={(item) => item.id}
      minWidthPx={MIN_TILE_PX}
      heightOf={(widthPx) => widthPx * 1.4 + NAME_PX}
      memory={gallery.place}
      onEnd={() => void gallery.more()}
    >
      {(item, tabIndex) =>
        selected
          ? (
            <SelectableTile
              item={item}
              tabIndex={tabIndex}
              isSelected={selected.has(item.id)}
              onPress={(isRange) =>
                isRange ? selection.extend(item.id, items.map(({ id }) => id)) : selection.toggle(item.id)}
            />
          )
          : <CharacterTile item={item} tabIndex={tabIndex} selection={selection} />}
    </VirtualGrid>
  );
}

/** A tile while several are being selected. */
function SelectableTile({ item, tabIndex, isSelected, onPress }: {
  item: CharacterItem;
  tabIndex: number;
  isSelected: boolean;
  onPress: (isRange: boolean) => void;
}) {
  return (
    <label class="tile is-selectable">
      <input
        type="checkbox"
        tabIndex={tabIndex}
        aria-label={item.name}
        checked={isSelected}
        onClick={(event) => onPress(event.shiftKey)}
      />
      <Portrait {...toPortraitProps(item)} widthPx={WIDTH_PX} class="tile-portrait" />
      <span class="tile-name">{item.name}</span>
    </label>
  );
}

/** Wide enough for the widest card of the grid, in pixels. */
const WIDTH_PX = 192;

/** Where damaged things are restored. */
const DAMAGED_PATH = "/settings/data#unreadable";

/** A link to the character's page, and its star. */
const CharacterTile = memo((
  { item, tabIndex, selection }: { item: CharacterItem; tabIndex: number; selection: Selection },
) => (
  <>
    <a
      class="tile"
      href={item.unreadable ? DAMAGED_PATH : `/characters/${encodeURIComponent(item.id)}`}
      tabIndex={tabIndex}
      title={item.name}
      onClick={(event) => {
        if (!event.shiftKey) return;
        event.preventDefault();
        selection.start(item.id);
      }}
      onContextMenu={(event) => {
        // A long press.
        if ((event as unknown as PointerEvent).pointerType !== "touch") return;
        event.preventDefault();
        selection.start(item.id);
      }}
    >
      <Portrait {...toPortraitProps(item)} widthPx={WIDTH_PX} class="tile-portrait" />
      <span class="tile-name">{item.name}</span>
      {item.unreadable && <span class="badge tile-badge">{texts.unreadable.badge}</span>}
    </a>
    {!item.external && !item.unreadable && <FavoriteButton item={item} tabIndex={tabIndex} />}
  </>
));

/** Search as you type, one tag, the order. */
function GalleryTools({ gallery }: { gallery: Gallery }) {
  const t = texts.characters;
  const { q, tag, favorite = false, sort } = gallery.query.value;
  const tags = gallery.tags.value;
  // The selected tag stays visible even if nothing in the list has it.
  const choices = tag === "" || tags.includes(tag) ? tags : [tag, ...tags];
  return (
    <search class="gallery-tools">
      <input
        type="search"
        value={q}
        placeholder={t.search}
        aria-label={t.search}
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        onInput={(event) => gallery.narrow({ q: event.currentTarget.value })}
      />
      <IconButton
        icon="star"
        label={t.onlyFavorites}
        isPressed={favorite}
        onClick={() => gallery.narrow({ favorite: !favorite })}
      />
      <FolderFilter gallery={gallery} />
      <select aria-label={t.tag} value={tag} onChange={(event) => gallery.narrow({ tag: event.currentTarget.value })}>
        <option value="">{t.allTags}</option>
        {choices.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
      <select
        aria-label={t.sort}
        value={sort}
        onChange={(event) => gallery.narrow({ sort: event.currentTarget.value as CharacterOrder })}
      >
        {ORDERS.map((order) => <option key={order} value={order}>{t.sorts[order]}</option>)}
      </select>
    </search>
  );
}

const ORDERS: readonly CharacterOrder[] = ["favorites", "talked", "name", "updated"];

/** Values of the select; those of folders begin with {@link IN}. */
const [ANYWHERE, NOWHERE, IN] = ["", "none", "in:"];

/** One folder, all, or the characters in none. Nothing while there is no folder. */
function FolderFilter({ gallery }: { gallery: Gallery }) {
  const t = texts.characters;
  const { folder } = gallery.query.value;
  const folders = gallery.folders.value;
  if (folders.length === 0 && folder === undefined) return null;
  // The selected folder stays visible when its last character has left it.
  const isGone = typeof folder === "string" && !folders.some(({ name }) => name === folder);
  const choices = isGone ? [{ name: folder, count: 0 }, ...folders] : folders;
  return (
    <select
      aria-label={texts.nav.folderLabel}
      value={folder === undefined ? ANYWHERE : folder === null ? NOWHERE : IN + folder}
      onChange={({ currentTarget: { value } }) =>
        gallery.narrow({ folder: value === ANYWHERE ? undefined : value === NOWHERE ? null : value.slice(IN.length) })}
    >
      <option value={ANYWHERE}>{t.allFolders}</option>
      {choices.map(({ name, count }) => <option key={name} value={IN + name}>{t.folderOption(name, count)}</option>)}
      <option value={NOWHERE}>{t.noFolder}</option>
    </select>
  );
}

/** Stays open with its input if the import fails. */
function ImportUrlDialog({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const [url, setUrl] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const draft = useFormDraft("character:import");
  const t = texts.characters;
  const send = async (event: Event) => {
    event.preventDefault();
    if (url.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const character = await store.api.importCharacterFrom(url.trim());
      draft.clear();
      onClose();
      notifyImported(store, [character]);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.importUrl}
      onClose={onClose}
      actions={
        <>
          <CancelButton draft={draft} onCancel={onClose} />
          <Button kind="primary" type="submit" form="import-url" isBusy={isBusy}>{t.urlDo}</Button>
        </>
      }
    >
      <form id="import-url" class="form" onSubmit={send}>
        <Drafted draft={draft}>
          <TextField type="url" label={t.url} hint={t.urlHint} value={url} onInput={setUrl} hasFocus isRequired />
        </Drafted>
        {error && <ErrorNote title={t.urlFailed} error={error} />}
      </form>
    </Dialog>
  );
}
