/** The command palette. */
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CharacterItem } from "../../api/types.ts";
import { Avatars } from "../characters/Avatars.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { findEntries, type PaletteEntry } from "./palette_entries.ts";

/** Shown over the page until something is chosen. */
export function Palette({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const id = useId();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const characters = useFoundCharacters(query);
  const chats = store.chats.shown.value;
  // Names of characters are part of the chats' names.
  useEffect(() => store.people.loadListItems(chats.flatMap((chat) => chat.character_ids)), [chats]);
  const listItems = store.people.listItems.value;
  const { connections } = store;
  const checks = connections.checks.value;
  useEffect(() => {
    // The servers list their models once somebody types.
    if (query === "") return;
    for (const { id, kind } of connections.shown.peek()) {
      if (kind !== "demo" && !connections.checks.peek().has(id)) void connections.probe(id);
    }
  }, [query === ""]);
  const groups = useMemo(() => findEntries(query, store, characters), [query, characters, chats, listItems, checks]);
  const entries = groups.flatMap((group) => group.entries);
  const current = Math.min(at, entries.length - 1);
  const optionId = (index: number) => `${id}-${index}`;
  useLayoutEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current, query]);
  const choose = (entry: PaletteEntry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return;
    const count = entries.length;
    if (event.key === "ArrowDown") setAt((current + 1) % count);
    else if (event.key === "ArrowUp") setAt((current + count - 1) % count);
    else if (event.key === "PageDown") setAt(Math.min(count - 1, current + 8));
    else if (event.key === "PageUp") setAt(Math.max(0, current - 8));
    else if (event.key === "Enter") choose(entries[current]);
    else return;
    event.preventDefault();
  };
  let index = -1;
  return (
    <Modal class="palette" label={texts.palette.title} onClose={onClose}>
      <div class="palette-inside">
        <div class="palette-field">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            autofocus
            value={query}
            placeholder={texts.paletteList.placeholder}
            aria-label={texts.palette.title}
            aria-expanded
            aria-autocomplete="list"
            aria-controls={id}
            aria-activedescendant={current < 0 ? undefined : optionId(current)}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              setQuery(event.currentTarget.value);
              setAt(0);
            }}
            onKeyDown={onKeyDown}
          />
        </div>
        <div ref={list} id={id} class="palette-list" role="listbox" aria-label={texts.palette.title} tabIndex={-1}>
          {groups.map((group, place) => (
            <div key={group.title} role="group" aria-labelledby={`${id}-g${place}`}>
              <p class="palette-group" id={`${id}-g${place}`}>{group.title}</p>
              {group.entries.map((entry) => {
                const own = ++index;
                return (
                  <div
                    key={entry.key}
                    id={optionId(own)}
                    class="palette-row"
                    role="option"
                    aria-selected={own === current}
                    onPointerMove={() => own !== current && setAt(own)}
                    onClick={() => choose(entry)}
                  >
                    {entry.avatarIds?.length
                      ? <Avatars ids={entry.avatarIds} widthPx={24} />
                      : <Icon name={entry.icon} />}
                    <span class="palette-title">{entry.title}</span>
                    {entry.hint && <span class="palette-hint">{entry.hint}</span>}
                  </div>
                );
              })}
            </div>
          ))}
        </div>
      </div>
    </Modal>
  );
}

/** Most characters listed; typing narrows them. */
const SHOWN = 8;

/** None without a query; the previous ones until the new ones arrive. */
function useFoundCharacters(query: string): readonly CharacterItem[] {
  const { api } = useStore();
  const [found, setFound] = useState<readonly CharacterItem[]>([]);
  const text = query.trim();
  useEffect(() => {
    if (text === "") return setFound([]);
    const leaving = new AbortController();
    api.listCharacters({ q: text, tag: "", sort: "name" }, SHOWN, undefined, leaving.signal).then(
      ({ items }) => !leaving.signal.aborted && setFound(items.filter(({ unreadable }) => !unreadable)),
      // Failures are ignored: the rest of the palette still works.
      () => {},
    );
    return () => leaving.abort();
  }, [text]);
  return found;
}
