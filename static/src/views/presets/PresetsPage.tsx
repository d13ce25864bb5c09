/** The presets: the list, or the editor of one. */
import { useMemo, useRef, useState } from "preact/hooks";
import { BUILTIN_PRESET_ID, type PresetApi, presetApi } from "../../api/documents.ts";
import type { PresetItem } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { ItemLedger } from "../../components/Ledger.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import { ChatPicker, DocumentList, DocumentsPage } from "../documents/DocumentsPage.tsx";
import { copyPreset, PresetEditor } from "../../state/documents/preset_editor.ts";
import { ANY, MORE_FIELDS, NUMBER_FIELDS, type NumberField } from "../../state/documents/sampling.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { PromptOrder } from "./PromptOrder.tsx";
import { TemplateFields } from "./TemplateFields.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Switch } from "../../components/forms/inputs.tsx";
import { CardWordLists } from "../character_editor/fields.tsx";
import { findBodyProblem } from "../connections/connection_fields.ts";

/** `item` is the id of the preset to edit. */
export function PresetsPage({ item }: { item: string | undefined }) {
  return item === undefined ? <Overview /> : <PresetPage key={item} id={item} />;
}

function Overview() {
  const store = useStore();
  const { preferences } = store;
  const [list] = useState(() => new DocumentList(store, presetApi(store.api.client), "preset"));
  const t = texts.presets;
  const chosen = preferences.settings.value?.preset_id ?? BUILTIN_PRESET_ID;
  const isDefault = ({ id }: PresetItem) => id === chosen;
  const setDefault = ({ id, builtin }: PresetItem) =>
    preferences.change({ preset_id: builtin ? null : id }).catch((thrown) => store.report(thrown));
  const copy = ({ id, name }: PresetItem) =>
    copyPreset(list.api, id, t.copyName(name)).then(
      (id) => store.router.go(`${PRESETS}/${encodeURIComponent(id)}`),
      (thrown) => store.report(thrown),
    );
  const menuOf = (item: PresetItem): (MenuItem | "line")[] => [
    { label: t.setDefault, icon: "check", isDisabled: isDefault(item), onSelect: () => void setDefault(item) },
    { label: t.copy, icon: "copy", onSelect: () => void copy(item) },
    { label: t.export, icon: "export", href: list.api.exportPath(item.id) },
    ...(item.builtin ? [] : [
      "line" as const,
      {
        label: t.remove,
        icon: "trash" as const,
        isDanger: true,
        onSelect: () => list.remove(item.id, { done: t.removed(item.name), undo: texts.undo }),
      },
    ]),
  ];
  return (
    <DocumentsPage
      list={list}
      address={PRESETS}
      labels={t}
      textOf={({ prompt_count, models }) => [t.promptCount(prompt_count), ...models].join(" · ")}
      badgesOf={(item) => [...(item.builtin ? [t.builtin] : []), ...(isDefault(item) ? [t.isDefault] : [])]}
      menuOf={menuOf}
      create={() => copyPreset(list.api, BUILTIN_PRESET_ID, t.newName)}
    />
  );
}

/** Path of the list. */
const PRESETS = "/settings/presets";

/** Props of the editor's sections. */
export interface PresetSectionProps {
  editor: PresetEditor;
  api: PresetApi;
  isReadOnly: boolean;
}

const PARTS = { prompts: PromptOrder, sentences: TemplateFields, samplers: SamplingFields, use: PresetUsage };
type Section = keyof typeof PARTS;

/** The page; the built-in preset can be viewed and copied. */
function PresetPage({ id }: { id: string }) {
  const store = useStore();
  const api = useMemo(() => presetApi(store.api.client), []);
  const editor = useMemo(() => new PresetEditor(api, id), [id]);
  const [part, setPart] = useState<Section>(() =>
    NUMBER_FIELDS.some(({ name }) => name === store.router.hash.peek()) ? "samplers" : "prompts"
  );
  const t = texts.presets;
  const isReadOnly = editor.document.value?.builtin === true;
  const tabs = (Object.keys(PARTS) as Section[]).map((name) => ({ id: name, title: t.parts[name] }));
  const Shown = PARTS[part];
  const copy = () =>
    copyPreset(api, id, t.copyName(editor.data.peek()!.name)).then(
      (id) => store.router.go(`${PRESETS}/${encodeURIComponent(id)}`),
      (thrown) => store.report(thrown),
    );
  return (
    <EditorFrame editor={editor} address={PRESETS} labels={t} isReadOnly={isReadOnly}>
      {isReadOnly && (
        <Notice tone="info" actions={<Button icon="copy" onClick={() => void copy()}>{t.copy}</Button>}>
          {t.readOnly}
        </Notice>
      )}
      <ItemLedger entries={editor.document.value?.ledger} />
      <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
        <Shown key={part} editor={editor} api={api} isReadOnly={isReadOnly} />
      </Tabs>
    </EditorFrame>
  );
}

/** The name of a preset, and what it is used for: by default, for models, for one chat. */
function PresetUsage({ editor, isReadOnly }: PresetSectionProps) {
  const store = useStore();
  const t = texts.presets;
  const { name, models } = editor.data.value!;
  const settings = store.preferences.settings.value;
  const isDefault = (settings?.preset_id ?? BUILTIN_PRESET_ID) === editor.id;
  const setDefault = (isOn: boolean) => {
    const preset_id = isOn && !isReadOnly ? editor.id : null;
    store.preferences.change({ preset_id }).catch((thrown) => store.report(thrown));
  };
  return (
    <div class="form">
      {!isReadOnly && (
        <TextField
          label={t.fields.name}
          value={name}
          maxLength={200}
          isRequired
          error={editor.isIncomplete.value ? t.nameless : undefined}
          onInput={(typed) => editor.set({ name: typed })}
        />
      )}
      <p class="hint">{t.use.intro}</p>
      <Switch
        label={t.setDefault}
        isOn={isDefault}
        isDisabled={!settings || (isReadOnly && isDefault)}
        onChange={setDefault}
      />
      {!isReadOnly && (
        <CardWordLists
          label={t.use.models}
          hint={t.use.modelsHint}
          between="lines"
          values={models}
          onChange={(changed) => editor.set({ models: changed })}
        />
      )}
      <ChatPicker
        label={t.use.chat}
        none={t.use.noChat}
        linkLabel={t.use.pinned}
        failed={t.use.chatFailed}
        isLinked={({ preset_id }) => preset_id === editor.id}
        changesFor={(_, isOn) => ({ preset_id: isOn ? editor.id : null })}
      />
    </div>
  );
}

/** A field for each, and for those that a file added. */
function SamplingFields({ editor, isReadOnly }: PresetSectionProps) {
  const t = texts.presets.samplers;
  const { sampler } = editor.data.value!;
  const known: readonly NumberField[] = [...NUMBER_FIELDS, ...MORE_FIELDS];
  const others = Object.keys(sampler).filter((name) => known.every((field) => field.name !== name));
  const names: Record<string, string> = texts.chatOptions.options.fields;
  const set = (name: string, value: number | undefined) => {
    const { [name]: _, ...rest } = sampler;
    editor.set({ sampler: value === undefined ? rest : { ...rest, [name]: value } }, `sampler ${name}`);
  };
  const input = ({ name, min, max, isWhole = false }: NumberField) => (
    <NumberInput
      key={name}
      id={name}
      label={names[name] ?? name}
      value={sampler[name]}
      min={min}
      max={max}
      isWhole={isWhole}
      placeholder={texts.chatOptions.options.standard}
      onChange={(value) => set(name, value)}
    />
  );
  return (
    <fieldset class="samplers" disabled={isReadOnly} aria-label={texts.presets.parts.samplers}>
      <p class="hint">{t.intro}</p>
      <div class="images-numbers">{known.map(input)}</div>
      {others.length > 0 && (
        <>
          <h3>{t.other}</h3>
          <div class="images-numbers">{others.map((name) => input({ name, min: -ANY, max: ANY }))}</div>
        </>
      )}
      <LogitBias editor={editor} />
      <ExtraBody editor={editor} />
    </fieldset>
  );
}

/** The texts that replies should have more or less often. */
function LogitBias({ editor }: Pick<PresetSectionProps, "editor">) {
  const t = texts.presets.samplers.bias;
  const { rest } = editor.data.value!;
  const list = (Array.isArray(rest.logit_bias) ? rest.logit_bias : []) as { text?: string; value?: number }[];
  const add = useRef<HTMLDivElement>(null);
  const set = (changed: typeof list) => {
    const { logit_bias: _, ...others } = rest;
    editor.set({ rest: changed.length === 0 ? others : { ...others, logit_bias: changed } }, "logit bias");
  };
  const change = (at: number, changes: { text?: string; value?: number }) =>
    set(list.map((one, n) => n === at ? { ...one, ...changes } : one));
  return (
    <fieldset class="editor-list">
      <legend>{t.title}</legend>
      <p class="hint">{t.hint}</p>
      {list.map(({ text = "", value }, n) => (
        <div class="editor-list-item" key={n}>
          <TextField label={t.text(n + 1)} value={text} onInput={(typed) => change(n, { text: typed })} />
          <NumberInput
            label={t.value(n + 1)}
            value={value}
            min={-100}
            max={100}
            isRequired
            onChange={(value) => value !== undefined && change(n, { value })}
          />
          <IconButton
            icon="trash"
            label={t.remove(n + 1)}
            onClick={() => {
              set(list.filter((_, at) => at !== n));
              add.current?.querySelector("button")?.focus();
            }}
          />
        </div>
      ))}
      <div ref={add}>
        <Button icon="plus" onClick={() => set([...list, { text: "", value: 0 }])}>{t.add}</Button>
      </div>
    </fieldset>
  );
}

/** Invalid JSON stays in the field with an error and changes nothing. */
function ExtraBody({ editor }: Pick<PresetSectionProps, "editor">) {
  const t = texts.form;
  const stored = editor.data.value!.extra_body ?? null;
  const format = () => stored === null ? "" : JSON.stringify(stored, null, 2);
  const [typed, setTyped] = useState(format);
  const [last, setLast] = useState(stored);
  // A value from elsewhere, such as Undo, replaces the typed text.
  const shown = stored === last ? typed : format();
  const problem = findBodyProblem(shown);
  return (
    <TextField
      label={t.extraBody}
      hint={texts.presets.samplers.extraBodyHint}
      error={problem === undefined
        ? undefined
        : problem === "no_object"
        ? t.extraBodyNoObject
        : t.extraBodyBad(problem)}
      rows={4}
      isMono
      value={shown}
      onInput={(text) => {
        setTyped(text);
        if (findBodyProblem(text) !== undefined) return setLast(stored);
        const extra_body = text.trim() === "" ? null : JSON.parse(text);
        setLast(extra_body);
        editor.set({ extra_body }, "extra body");
      }}
    />
  );
}
