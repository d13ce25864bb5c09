/** One note in a dialog: its text and the chats that it is for. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { memoryApi } from "../../api/memories.ts";
import type { Memory, MemoryInput, MemoryScope, Message } from "../../api/types.ts";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { FieldPreview } from "../../components/content/VisibleText.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { getContentText, splitReasoning } from "../../state/chat/message_text.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { newId } from "../../state/app/ids.ts";

/** Longest text of a note. */
const MAX_TEXT = 2_000;

/** Props of the dialog. */
interface NoteDialogProps {
  /** Names the draft. */
  draftKey: string;
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
export function NoteDialog(
  { draftKey, title, text: given, scope: givenScope, scopes, onSave, onClose }: NoteDialogProps,
) {
  const store = useStore();
  const draft = useFormDraft(draftKey);
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
      draft.clear();
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
          <CancelButton draft={draft} onCancel={onClose} />
          <Button kind="primary" isBusy={isBusy} isDisabled={text.trim() === ""} onClick={() => void save()}>
            {texts.save}
          </Button>
        </>
      }
    >
      {error && <ErrorNote title={t.saveFailed} error={error} />}
      <div class="form">
        <Drafted draft={draft}>
          <TextField
            label={t.text}
            hint={t.textHint}
            rows={4}
            maxLength={MAX_TEXT}
            hasFocus
            value={text}
            onInput={setText}
          />
          <FieldPreview text={text} />
          <Select
            label={t.scope}
            value={key}
            options={all.map(({ scope, name }) => ({ value: getScopeKey(scope), name }))}
            onChange={setKey}
          />
        </Drafted>
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
    // The stored note must be the one that this dialog showed.
    const isSame = current.note.updated_at === note.updated_at;
    await api.save(note.id, fields, isSame ? current.version : '"0"');
    onSaved?.();
  };
  const { text, scope } = note;
  return (
    <NoteDialog
      draftKey={`memory:${note.id}`}
      title={texts.memory.edit}
      {...{ text, scope, scopes, onClose }}
      onSave={save}
    />
  );
}

/** The text can be shortened before it is saved. */
export function RememberDialog(
  { chat, message, onClose }: { chat: OpenChat; message: Message; onClose: () => void },
) {
  const store = useStore();
  const scopes = listChatScopes(store, chat);
  const selected = globalThis.getSelection?.()?.toString().trim() ?? "";
  const whole = splitReasoning(getContentText(message.content)).text.trim();
  return (
    <NoteDialog
      draftKey={`remember:${chat.id}:${message.id}`}
      title={texts.memory.remember}
      text={selected !== "" && whole.includes(selected) ? selected : whole}
      scope={scopes[0]!.scope}
      scopes={scopes}
      onClose={onClose}
      onSave={async (fields) => {
        const source = { conversation_id: chat.id, message_id: message.id } satisfies MemoryInput["source"];
        await memoryApi(store.api.client).save(newId(), { ...fields, source });
        store.toasts.show(texts.memory.remembered);
      }}
    />
  );
}

/** A scope and its name. */
interface NamedScope {
  scope: MemoryScope;
  name: string;
}

/** Names a scope: "All chats", "Fox", "Fox with Ada". */
export function getScopeName(store: Store, { kind, id = "", persona_id: personaId }: MemoryScope): string {
  const t = texts.memory.scopes;
  const persona = (of: string) => store.people.persona(of)?.name ?? t.unknown;
  if (kind === "everything") return t.everything;
  if (kind === "folder") return t.folder(id);
  if (kind === "persona") return t.persona(persona(id));
  const character = store.people.character(id)?.name ?? t.unknown;
  return personaId === undefined ? character : t.pair(character, persona(personaId));
}

/** Identifies a scope. */
export function getScopeKey({ kind, id = "", persona_id: personaId = "" }: MemoryScope): string {
  return [kind, id, personaId].join(" ");
}

/** Lists the scopes that fit a chat, the narrowest first. */
function listChatScopes(store: Store, chat: OpenChat): NamedScope[] {
  const head = chat.head.peek();
  const character = head?.participants?.[0]?.character_id;
  const persona = head?.persona_id ?? store.preferences.settings.peek()?.default_persona_id ?? undefined;
  const folder = head?.folder ?? undefined;
  const scopes: MemoryScope[] = [
    ...(character && persona ? [{ kind: "character" as const, id: character, persona_id: persona }] : []),
    ...(character ? [{ kind: "character" as const, id: character }] : []),
    ...(persona ? [{ kind: "persona" as const, id: persona }] : []),
    ...(folder ? [{ kind: "folder" as const, id: folder }] : []),
    { kind: "everything" as const },
  ];
  return scopes.map((scope) => ({ scope, name: getScopeName(store, scope) }));
}

/** Lists the scopes of all characters, personas and folders that notes can be for. */
export function listAllScopes(store: Store): NamedScope[] {
  const scopes: MemoryScope[] = [
    { kind: "everything" },
    ...store.people.shownPersonas.peek().map(({ id }) => ({ kind: "persona" as const, id })),
    ...store.chats.folders.peek().map((id) => ({ kind: "folder" as const, id })),
  ];
  return scopes.map((scope) => ({ scope, name: getScopeName(store, scope) }));
}
