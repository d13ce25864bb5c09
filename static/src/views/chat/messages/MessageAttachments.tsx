/** Documents and recordings of a message. */
import { useState } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { showPageList } from "../../../state/chat/attachments.ts";
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
        {message.documents?.map(({ id, sent }) => {
          const name = sent?.name || t.untitled;
          const pages = sent?.pages ?? "";
          return (
            <li key={id} class="document-chip">
              <button
                type="button"
                class="document-name"
                onClick={() => setOpened({ id, name, page: Number.parseInt(pages, 10) || undefined })}
              >
                <span>{name}</span>
                {sent && (
                  <small class="muted">
                    {pages === "" ? t.notSent : t.sent(showPageList(pages), sent.page_count ?? 0)}
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
