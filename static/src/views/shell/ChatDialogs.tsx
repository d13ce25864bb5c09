/** Dialogs of one chat: rename, move to a folder. */
import type { ConversationSummary } from "../../api/types.ts";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Longest title and folder name in the form; the server accepts more. */
const MAX_LENGTH = 200;

/** Shows one of the two. */
export function ChatDialog(
  { kind, item, onClose }: { kind: "rename" | "folder"; item: ConversationSummary; onClose: () => void },
) {
  return kind === "rename"
    ? <RenameDialog item={item} onClose={onClose} />
    : <OneChatFolder item={item} onClose={onClose} />;
}

/** Renames the chat. */
function RenameDialog({ item, onClose }: { item: ConversationSummary; onClose: () => void }) {
  const store = useStore();
  const [title, setTitle] = useState(item.title);
  const save = () => {
    if (title.trim() !== item.title) store.changeChat(item.id, { title: title.trim() });
    onClose();
  };
  return (
    <FormDialog title={texts.nav.renameTitle} onClose={onClose} onSave={save}>
      <TextField label={texts.nav.titleLabel} value={title} maxLength={MAX_LENGTH} hasFocus onInput={setTitle} />
    </FormDialog>
  );
}

function OneChatFolder({ item, onClose }: { item: ConversationSummary; onClose: () => void }) {
  const store = useStore();
  return (
    <FolderDialog
      title={texts.nav.fileTitle}
      folder={item.folder}
      folders={store.chats.folders.value}
      canRemove={item.folder !== undefined}
      onSave={(folder) => folder !== (item.folder ?? null) && store.changeChat(item.id, { folder })}
      onClose={onClose}
    />
  );
}

/**
 * Selects a folder, new or existing. @param props.onSave Called with `null` to remove from the folder; the dialog closes
 * itself.
 */
export function FolderDialog(
  { title, folder: before = "", folders, canRemove, onSave, onClose }: {
    title: string;
    folder?: string;
    folders: readonly string[];
    canRemove: boolean;
    onSave: (folder: string | null) => void;
    onClose: () => void;
  },
) {
  const [folder, setFolder] = useState(before);
  const save = (name: string) => {
    onClose();
    onSave(name || null);
  };
  return (
    <FormDialog
      title={title}
      onClose={onClose}
      onSave={() => save(folder.trim())}
      more={canRemove && <Button kind="quiet" onClick={() => save("")}>{texts.nav.removeFromFolder}</Button>}
    >
      <TextField
        label={texts.nav.folderLabel}
        hint={texts.nav.folderHint}
        value={folder}
        list={folders}
        maxLength={MAX_LENGTH}
        hasFocus
        onInput={setFolder}
      />
    </FormDialog>
  );
}

function FormDialog(
  { title, onClose, onSave, more, children }: {
    title: string;
    onClose: () => void;
    onSave: () => void;
    more?: ComponentChildren;
    children: ComponentChildren;
  },
) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onSave();
        }}
      >
        {children}
        <div class="actions-row at-end">
          {more}
          <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" type="submit">{texts.save}</Button>
        </div>
      </form>
    </Dialog>
  );
}
