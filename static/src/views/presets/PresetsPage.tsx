/** The presets: the list, or the editor of one. */
import { useMemo, useState } from "preact/hooks";
import { BUILTIN_PRESET_ID, type PresetApi, presetApi } from "../../api/presets.ts";
import type { PresetItem } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import { DocumentList } from "../../state/documents/document_list.ts";
import { copyPreset, PresetEditor } from "../../state/documents/preset_editor.ts";
import { NUMBER_FIELDS } from "../../state/documents/sampling.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DocumentsPage } from "../documents/DocumentsPage.tsx";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { PresetUsage } from "./PresetUsage.tsx";
import { PromptOrder } from "./PromptOrder.tsx";
import { SamplingFields } from "./SamplingFields.tsx";
import { TemplateFields } from "./TemplateFields.tsx";

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
      (made) => store.router.go(`${PRESETS}/${encodeURIComponent(made)}`),
      (thrown) => store.report(thrown),
    );
  const menuOf = (item: PresetItem): (MenuItem | "line")[] => [
    { label: t.setDefault, icon: "check", isDisabled: isDefault(item), onSelect: () => void setDefault(item) },
    { label: t.copy, icon: "copy", onSelect: () => void copy(item) },
    { label: t.export, icon: "down", href: list.api.exportPath(item.id) },
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
      words={t}
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
  const isReadOnly = editor.whole.value?.builtin === true;
  const tabs = (Object.keys(PARTS) as Section[]).map((name) => ({ id: name, title: t.parts[name] }));
  const Shown = PARTS[part];
  const copy = () =>
    copyPreset(api, id, t.copyName(editor.data.peek()!.name)).then(
      (made) => store.router.go(`${PRESETS}/${encodeURIComponent(made)}`),
      (thrown) => store.report(thrown),
    );
  return (
    <EditorFrame editor={editor} address={PRESETS} words={t} isReadOnly={isReadOnly}>
      {isReadOnly && (
        <Notice tone="info" actions={<Button icon="copy" onClick={() => void copy()}>{t.copy}</Button>}>
          {t.readOnly}
        </Notice>
      )}
      <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
        <Shown key={part} editor={editor} api={api} isReadOnly={isReadOnly} />
      </Tabs>
    </EditorFrame>
  );
}
