/** Settings of a lorebook: name, scope, scanning. */
import type { LorebookScope } from "../../api/types.ts";
import { useEffect } from "preact/hooks";
import type { LorebookDraft } from "../../api/documents.ts";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select, Switch } from "../../components/forms/inputs.tsx";
import { SwitchList } from "../../components/forms/SwitchList.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ChatPicker } from "../documents/DocumentsPage.tsx";
import type { LorebookSectionProps } from "./LorebooksPage.tsx";
import { CharacterPicker } from "../CharacterPicker.tsx";

const SCOPES: readonly LorebookScope[] = ["global", "character", "persona", "chat"];

/** The form. */
export function LorebookFields({ editor }: LorebookSectionProps) {
  const t = texts.lorebooks;
  const fields = editor.data.value!;
  const { book } = fields;
  const setBook = (name: string, value: unknown) => {
    const { [name]: _, ...others } = book;
    const changed = value === undefined ? others : { ...others, [name]: value };
    editor.set({ book: { ...changed, entries: book.entries } }, name);
  };
  const { parlor_keep_found: keepFound, ...otherExtensions } = (book.extensions ?? {}) as Record<string, unknown>;
  const setKeepFound = (value: boolean | undefined) =>
    setBook("extensions", value === undefined ? otherExtensions : { ...otherExtensions, parlor_keep_found: value });
  return (
    <div class="form">
      <TextField
        label={t.fields.name}
        value={fields.name}
        maxLength={200}
        isRequired
        error={editor.isIncomplete.value ? t.nameless : undefined}
        onInput={(name) => editor.set({ name })}
      />
      <Switch label={t.fields.enabled} isOn={fields.enabled} onChange={(enabled) => editor.set({ enabled })} />
      <Select
        label={t.fields.scope}
        value={fields.scope}
        options={SCOPES.map((value) => ({ value, name: t.scopes[value] }))}
        onChange={(scope) => editor.set({ scope })}
      />
      <Binding id={editor.id} fields={fields} onChange={(changes) => editor.set(changes)} />
      <div class="options-pair">
        <NumberInput
          label={t.scanDepth}
          hint={t.scanDepthHint}
          value={typeof book.scan_depth === "number" ? book.scan_depth : undefined}
          min={0}
          max={10_000}
          placeholder="2"
          onChange={(value) => setBook("scan_depth", value)}
        />
        <NumberInput
          label={t.budget}
          hint={t.budgetHint}
          value={typeof book.token_budget === "number" ? book.token_budget : undefined}
          min={0}
          max={10_000_000}
          onChange={(value) => setBook("token_budget", value)}
        />
      </div>
      <Select
        label={t.recursive}
        value={book.recursive_scanning === undefined ? "standard" : book.recursive_scanning ? "yes" : "no"}
        options={(["standard", "yes", "no"] as const).map((value) => ({ value, name: t.recursives[value] }))}
        onChange={(value) => setBook("recursive_scanning", value === "standard" ? undefined : value === "yes")}
      />
      <Select
        label={t.keepFound}
        hint={t.keepFoundHint}
        value={typeof keepFound !== "boolean" ? "standard" : keepFound ? "yes" : "no"}
        options={(["standard", "yes", "no"] as const).map((value) => ({ value, name: t.keepsFound[value] }))}
        onChange={(value) => setKeepFound(value === "standard" ? undefined : value === "yes")}
      />
    </div>
  );
}

/** The scope, unless it is global. */
function Binding(
  { id, fields, onChange }: {
    id: string;
    fields: LorebookDraft;
    onChange: (changes: Partial<LorebookDraft>) => void;
  },
) {
  const t = texts.lorebooks;
  if (fields.scope === "character") {
    return (
      <CharacterPicker
        legend={t.fields.character_ids}
        ids={fields.character_ids}
        onChange={(character_ids) => onChange({ character_ids })}
      />
    );
  }
  if (fields.scope === "persona") {
    return <PersonaPicker ids={fields.persona_ids} onChange={(persona_ids) => onChange({ persona_ids })} />;
  }
  if (fields.scope === "global") return null;
  return (
    <ChatPicker
      label={t.chatLinkPick}
      none={t.chatLinkNone}
      linkLabel={t.chatLink}
      failed={texts.presets.use.chatFailed}
      isLinked={({ lorebook_ids }) => lorebook_ids?.includes(id) ?? false}
      changesFor={({ lorebook_ids }, isOn) => {
        const others = (lorebook_ids ?? []).filter((each) => each !== id);
        return { lorebook_ids: isOn ? [...others, id] : others };
      }}
    />
  );
}

function PersonaPicker({ ids, onChange }: { ids: string[]; onChange: (ids: string[]) => void }) {
  const { people } = useStore();
  useEffect(() => people.loadPersonas(), []);
  const t = texts.lorebooks;
  const personas = people.shownPersonas.value;
  const isEmpty = people.personasState.value === "ready" && personas.length === 0;
  return (
    <SwitchList
      legend={t.fields.persona_ids}
      note={isEmpty ? t.noPersonas : undefined}
      items={personas}
      ids={ids}
      onChange={onChange}
    />
  );
}
