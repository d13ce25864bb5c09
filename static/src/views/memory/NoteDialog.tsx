/** One note in a dialog: its text and the chats that it is for. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { memoryApi } from "../../api/memories.ts";
import type { Memory, MemoryInput, MemoryScope } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { getScopeKey, getScopeName, type NamedScope } from "./scope_names.ts";

/** Longest text of a note. */
const MAX_TEXT = 2_000;

/** Props of the dialog. */
export interface NoteDialogProps {
  title: string;
  text: string;
  scope: MemoryScope;
  /** The scopes to choose from; the note's own is always among them. */
  scopes: readonly NamedScope[];
  /** Saves; a failure stays in the dialog. */
  onSave: (fields: { text: string; scope: MemoryScope }) => Promise<unknown>;
  onClose: () => void;
}

/** Saves on request only. */
export function NoteDialog({ title, text: given, scope: givenScope, scopes, onSave, onClose }: NoteDialogProps) {
  const store = useStore();
  const [text, setText] = useState(given.slice(0, MAX_TEXT));
  const [key, setKey] = useState(getScopeKey(givenScope));
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const t = texts.memory;
  const others = scopes.filter(({ scope }) => getScopeKey(scope) !== getScopeKey(givenScope));
  const all = [{ scope: givenScope, name: getScopeName(store, givenScope) }, ...others];
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onSave({ text: text.trim(), scope: all.find(({ scope }) => getScopeKey(scope) === key)!.scope });
      onClose();
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" isBusy={isBusy} isDisabled={text.trim() === ""} onClick={() => void save()}>
            {texts.save}
          </Button>
        </>
      }
    >
      {error && <ErrorNote title={t.saveFailed} error={error} />}
      <div class="form">
        <TextField
          label={t.text}
          hint={t.textHint}
          rows={4}
          maxLength={MAX_TEXT}
          hasFocus
          value={text}
          onInput={setText}
        />
        <Select
          label={t.scope}
          value={key}
          options={all.map(({ scope, name }) => ({ value: getScopeKey(scope), name }))}
          onChange={setKey}
        />
      </div>
    </Dialog>
  );
}

/** Props of the dialogs for a stored note. */
interface StoredNoteProps {
  note: Memory;
  scopes: readonly NamedScope[];
  onSaved?: () => void;
  onClose: () => void;
}

/** Changes a stored note. A change made elsewhere in the meantime is refused and shown. */
export function EditNoteDialog({ note, scopes, onSaved, onClose }: StoredNoteProps) {
  const { client } = useStore().api;
  const api = memoryApi(client);
  const save = async (fields: MemoryInput) => {
    const current = await api.read(note.id);
    // What is stored now must be what this dialog showed.
    const isSame = current.note.updated_at === note.updated_at;
    await api.save(note.id, fields, isSame ? current.version : '"0"');
    onSaved?.();
  };
  const { text, scope } = note;
  return <NoteDialog title={texts.memory.edit} {...{ text, scope, scopes, onClose }} onSave={save} />;
}
