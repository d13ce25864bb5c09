/** The editor of one preset: its prompts in their order, the sentences around them, its samplers, and for what it is used. */
import { useMemo, useState } from "preact/hooks";
import { type PresetApi, presetApi } from "../../api/presets.ts";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import { copyPreset, PresetEditor } from "../../state/documents/preset_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { PromptOrder } from "./PromptOrder.tsx";
import { Samplers } from "./SamplingFields.tsx";
import { Sentences } from "./TemplateFields.tsx";
import { PresetUse } from "./PresetUsage.tsx";

/** Where the list stands. */
export const PRESETS = "/settings/presets";

/** What the parts of the editor take. */
export interface PresetPartProps {
  editor: PresetEditor;
  api: PresetApi;
  isReadOnly: boolean;
}

const PARTS = { prompts: PromptOrder, sentences: Sentences, samplers: Samplers, use: PresetUse };
type Part = keyof typeof PARTS;

/** The page; the built-in preset can be looked at and copied. */
export function PresetPage({ id }: { id: string }) {
  const store = useStore();
  const api = useMemo(() => presetApi(store.api.client), []);
  const editor = useMemo(() => new PresetEditor(api, id), [id]);
  const [part, setPart] = useState<Part>("prompts");
  const t = texts.presets;
  const isReadOnly = editor.whole.value?.builtin === true;
  const tabs = (Object.keys(PARTS) as Part[]).map((name) => ({ id: name, title: t.parts[name] }));
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
