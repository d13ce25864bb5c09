/** The form of one entry of a lorebook, on its own or in a card. */
import type { LorebookEntry } from "../../api/types.ts";
import type { ComponentChildren } from "preact";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import {
  getEntryTitle,
  getExtensionNumber,
  isSelective,
  LOGICS,
  setEntryTitle,
  setExtension,
} from "../../state/documents/lorebook_entries.ts";
import { texts } from "../../texts/texts.ts";
import { CardWordLists, countTokens } from "../character_editor/fields.tsx";
import { ChanceFields, GroupFields, MatchFields, PlaceFields, RecursionFields } from "./entry_details.tsx";

/** Props of the form's sections. `onChange` gets the changed fields. */
export interface EntryProps {
  entry: LorebookEntry;
  onChange: (changes: Partial<LorebookEntry>) => void;
}

/** The main fields are open, the rest is collapsed by subject. */
export function EntryForm({ entry, onChange, onRemove }: EntryProps & { onRemove: () => void }) {
  const t = texts.editor;
  const more = texts.lorebooks.entry;
  const props = { entry, onChange };
  return (
    <div class="book-fields">
      <Switch label={t.entry.enabled} isOn={entry.enabled} onChange={(enabled) => onChange({ enabled })} />
      <TextField
        label={more.title}
        hint={more.titleHint}
        value={entry.comment?.trim() || entry.name?.trim() ? getEntryTitle(entry) : ""}
        onInput={(title) => onChange(setEntryTitle(entry, title))}
      />
      <CardWordLists
        label={t.entry.keys}
        hint={t.entry.keysHint}
        between="lines"
        words={entry.keys}
        onChange={(keys) => onChange({ keys })}
      />
      <TextField
        label={t.entry.content}
        hint={countTokens(entry.content)}
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
      <SecondaryFields {...props} />
      <Fold title={more.match}>
        <MatchFields {...props} />
      </Fold>
      <Fold title={more.where}>
        <PlaceFields {...props} />
      </Fold>
      <Fold title={more.chance}>
        <ChanceFields {...props} />
      </Fold>
      <Fold title={more.groups}>
        <GroupFields {...props} />
      </Fold>
      <Fold title={more.recursion}>
        <RecursionFields {...props} />
      </Fold>
      <Button icon="trash" kind="quiet" onClick={onRemove}>{t.removeEntry}</Button>
    </div>
  );
}

function SecondaryFields({ entry, onChange }: EntryProps) {
  const t = texts.editor.entry;
  const more = texts.lorebooks.entry;
  const isOn = isSelective(entry);
  return (
    <>
      <Switch
        label={t.selective}
        hint={t.selectiveHint}
        isOn={isOn}
        onChange={(selective) => onChange({ selective })}
      />
      {isOn && (
        <>
          <Select
            label={more.logic}
            value={LOGICS[getExtensionNumber(entry, "selectiveLogic") ?? 0] ?? "any"}
            options={LOGICS.map((value) => ({ value, name: more.logics[value] }))}
            onChange={(logic) => onChange(setExtension(entry, "selectiveLogic", LOGICS.indexOf(logic)))}
          />
          <CardWordLists
            label={t.secondaryKeys}
            hint={t.keysHint}
            between="lines"
            words={entry.secondary_keys ?? []}
            onChange={(secondary_keys) => onChange({ secondary_keys })}
          />
        </>
      )}
    </>
  );
}

function Fold({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>{title}</summary>
      <div class="fold-body">{children}</div>
    </details>
  );
}
