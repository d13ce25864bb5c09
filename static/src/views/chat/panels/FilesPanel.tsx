/** The documents and images of a chat, the last ones first. */
import { useState } from "preact/hooks";
import { libraryApi } from "../../../api/library.ts";
import type { ChatFiles } from "../../../api/types.ts";
import { ApiImage } from "../../../components/ApiFile.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { PANEL_QUERY } from "../../../components/overlays/Panel.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { formatTime } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { DocumentReader } from "../../documents/DocumentReader.tsx";
import { describeDocument } from "../../documents/DocumentUseMenu.tsx";
import { useResource } from "../../hooks.tsx";

/** A document opens in the reader; an image leads to its message. */
export function FilesPanel({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const t = texts.library;
  const { value, error, again } = useResource(
    () => libraryApi(store.api.client).listChatFiles(chat.id),
    "conversation",
    "document",
  );
  const [opened, setOpened] = useState<ChatFiles["documents"][number]>();
  const toMessage = (id: string) => `/c/${encodeURIComponent(chat.id)}#${encodeURIComponent(id)}`;
  // Where the panel covers the chat, it makes way for the message.
  const leave = () => {
    if (!globalThis.matchMedia(PANEL_QUERY).matches) store.closePanel();
  };
  const isEmpty = value?.documents.length === 0 && value.images.length === 0;
  return (
    <div class="files-panel">
      {error && <ErrorNote title={t.filesFailed} error={error} onRetry={() => void again()} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {isEmpty && <p role="status">{t.noFiles}</p>}
      {value !== undefined && value.documents.length > 0 && (
        <section aria-labelledby="files-documents">
          <h3 id="files-documents">{texts.documents.title}</h3>
          <ul class="list">
            {value.documents.map((document) => {
              const inside = (
                <span class="list-text">
                  <span class="list-title">
                    <span class="clamped">{document.name || texts.documents.untitled}</span>
                  </span>
                  <span class="list-more">{describeDocument(document)}</span>
                </span>
              );
              return (
                <li key={document.id} class="list-row library-row">
                  {document.state === "ready"
                    ? <button type="button" class="list-main" onClick={() => setOpened(document)}>{inside}</button>
                    : <div class="list-main">{inside}</div>}
                  <div class="library-chats">
                    {document.message_id === null
                      ? <span class="muted">{t.always}</span>
                      : (
                        <a class="library-chat" href={toMessage(document.message_id)} onClick={leave}>
                          <span>{t.toMessage}</span>
                        </a>
                      )}
                  </div>
                </li>
              );
            })}
          </ul>
        </section>
      )}
      {value !== undefined && value.images.length > 0 && (
        <section aria-labelledby="files-images">
          <h3 id="files-images">{t.images}</h3>
          <ul class="zoom-grid">
            {value.images.map(({ name, url, message_id, created_at }, n) => (
              <li key={name}>
                <a
                  class="files-image"
                  href={toMessage(message_id)}
                  aria-label={t.imageAt(n + 1, formatTime(created_at, new Date()))}
                  onClick={leave}
                >
                  <ApiImage src={url} alt="" loading="lazy" decoding="async" />
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
      {opened && <DocumentReader id={opened.id} name={opened.name} onClose={() => setOpened(undefined)} />}
    </div>
  );
}
