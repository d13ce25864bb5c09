/** Documents and recordings of a message. */
import { useState } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { showPageList } from "../../../state/chat/attachments.ts";
import { Icon } from "../../../components/Icon.tsx";
import { describeSent } from "../../documents/sent_document.ts";
import { texts } from "../../../texts/texts.ts";
import { DocumentReader } from "../../documents/DocumentReader.tsx";
import { useFileUrl } from "../../../components/ApiFile.tsx";
import { listRecordingUrls } from "../../../state/chat/message_text.ts";

/** The chips below a message. */
export function MessageDocuments({ message }: { message: Message }) {
  const [opened, setOpened] = useState<{ id: string; name: string; page?: number }>();
  const t = texts.documents;
  return (
    <>
      <ul class="document-row" aria-label={message.role === "user" ? t.attached : t.sources}>
        {message.documents?.map(({ id, sent, pages: chosen }) => {
          const name = sent?.name || t.untitled;
          const pages = sent?.pages ?? "";
          const { text, isCut } = describeSent(sent, chosen);
          return (
            <li key={id} class={isCut ? "document-chip is-cut" : "document-chip"}>
              <button
                type="button"
                class="document-name"
                onClick={() => setOpened({ id, name, page: Number.parseInt(pages, 10) || undefined })}
              >
                <span>{name}</span>
                {sent && (
                  <small class={isCut ? "cut-mark" : "muted"} title={showPageList(pages)}>
                    {isCut && <Icon name="warning" />}
                    {text}
                  </small>
                )}
              </button>
            </li>
          );
        })}
      </ul>
      {opened && <DocumentReader {...opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}

/** A player for each. */
export function MessageRecordings({ message }: { message: Message }) {
  return (
    <div class="message-recordings">
      {listRecordingUrls(message).map((url, index) => <Recording key={url} url={url} n={index + 1} />)}
    </div>
  );
}

function Recording({ url, n }: { url: string; n: number }) {
  const [isGone, setGone] = useState(false);
  if (isGone) return <p class="muted">{texts.talk.recordingGone}</p>;
  return (
    <audio
      controls
      preload="metadata"
      src={useFileUrl(url)}
      aria-label={texts.talk.recordingN(n)}
      onError={() => setGone(true)}
    />
  );
}
