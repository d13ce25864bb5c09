/** Chooses pages of a scan and attaches them as images to the message. */
import { useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import type { StoredDocument } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { parsePageList } from "../../state/chat/document_pages.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Most pages at a time: each costs a vision model about as much as a page of text or two. */
const MAX_PAGES = 4;

/** Returns whether a document has pages that can be sent as images alone. */
export function isScan({ state, error, pages }: StoredDocument): boolean {
  return state === "failed" && error?.code === "no_text" && pages > 0;
}

/** The dialog. Pages are attached one after the other; the first that can't be read ends it. */
export function PagePicturesDialog(
  { chat, document, onClose }: { chat: OpenChat; document: StoredDocument; onClose: () => void },
) {
  const { api, toasts } = useStore();
  const { id, name, pages: count } = document;
  const t = texts.documents;
  const [written, setWritten] = useState(count > 1 ? `1-${Math.min(count, MAX_PAGES)}` : "1");
  const [isBusy, setBusy] = useState(false);
  const chosen = parsePageList(written, count);
  const isValid = chosen !== undefined && chosen.length > 0 && chosen.length <= MAX_PAGES;
  const attach = async () => {
    if (!isValid || isBusy) return;
    setBusy(true);
    try {
      for (const n of chosen) {
        const response = await api.client.send("GET", `/api/documents/${encodeURIComponent(id)}/pages/${n}/image`);
        const file = new File([await response.blob()], t.pageOf(name, n), { type: "image/jpeg" });
        await chat.pictures.add(file);
      }
    } catch (thrown) {
      toasts.show(asApiError(thrown).message, { isError: true });
    }
    onClose();
  };
  return (
    <Dialog
      title={t.sendAsPictures}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" isDisabled={!isValid} isBusy={isBusy} onClick={() => void attach()}>
            {t.attachPictures}
          </Button>
        </>
      }
    >
      <p>{t.scanHint(MAX_PAGES)}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void attach();
        }}
      >
        <TextField
          label={t.pages}
          value={written}
          placeholder="3-5, 12"
          error={isValid ? undefined : t.badPictures(count, MAX_PAGES)}
          onInput={setWritten}
        />
      </form>
    </Dialog>
  );
}
