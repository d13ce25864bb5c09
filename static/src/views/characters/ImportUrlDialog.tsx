/** Imports a card from a link. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { notifyImported } from "./ImportNotices.tsx";

/** Stays open with its input if the import fails. */
export function ImportUrlDialog({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const [url, setUrl] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const t = texts.characters;
  const send = async (event: Event) => {
    event.preventDefault();
    if (url.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const character = await store.api.importCharacterFrom(url.trim());
      onClose();
      notifyImported(store, [character]);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.importUrl}
      onClose={onClose}
      actions={
        <>
          <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" type="submit" form="import-url" isBusy={isBusy}>{t.urlDo}</Button>
        </>
      }
    >
      <form id="import-url" class="form" onSubmit={send}>
        <TextField type="url" label={t.url} hint={t.urlHint} value={url} onInput={setUrl} hasFocus isRequired />
        {error && <ErrorNote title={t.urlFailed} error={error} />}
      </form>
    </Dialog>
  );
}
