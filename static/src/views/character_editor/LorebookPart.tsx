/** The lorebook inside a card. What an entry has beside our fields stays. */
import { useRef, useState } from "preact/hooks";
import type { BookEntry, CardBook } from "../../api/character_types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/Field.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Select } from "../../components/Select.tsx";
import { Switch } from "../../components/Switch.tsx";
import type { CardEditor } from "../../state/card_editor.ts";
import { texts } from "../../texts/texts.ts";
import { CardWords, tokensOf } from "./fields.tsx";

/** What a new entry begins with. */
const EMPTY: BookEntry = { keys: [], content: "", enabled: true, insertion_order: 100, extensions: {} };

/** All entries, each folded. */
export function LorebookPart({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  const book = editor.data.value!.character_book;
  const entries = book?.entries ?? [];
  const [opened, setOpened] = useState<number>();
  const add = useRef<HTMLDivElement>(null);
  const set = (changed: BookEntry[]) => {
    const character_book: CardBook = { extensions: {}, ...book, entries: changed };
    editor.set({ character_book });
  };
  const change = (at: number, changes: Partial<BookEntry>) =>
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
                <span class="book-title">{titleOf(entry, index)}</span>
                {!entry.enabled && <span class="badge">{t.entryOff}</span>}
              </button>
              {opened === index && (
                <Entry
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
            set([...entries, EMPTY]);
          }}
        >
          {t.addEntry}
        </Button>
      </div>
    </>
  );
}

function Entry(
  { entry, onChange, onRemove }: {
    entry: BookEntry;
    onChange: (changes: Partial<BookEntry>) => void;
    onRemove: () => void;
  },
) {
  const t = texts.editor;
  const [order, setOrder] = useState(String(entry.insertion_order));
  const isOrderBad = !/^-?\d{1,6}$/.test(order.trim());
  const position = entry.position === "before_char" || entry.position === "after_char" ? entry.position : "";
  return (
    <div class="book-fields">
      <Switch label={t.entry.enabled} isOn={entry.enabled} onChange={(enabled) => onChange({ enabled })} />
      <CardWords
        label={t.entry.keys}
        hint={t.entry.keysHint}
        between="lines"
        words={entry.keys}
        onChange={(keys) => onChange({ keys })}
      />
      <TextField
        label={t.entry.content}
        hint={tokensOf(entry.content)}
        rows={6}
        value={entry.content}
        onInput={(content) => onChange({ content })}
      />
      <Switch
        label={t.entry.constant}
        hint={t.entry.constantHint}
        isOn={entry.constant === true}
        onChange={(constant) => onChange({ constant })}
      />
      <Switch
        label={t.entry.caseSensitive}
        isOn={entry.case_sensitive === true}
        onChange={(case_sensitive) => onChange({ case_sensitive })}
      />
      <Switch
        label={t.entry.selective}
        hint={t.entry.selectiveHint}
        isOn={entry.selective === true}
        onChange={(selective) => onChange({ selective })}
      />
      {entry.selective === true && (
        <CardWords
          label={t.entry.secondaryKeys}
          hint={t.entry.keysHint}
          between="lines"
          words={entry.secondary_keys ?? []}
          onChange={(secondary_keys) => onChange({ secondary_keys })}
        />
      )}
      <div class="options-pair">
        <TextField
          label={t.entry.order}
          inputMode="numeric"
          value={order}
          error={isOrderBad ? t.entry.orderBad : undefined}
          onInput={(typed) => {
            setOrder(typed);
            if (/^-?\d{1,6}$/.test(typed.trim())) onChange({ insertion_order: Number(typed) });
          }}
        />
        <Select
          label={t.entry.position}
          value={position}
          options={(["", "before_char", "after_char"] as const).map((value) => ({
            value,
            name: t.entry.positions[value || "none"],
          }))}
          onChange={(value) => onChange({ position: value || undefined })}
        />
      </div>
      <Button icon="trash" kind="quiet" onClick={onRemove}>{t.removeEntry}</Button>
    </div>
  );
}

function titleOf(entry: BookEntry, index: number): string {
  return entry.name?.trim() || entry.comment?.trim() || entry.keys.join(", ") || texts.editor.entryNth(index + 1);
}
