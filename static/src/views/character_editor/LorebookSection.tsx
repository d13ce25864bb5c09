/** The lorebook of a card. Unknown fields of an entry stay. */
import type { CardBook, LorebookEntry } from "../../api/types.ts";
import { useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { EMPTY_ENTRY, getEntryTitle } from "../../state/documents/lorebook_entries.ts";
import type { CardEditor } from "../../state/characters/card_editor.ts";
import { texts } from "../../texts/texts.ts";
import { EntryForm } from "../lorebooks/EntryForm.tsx";

/** All entries, collapsed. */
export function LorebookSection({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  const book = editor.data.value!.character_book;
  const entries = book?.entries ?? [];
  const [opened, setOpened] = useState<number>();
  const add = useRef<HTMLDivElement>(null);
  const set = (changed: LorebookEntry[]) => {
    const character_book: CardBook = { extensions: {}, ...book, entries: changed };
    editor.set({ character_book });
  };
  const change = (at: number, changes: Partial<LorebookEntry>) =>
    set(entries.map((entry, index) => index === at ? { ...entry, ...changes } : entry));
  const remove = (at: number) => {
    setOpened(undefined);
    set(entries.filter((_, index) => index !== at));
    add.current?.querySelector("button")?.focus();
  };
  return (
    <>
      <p class="hint">{t.bookHint}</p>
      {entries.length > 0 && (
        <ul class="book">
          {entries.map((entry, index) => (
            <li key={index} class={entry.enabled ? "book-entry" : "book-entry is-off"}>
              <button
                type="button"
                class="book-summary"
                aria-expanded={opened === index}
                onClick={() => setOpened(opened === index ? undefined : index)}
              >
                <Icon name={opened === index ? "up" : "below"} />
                <span class="book-title">{getEntryTitle(entry) || t.entryNth(index + 1)}</span>
                {!entry.enabled && <span class="badge">{t.entryOff}</span>}
              </button>
              {opened === index && (
                <EntryForm
                  entry={entry}
                  onChange={(changes) => change(index, changes)}
                  onRemove={() => remove(index)}
                />
              )}
            </li>
          ))}
        </ul>
      )}
      <div ref={add}>
        <Button
          icon="plus"
          onClick={() => {
            setOpened(entries.length);
            set([...entries, EMPTY_ENTRY]);
          }}
        >
          {t.addEntry}
        </Button>
      </div>
    </>
  );
}
