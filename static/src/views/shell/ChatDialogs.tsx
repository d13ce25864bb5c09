/** Dialogs of one chat: rename, move to a folder. */
import type { ConversationSummary } from "../../api/types.ts";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import type { FormDraft } from "../../state/app/form_draft.ts";
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
  const draft = useFormDraft(`title:${item.id}`);
  const save = () => {
    if (title.trim() !== item.title) store.changeChat(item.id, { title: title.trim() });
    onClose();
  };
  return (
    <FormDialog title={texts.nav.renameTitle} draft={draft} onClose={onClose} onSave={save}>
      <TextField label={texts.nav.titleLabel} value={title} maxLength={MAX_LENGTH} hasFocus onInput={setTitle} />
    </FormDialog>
  );
}

function OneChatFolder({ item, onClose }: { item: ConversationSummary; onClose: () => void }) {
  const store = useStore();
  return (
    <FolderDialog
      title={texts.nav.fileTitle}
      draftKey={`folder:${item.id}`}
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
  { title, draftKey, folder: before = "", folders, canRemove, onSave, onClose }: {
    title: string;
    /** Names the draft. */
    draftKey: string;
    folder?: string;
    folders: readonly string[];
    canRemove: boolean;
    onSave: (folder: string | null) => void;
    onClose: () => void;
  },
) {
  const [folder, setFolder] = useState(before);
  const draft = useFormDraft(draftKey);
  const save = (name: string) => {
    draft.clear();
    onClose();
    onSave(name || null);
  };
  return (
    <FormDialog
      title={title}
      draft={draft}
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

/** A dialog with a form that keeps its draft. @param props.onSave The draft is cleared before. */
export function FormDialog(
  { title, draft, onClose, onSave, more, children }: {
    title: string;
    draft: FormDraft;
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
          draft.clear();
          onSave();
        }}
      >
        <Drafted draft={draft}>{children}</Drafted>
        <div class="actions-row at-end">
          {more}
          <CancelButton draft={draft} onCancel={onClose} />
          <Button kind="primary" type="submit">{texts.save}</Button>
        </div>
      </form>
    </Dialog>
  );
}
