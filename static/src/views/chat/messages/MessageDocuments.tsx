/** The documents of a message, with what of each was sent. */
import { useState } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { showPageList } from "../../../state/chat/document_pages.ts";
import { texts } from "../../../texts/texts.ts";
import { DocumentReader } from "../../documents/DocumentReader.tsx";

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
