/** The lorebooks: the list, or the editor of one. */
import type { LorebookItem } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { lorebookApi } from "../../api/lorebooks.ts";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import { DocumentList } from "../../state/documents/document_list.ts";
import { newId } from "../../state/app/ids.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DocumentsPage, NoDocuments } from "../documents/DocumentsPage.tsx";
import { LorebookPage, LOREBOOKS } from "./LorebookPage.tsx";

/** `item` is the id of the book to edit. */
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
      empty={<NoDocuments title={t.empty} text={t.emptyText} />}
      textOf={(item) => [t.entryCount(item.entry_count), t.scopes[item.scope]].join(" · ")}
      badgesOf={({ enabled, error }) => enabled || error ? [] : [t.off]}
      menuOf={menuOf}
      create={create}
    />
  );
}
