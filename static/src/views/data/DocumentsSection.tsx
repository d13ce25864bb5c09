/** All documents: what they are, how much space they take, open, delete. */
import { useState } from "preact/hooks";
import type { StoredDocument } from "../../api/types.ts";
import { IconButton, LinkButton } from "../../components/Button.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { bytes } from "../activity/format_progress.ts";
import { useDocuments } from "../documents/AlwaysAtHand.tsx";
import { describeDocument } from "../documents/describe_document.ts";
import { DocumentReader } from "../documents/DocumentReader.tsx";

/** The newest come first. */
export function DocumentsSection() {
  const store = useStore();
  const { documents, error, refresh } = useDocuments();
  const [opened, setOpened] = useState<StoredDocument>();
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const t = texts.documents;
  const hide = (id: string, isHidden: boolean) =>
    setRemoved((before) => new Set(isHidden ? [...before, id] : [...before].filter((each) => each !== id)));
  const remove = ({ id, name }: StoredDocument) => {
    hide(id, true);
    store.toasts.offerUndo(t.deleted(name), texts.undo, () => hide(id, false), (isLeaving) => {
      store.api.client.send("DELETE", `/api/documents/${encodeURIComponent(id)}`, { keepalive: isLeaving })
        .then(refresh, (thrown) => {
          hide(id, false);
          store.report(thrown);
        });
    });
  };
  const shown = documents?.filter(({ id }) => !removed.has(id));
  return (
    <section class="privacy-part" aria-labelledby="documents">
      <h3 id="documents" tabIndex={-1}>{t.title}</h3>
      {error && <ErrorNote title={t.listFailed} error={error} onRetry={refresh} />}
      {documents === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {shown?.length === 0 && (
        <>
          <p class="muted">{t.none}</p>
          <div class="actions-row">
            <LinkButton href="/new">{texts.nav.newChat}</LinkButton>
          </div>
        </>
      )}
      {shown !== undefined && shown.length > 0 && (
        <List label={t.title}>
          {shown.map((document) => (
            <ListRow
              key={document.id}
              title={<span class="clamped">{document.name || t.untitled}</span>}
              text={[describeDocument(document), bytes(document.size_bytes)].join(" · ")}
              onClick={document.state === "ready" ? () => setOpened(document) : undefined}
              end={<IconButton icon="trash" label={t.delete(document.name)} onClick={() => remove(document)} />}
            />
          ))}
        </List>
      )}
      {opened && <DocumentReader id={opened.id} name={opened.name} onClose={() => setOpened(undefined)} />}
    </section>
  );
}
