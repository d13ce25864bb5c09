/** Creates a character: with a name to continue in the editor, or from an idea that a model writes out. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import { emptyCard } from "../../state/characters/card_fields.ts";
import { newId } from "../../state/app/ids.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GenerateForm } from "./GenerateForm.tsx";

type Way = "name" | "idea";

/** Opens the editor when the character exists. */
export function NewCharacterDialog({ onClose }: { onClose: () => void }) {
  const [way, setWay] = useState<Way>("name");
  const t = texts.creator;
  const tabs = (["name", "idea"] as const).map((id) => ({ id, title: t.ways[id] }));
  return (
    <Dialog title={texts.characters.create} onClose={onClose}>
      <Tabs label={t.way} tabs={tabs} current={way} onSelect={setWay}>
        {way === "name" ? <NameForm onClose={onClose} /> : <GenerateForm onClose={onClose} />}
      </Tabs>
    </Dialog>
  );
}

function NameForm({ onClose }: { onClose: () => void }) {
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
    <form class="form" onSubmit={send}>
      <TextField label={t.name} value={name} onInput={setName} hasFocus isRequired maxLength={200} />
      {error && <ErrorNote title={t.createFailed} error={error} />}
      <div class="actions-row creator-actions">
        <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
        <Button kind="primary" type="submit" isBusy={isBusy}>{t.createDo}</Button>
      </div>
    </form>
  );
}
