/** Makes a new character of a name; everything else comes in its editor. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/Dialog.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { TextField } from "../../components/Field.tsx";
import { emptyCard } from "../../state/card_fields.ts";
import { newId } from "../../state/ids.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Leads to the editor once the character is there. */
export function NewCharacterDialog({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const [name, setName] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const t = texts.characters;
  const send = async (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const id = newId();
      await store.api.saveCharacter(id, emptyCard(name.trim()));
      onClose();
      store.router.go(`/characters/${id}/edit`);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.create}
      onClose={onClose}
      actions={
        <>
          <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" type="submit" form="new-character" isBusy={isBusy}>{t.createDo}</Button>
        </>
      }
    >
      <form id="new-character" class="form" onSubmit={send}>
        <TextField label={t.name} value={name} onInput={setName} hasFocus isRequired maxLength={200} />
        {error && <ErrorNote title={t.createFailed} error={error} />}
      </form>
    </Dialog>
  );
}
