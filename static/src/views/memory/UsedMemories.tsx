/** The notes that were sent for a reply. */
import { useState } from "preact/hooks";
import { memoryApi } from "../../api/memories.ts";
import type { Memory, Message } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Sheet } from "../../components/overlays/Dialog.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";
import { EditNoteDialog, getScopeName, listAllScopes } from "./NoteDialog.tsx";

/** A button below the reply. */
export function UsedMemories({ message }: { message: Message }) {
  const [isOpen, setOpen] = useState(false);
  const count = message.memories?.length ?? 0;
  return (
    <>
      <button type="button" class="memories-used" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="bulb" />
        {texts.memory.used(count)}
      </button>
      {isOpen && <UsedList ids={message.memories ?? []} onClose={() => setOpen(false)} />}
    </>
  );
}

function UsedList({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const store = useStore();
  const { value, error, again } = useResource(() => memoryApi(store.api.client).list(), "memory");
  const [edited, setEdited] = useState<Memory>();
  const t = texts.memory;
  return (
    <Sheet title={t.used(ids.length)} onClose={onClose}>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {!value && !error && <p class="muted" role="status">{texts.loading}</p>}
      <ul class="list">
        {value && ids.map((id) => {
          const note = value.find((one) => one.id === id);
          return (
            <li key={id} class="list-row">
              {note
                ? (
                  <button type="button" class="list-main" onClick={() => setEdited(note)}>
                    <span class="list-text">
                      <span class="memory-text">{note.text}</span>
                      <span class="list-more">{getScopeName(store, note.scope)}</span>
                    </span>
                  </button>
                )
                : <div class="list-main muted">{t.gone}</div>}
            </li>
          );
        })}
      </ul>
      <p>
        <a href="/settings/memory">{t.all}</a>
      </p>
      {edited && (
        <EditNoteDialog
          note={edited}
          scopes={listAllScopes(store)}
          onSaved={again}
          onClose={() => setEdited(undefined)}
        />
      )}
    </Sheet>
  );
}
