/** The lorebooks: the list, or the editor of one. */
import { useMemo, useState } from "preact/hooks";
import type { VersionedDocument } from "../../api/documents.ts";
import { type LorebookApi, lorebookApi, type LorebookDraft } from "../../api/lorebooks.ts";
import type { Lorebook, LorebookItem } from "../../api/types.ts";
import { Tabs } from "../../components/Tabs.tsx";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import { newId } from "../../state/app/ids.ts";
import { DocumentList } from "../../state/documents/document_list.ts";
import { type StoredVersion, VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DocumentsPage } from "../documents/DocumentsPage.tsx";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { ActivationTest } from "./ActivationTest.tsx";
import { EntryList } from "./EntryList.tsx";
import { LorebookFields } from "./LorebookFields.tsx";

/** `item` is the id of the lorebook to edit. */
export function LorebooksPage({ item }: { item: string | undefined }) {
  return item === undefined ? <Overview /> : <LorebookPage key={item} id={item} />;
}

function Overview() {
  const store = useStore();
  const [list] = useState(() => new DocumentList(store, lorebookApi(store.api.client), "lorebook"));
  const t = texts.lorebooks;
  const create = async () => {
    const id = newId();
    await list.api.save(id, { name: t.newName, book: { extensions: {}, entries: [] } });
    return id;
  };
  const menuOf = ({ id, name }: LorebookItem): (MenuItem | "line")[] => [
    { label: t.exportTavern, icon: "down", href: list.api.exportPath(id, "sillytavern") },
    { label: t.exportV3, icon: "down", href: list.api.exportPath(id, "lorebook_v3") },
    "line",
    {
      label: t.remove,
      icon: "trash",
      isDanger: true,
      onSelect: () => list.remove(id, { done: t.removed(name), undo: texts.undo }),
    },
  ];
  return (
    <DocumentsPage
      list={list}
      address={LOREBOOKS}
      words={t}
      empty={{ title: t.empty, text: t.emptyText }}
      textOf={(item) => [t.entryCount(item.entry_count), t.scopes[item.scope]].join(" · ")}
      badgesOf={({ enabled, error }) => enabled || error ? [] : [t.off]}
      menuOf={menuOf}
      create={create}
    />
  );
}

/** One lorebook in the editor. It is not saved without a name. */
class LorebookEditor extends VersionedEditor<Lorebook, LorebookDraft> {
  constructor(api: LorebookApi, id: string) {
    super({
      id,
      kind: "lorebook",
      read: async () => toStoredVersion(await api.read(id)),
      write: async (fields, version) => toStoredVersion(await api.save(id, fields, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

function toStoredVersion({ document, version }: VersionedDocument<Lorebook>): StoredVersion<Lorebook, LorebookDraft> {
  const { name, enabled, scope, character_ids, persona_ids, book } = document;
  return { whole: document, data: { name, enabled, scope, character_ids, persona_ids, book }, version };
}

/** Path of the list. */
const LOREBOOKS = "/settings/lorebooks";

/** Props of the editor's sections. */
export interface LorebookSectionProps {
  editor: LorebookEditor;
  api: LorebookApi;
}

const PARTS = { entries: EntryList, book: LorebookFields, trial: ActivationTest };
type Section = keyof typeof PARTS;

/** The page. */
function LorebookPage({ id }: { id: string }) {
  const store = useStore();
  const api = useMemo(() => lorebookApi(store.api.client), []);
  const editor = useMemo(() => new LorebookEditor(api, id), [id]);
  const [part, setPart] = useState<Section>("entries");
  const t = texts.lorebooks;
  const tabs = (Object.keys(PARTS) as Section[]).map((name) => ({ id: name, title: t.parts[name] }));
  const Shown = PARTS[part];
  return (
    <EditorFrame editor={editor} address={LOREBOOKS} words={t}>
      <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
        <Shown key={part} editor={editor} api={api} />
      </Tabs>
    </EditorFrame>
  );
}
