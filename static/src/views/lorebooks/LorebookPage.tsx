/** The editor of one lorebook: its entries, what holds for all of it, and the trial. */
import { useMemo, useState } from "preact/hooks";
import { type LorebookApi, lorebookApi } from "../../api/lorebooks.ts";
import { Tabs } from "../../components/Tabs.tsx";
import { LorebookEditor } from "../../state/documents/lorebook_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { BookFields } from "./LorebookFields.tsx";
import { EntryList } from "./EntryList.tsx";
import { TrialPanel } from "./ActivationTest.tsx";

/** Where the list stands. */
export const LOREBOOKS = "/settings/lorebooks";

/** What the parts of the editor take. */
export interface LorebookPartProps {
  editor: LorebookEditor;
  api: LorebookApi;
}

const PARTS = { entries: EntryList, book: BookFields, trial: TrialPanel };
type Part = keyof typeof PARTS;

/** The page. */
export function LorebookPage({ id }: { id: string }) {
  const store = useStore();
  const api = useMemo(() => lorebookApi(store.api.client), []);
  const editor = useMemo(() => new LorebookEditor(api, id), [id]);
  const [part, setPart] = useState<Part>("entries");
  const t = texts.lorebooks;
  const tabs = (Object.keys(PARTS) as Part[]).map((name) => ({ id: name, title: t.parts[name] }));
  const Shown = PARTS[part];
  return (
    <EditorFrame editor={editor} address={LOREBOOKS} words={t}>
      <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
        <Shown key={part} editor={editor} api={api} />
      </Tabs>
    </EditorFrame>
  );
}
