/** The entries of a lorebook, possibly thousands, and the form of the open one. */
import type { LorebookEntry } from "../../api/types.ts";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { VirtualList } from "../../components/lists/VirtualList.tsx";
import {
  EMPTY_ENTRY,
  getEntryTitle,
  type IndexedEntry,
  searchEntries,
} from "../../state/documents/lorebook_entries.ts";
import { texts } from "../../texts/texts.ts";
import { EntryForm } from "./EntryForm.tsx";
import type { LorebookSectionProps } from "./LorebooksPage.tsx";

/** Height of a row in px: two lines of text. */
const ROW_PX = 60;
/** Most rows in view. */
const ROWS = 9;

/** The list, or one entry in its place. */
export function EntryList({ editor }: LorebookSectionProps) {
  const [opened, setOpened] = useState<number>();
  const [query, setQuery] = useState("");
  const { book } = editor.data.value!;
  const set = (entries: LorebookEntry[], step: string) => editor.set({ book: { ...book, entries } }, step);
  // Undo may have removed the open entry.
  const entry = opened === undefined ? undefined : book.entries[opened];
  if (opened === undefined || entry === undefined) {
    return (
      <Overview
        entries={searchEntries(book, query)}
        isEmpty={book.entries.length === 0}
        query={query}
        onQuery={setQuery}
        onOpen={setOpened}
        onAdd={() => {
          setOpened(book.entries.length);
          set([...book.entries, { ...EMPTY_ENTRY, selective: false, use_regex: true }], "add");
        }}
      />
    );
  }
  const change = (changes: Partial<LorebookEntry>) =>
    set(
      book.entries.map((each, index) => index === opened ? { ...each, ...changes } : each),
      `${opened} ${Object.keys(changes).join()}`,
    );
  return (
    <OpenedEntry
      title={getEntryTitle(entry) || texts.editor.entryNth(opened + 1)}
      onBack={() => setOpened(undefined)}
    >
      <EntryForm
        key={opened}
        entry={entry}
        onChange={change}
        onRemove={() => {
          setOpened(undefined);
          set(book.entries.filter((_, index) => index !== opened), "remove");
        }}
      />
    </OpenedEntry>
  );
}

function OpenedEntry(
  { title, onBack, children }: { title: string; onBack: () => void; children: ComponentChildren },
) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  return (
    <div class="form">
      <div class="entry-head">
        <Button icon="left" kind="quiet" onClick={onBack}>{texts.lorebooks.toEntries}</Button>
        <h3 ref={head} tabIndex={-1}>{title}</h3>
      </div>
      {children}
    </div>
  );
}

function Overview(
  { entries, isEmpty, query, onQuery, onOpen, onAdd }: {
    entries: IndexedEntry[];
    isEmpty: boolean;
    query: string;
    onQuery: (query: string) => void;
    onOpen: (index: number) => void;
    onAdd: () => void;
  },
) {
  const t = texts.lorebooks;
  return (
    <div class="form">
      {isEmpty ? <p class="muted">{t.noEntries}</p> : (
        <>
          <TextField label={t.findEntry} type="search" value={query} onInput={onQuery} />
          <p class="muted" role="status">{entries.length === 0 ? t.noEntry : t.entryCount(entries.length)}</p>
        </>
      )}
      {entries.length > 0 && (
        <div class="entry-list" style={{ height: `${Math.min(entries.length, ROWS) * ROW_PX + 2}px` }}>
          <VirtualList
            items={entries}
            keyOf={({ index }) =>
              String(index)}
            heightOf={() =>
              ROW_PX}
            label={t.parts.entries}
          >
            {({ entry, index }) => <EntryRow entry={entry} index={index} onOpen={() => onOpen(index)} />}
          </VirtualList>
        </div>
      )}
      <div class="actions-row">
        <Button icon="plus" onClick={onAdd}>{texts.editor.addEntry}</Button>
      </div>
    </div>
  );
}

function EntryRow({ entry, index, onOpen }: { entry: LorebookEntry; index: number; onOpen: () => void }) {
  const t = texts.lorebooks;
  const keys = entry.keys.join(", ");
  const title = getEntryTitle(entry) || texts.editor.entryNth(index + 1);
  return (
    <button type="button" class={entry.enabled ? "entry-row" : "entry-row is-off"} onClick={onOpen}>
      <span class="entry-words">
        <span class="entry-title">{title}</span>
        <span class="entry-more">{title === keys ? entry.content : keys || entry.content}</span>
      </span>
      {entry.constant === true && <span class="badge">{t.constantMark}</span>}
      {!entry.enabled && <span class="badge">{t.off}</span>}
    </button>
  );
}
