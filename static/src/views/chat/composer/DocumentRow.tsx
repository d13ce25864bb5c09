/** The documents that go out with the message: type, pages, tokens and state of each. */
import { useState } from "preact/hooks";
import { Button, IconButton } from "../../../components/Button.tsx";
import type { AttachedDocument } from "../../../state/chat/document_attachments.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";
import { describeDocument } from "../../documents/describe_document.ts";
import { DocumentReader } from "../../documents/DocumentReader.tsx";
import { isScan, PagePicturesDialog } from "../../documents/PagePicturesDialog.tsx";
import { DocumentUseMenu } from "../../documents/DocumentUseMenu.tsx";

/** The row above the composer's text. */
export function DocumentRow({ chat }: { chat: OpenChat }) {
  return (
    <ul class="document-row" aria-label={texts.documents.attached}>
      {chat.documents.items.value.map((item) => <DocumentChip key={item.key} chat={chat} item={item} />)}
    </ul>
  );
}

function DocumentChip({ chat, item }: { chat: OpenChat; item: AttachedDocument }) {
  const [isOpen, setOpen] = useState(false);
  const [isChoosing, setChoosing] = useState(false);
  const { document } = item;
  const isReady = document?.state === "ready";
  return (
    <li class="document-chip" aria-busy={document === undefined || document.state === "extracting"}>
      <button type="button" class="document-name" disabled={!isReady} onClick={() => setOpen(true)}>
        <span>{document?.name ?? item.name}</span>
        <small class={document?.state === "failed" ? "field-error" : "muted"} role="status">
          {describeDocument(document)}
        </small>
      </button>
      {isReady && (
        <DocumentUseMenu
          document={document}
          use={item}
          onChange={(use) => chat.documents.setUse(item.key, use)}
        />
      )}
      <IconButton
        icon="close"
        label={texts.documents.remove(item.name)}
        onClick={() => chat.documents.remove(item.key)}
      />
      {document && isScan(document) && (
        <Button kind="quiet" icon="image" onClick={() => setChoosing(true)}>{texts.documents.sendAsPictures}</Button>
      )}
      {isChoosing && document && (
        <PagePicturesDialog
          chat={chat}
          document={document}
          onClose={() => setChoosing(false)}
        />
      )}
      {isOpen && document && <DocumentReader id={document.id} name={document.name} onClose={() => setOpen(false)} />}
    </li>
  );
}
