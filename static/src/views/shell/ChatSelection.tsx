/** Actions for several selected chats. */
import type { ConversationSummary } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import { SelectionBar } from "../../components/lists/SelectionBar.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { downloadAll } from "../../components/ApiFile.tsx";
import { changeAll } from "../../state/app/selection.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { FolderDialog } from "./ChatDialogs.tsx";
import { EXPORTS } from "../chat/chat_commands.ts";

/** The bar above the list. @param props.order Ids of the listed chats. */
export function ChatSelection({ order }: { order: readonly string[] }) {
  const store = useStore();
  const [isFiling, setFiling] = useState(false);
  const { chats } = store;
  const { selection } = chats;
  const t = texts.selection;
  const chosen = chats.shown.value.filter(({ id }) => selection.ids.value?.has(id));
  const isNone = chosen.length === 0;
  const isPinned = !isNone && chosen.every(({ pinned }) => pinned);
  const change = (fields: "pinned" | "folder", value: string | true | null, nameOf: (count: number) => string) => {
    const changed = chosen.filter((item) => (item[fields] || null) !== value);
    selection.end();
    void changeAll(store, changed, async (item: ConversationSummary) => {
      await chats.change(item.id, { [fields]: value });
      return () => chats.change(item.id, { [fields]: item[fields] || null });
    }, nameOf);
  };
  const remove = () => {
    const ids = chosen.map(({ id }) => id);
    selection.end();
    store.deleteChats(ids, { done: t.chatsRemoved(ids.length), undo: texts.undo });
  };
  return (
    <>
      <SelectionBar selection={selection} count={chosen.length} allIds={order} within=".chats">
        <IconButton icon="folder" label={texts.nav.file} isDisabled={isNone} onClick={() => setFiling(true)} />
        <IconButton
          icon="pin"
          label={isPinned ? texts.nav.unpin : texts.nav.pin}
          isDisabled={isNone}
          onClick={() => change("pinned", isPinned ? null : true, isPinned ? t.chatsUnpinned : t.chatsPinned)}
        />
        <Menu
          label={t.export}
          icon="export"
          isDisabled={isNone}
          items={EXPORTS.map(({ format, name }) => ({
            label: texts.nav.exportAs(name),
            icon: "export",
            onSelect: () => void downloadAll(store, { kind: "conversations", ids: chosen.map(({ id }) => id), format }),
          }))}
        />
        <IconButton icon="trash" label={texts.nav.delete} isDisabled={isNone} onClick={remove} />
      </SelectionBar>
      {isFiling && (
        <FolderDialog
          draftKey="folder:chats"
          title={t.fileChats(chosen.length)}
          folder={chosen.every(({ folder }) => folder === chosen[0]!.folder) ? chosen[0]?.folder : undefined}
          folders={chats.folders.value}
          canRemove={chosen.some(({ folder }) => folder !== undefined)}
          onSave={(folder) => change("folder", folder, t.chatsFiled)}
          onClose={() => setFiling(false)}
        />
      )}
    </>
  );
}
