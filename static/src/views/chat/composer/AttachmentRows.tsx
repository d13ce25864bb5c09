/** Attachments above the composer: documents, a suggested link, recordings. */
import { useEffect, useState } from "preact/hooks";
import { CancelButton, Drafted, useFormDraft } from "../../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../../components/Button.tsx";
import { type AttachedDocument, parsePageList } from "../../../state/chat/attachments.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";
import { describeDocument, DocumentUseMenu } from "../../documents/DocumentUseMenu.tsx";
import { DocumentLedger, ReadAgainButton } from "../../documents/DocumentLedger.tsx";
import { DocumentReader } from "../../documents/DocumentReader.tsx";
import { describeSent } from "../../documents/sent_document.ts";
import { ContextSizeDialog } from "../../connections/ContextSizeDialog.tsx";
import { asApiError } from "../../../api/client.ts";
import { useStore } from "../../../state/store.ts";
import { Icon } from "../../../components/Icon.tsx";
import type { ChatPreview, StoredDocument } from "../../../api/types.ts";
import { TextField } from "../../../components/forms/Field.tsx";
import { Dialog } from "../../../components/overlays/Dialog.tsx";

/** The documents of the message: type, pages, tokens and state of each. */
export function DocumentRow({ chat }: { chat: OpenChat }) {
  const preview = useNextPrompt(chat);
  return (
    <ul class="document-row" aria-label={texts.documents.attached}>
      {chat.documents.items.value.map((item) => (
        <DocumentChip key={item.key} chat={chat} item={item} preview={preview} />
      ))}
    </ul>
  );
}

/** Typing changes which passages are sent; the prompt is asked for when it pauses. In milliseconds. */
const TYPING_PAUSE_MS = 500;

/** Returns the prompt that would be sent now, as soon as a document can be part of it. Undefined until it's known. */
function useNextPrompt(chat: OpenChat): ChatPreview | undefined {
  const { connections } = useStore();
  const [found, setFound] = useState<ChatPreview>();
  const documents = chat.documents.items.value;
  const { connection_id, model, params, participants, preset_id } = chat.options.value;
  const sizes = connections.items.value.map((each) => [each.id, each.active, each.context_size, each.context_sizes]);
  const isReady = documents.some(({ document }) => document?.state === "ready");
  const state = JSON.stringify([
    documents.map(({ id, document, use, pages }) => [id, document?.state, document?.tokens, use, pages]),
    [connection_id, model, params, participants, preset_id, sizes, chat.pages.items.value.length],
  ]);
  const text = chat.draft.text.value;
  useEffect(() => {
    if (!isReady) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      // Without it, the chips show what the documents contain; sending reports the failure.
      chat.preview(abort.signal).then(setFound, () => abort.signal.aborted || setFound(undefined));
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [state, text, isReady]);
  return isReady ? found : undefined;
}

function DocumentChip(
  { chat, item, preview }: { chat: OpenChat; item: AttachedDocument; preview: ChatPreview | undefined },
) {
  const [isOpen, setOpen] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const sent = preview?.documents.find(({ id, use }) => id === item.id && use === item.use);
  const { document, isWaiting } = item;
  const isReady = document?.state === "ready";
  const isBusy = document === undefined ? !isWaiting : document.state === "extracting";
  const fit = isReady && sent && sent.error === undefined ? describeSent(sent, item.pages, false) : undefined;
  const isCut = fit?.isCut === true;
  return (
    <li class={isCut ? "document-chip is-cut" : "document-chip"} aria-busy={isBusy}>
      <button type="button" class="document-name" disabled={!isReady} onClick={() => setOpen(true)}>
        <span>{document?.name ?? item.name}</span>
        <small class={document?.state === "failed" ? "field-error" : "muted"} role="status">
          {isWaiting ? texts.unsent.title : describeDocument(document, fit && !fit.isPart ? sent : undefined)}
        </small>
      </button>
      {isReady && (
        <DocumentUseMenu
          document={document}
          use={item}
          onChange={(use) => chat.documents.setUse(item.key, use)}
          onReadAgain={() => void chat.documents.follow(document.id)}
        />
      )}
      <IconButton
        icon="close"
        label={texts.documents.remove(item.name)}
        onClick={() => chat.documents.remove(item.key)}
      />
      {isReady && isCut && (
        <CutNote
          chat={chat}
          item={item}
          document={document}
          words={fit.text}
          preview={preview!}
        />
      )}
      {document && isScan(document) && (
        <Button kind="quiet" icon="image" onClick={() => setChoosing(true)}>{texts.documents.sendAsPictures}</Button>
      )}
      {document?.state === "failed" && (
        <ReadAgainButton
          document={document}
          onStart={() => void chat.documents.follow(document.id)}
        />
      )}
      {document && <DocumentLedger document={document} />}
      {isChoosing && document && (
        <PageImagesDialog
          chat={chat}
          document={document}
          onClose={() => setChoosing(false)}
        />
      )}
      {isOpen && document && <DocumentReader id={document.id} name={document.name} onClose={() => setOpen(false)} />}
    </li>
  );
}

/** Says how much of a document would be sent, with the choices. */
function CutNote(
  { chat, item, document, words, preview }: {
    chat: OpenChat;
    item: AttachedDocument;
    document: StoredDocument;
    words: string;
    preview: ChatPreview;
  },
) {
  const { connections } = useStore();
  const [opened, setOpened] = useState<"choice" | "size">();
  const t = texts.documents;
  const { connection: { id: connectionId }, model } = preview;
  const isOwn = connections.items.value.find(({ id }) => id === connectionId)?.context_sizes?.[model] !== undefined;
  return (
    <div class="cut-note">
      <p class="cut-mark" role="status">
        <Icon name="warning" />
        {words}
      </p>
      {item.use === "auto" && (
        <Button kind="quiet" onClick={() => chat.documents.setUse(item.key, { use: "whole" })}>{t.sendAll}</Button>
      )}
      <Button kind="quiet" label={t.choosePages[document.unit]} onClick={() => setOpened("choice")}>
        {t.chooseParts}
      </Button>
      {(preview.context_size_assumed || isOwn) && (
        <Button kind="quiet" onClick={() => setOpened("size")}>{t.setSize}</Button>
      )}
      {opened === "choice" && (
        <DocumentReader
          id={document.id}
          name={document.name}
          choice={{
            count: document.pages,
            unit: document.unit,
            pages: item.pages ?? "",
            onChoose: (pages) => chat.documents.setUse(item.key, { use: "pages", pages }),
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
      {opened === "size" && (
        <ContextSizeDialog
          connectionId={connectionId}
          model={model}
          onClose={() => setOpened(undefined)}
        />
      )}
    </div>
  );
}

/** Replaces the link in the text with a document. Restores the link if the document can't be added. */
export function LinkOffer({ chat, url }: { chat: OpenChat; url: string }) {
  const store = useStore();
  const attach = () => {
    const text = chat.draft.text.peek();
    chat.draft.type(text.slice(0, text.lastIndexOf(url)).trimEnd());
    chat.documents.addLink(url).catch((thrown) => {
      const now = chat.draft.text.peek();
      chat.draft.type(now === "" ? url : `${now}\n\n${url}`);
      store.toasts.show(asApiError(thrown).message, { isError: true });
    });
  };
  return (
    <div class="link-offer">
      <Button kind="quiet" icon="plus" onClick={attach}>{texts.documents.attachPage}</Button>
      <span class="muted">{new URL(url).host}</span>
    </div>
  );
}

/** The list above the text. */
export function RecordingRow({ chat }: { chat: OpenChat }) {
  const t = texts.talk;
  return (
    <ul class="document-row" aria-label={t.recordings}>
      {chat.recordings.items.value.map(({ name, isBusy }, index) => (
        <li key={name} class="document-chip recording-chip" aria-busy={isBusy.value}>
          <Icon name="microphone" />
          <span>{t.recordingN(index + 1)}</span>
          <IconButton
            icon="close"
            label={t.removeRecording(index + 1)}
            onClick={() =>
              chat.recordings.remove(name)}
          />
        </li>
      ))}
    </ul>
  );
}

/** Maximum number of pages at a time. For a vision model, each costs about as much as one or two pages of text. */
const MAX_PAGES = 4;

/** Returns whether a document has pages whose text can't be read, but that can be sent as images. */
function isScan({ state, error, pages, ledger }: StoredDocument): boolean {
  if (state === "failed") return error?.code === "no_text" && pages > 0;
  return ledger.some(({ kind }) => kind === "page_without_text" || kind === "unmapped") && pages > 0;
}

/** The dialog. Pages are attached one after the other; the first that can't be read ends it. */
function PageImagesDialog(
  { chat, document, onClose }: { chat: OpenChat; document: StoredDocument; onClose: () => void },
) {
  const { api, toasts } = useStore();
  const { id, name, pages: count } = document;
  const t = texts.documents;
  const [written, setWritten] = useState(count > 1 ? `1-${Math.min(count, MAX_PAGES)}` : "1");
  const [isBusy, setBusy] = useState(false);
  const draft = useFormDraft(`page_images:${id}`);
  const chosen = parsePageList(written, count);
  const isValid = chosen !== undefined && chosen.length > 0 && chosen.length <= MAX_PAGES;
  const attach = async () => {
    if (!isValid || isBusy) return;
    draft.clear();
    setBusy(true);
    try {
      for (const n of chosen) {
        const response = await api.client.send("GET", `/api/documents/${encodeURIComponent(id)}/pages/${n}/image`);
        const file = new File([await response.blob()], t.pageOf(name, n), { type: "image/jpeg" });
        await chat.images.add(file);
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
          <CancelButton draft={draft} onCancel={onClose} />
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
        <Drafted draft={draft}>
          <TextField
            label={t.pagesToSend.page}
            value={written}
            placeholder="3-5, 12"
            error={isValid ? undefined : t.badPictures(count, MAX_PAGES)}
            onInput={setWritten}
          />
        </Drafted>
      </form>
    </Dialog>
  );
}
