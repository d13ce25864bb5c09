/** The trash of the last seven days: restore, or delete permanently. */
import { useEffect, useState } from "preact/hooks";
import type { TrashItem } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { stripMarkdown } from "../../markdown/plain_text.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatTime } from "../../texts/format.ts";

/** The list. Emptying it is the one action here that asks first, since it can't be undone. */
export function TrashPage() {
  const store = useStore();
  const { trash } = store;
  const t = texts.trash;
  const [isAsking, setAsking] = useState(false);
  useEffect(() => void trash.refresh(), []);
  const items = trash.items.value;
  const error = trash.error.value;
  const empty = () => {
    setAsking(false);
    trash.empty().then(() => store.toasts.show(t.emptied), (thrown) => store.report(thrown));
  };
  return (
    <section>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.failed} error={error} onRetry={() => void trash.refresh()} />}
      {trash.state.value === "loading" && <p class="muted" role="status">{texts.loading}</p>}
      {trash.state.value === "ready" && items.length === 0 && <EmptyState level={3} title={t.noneTitle} />}
      {items.length > 0 && (
        <>
          <List label={t.title}>{items.map((item) => <TrashRow key={item.id} item={item} />)}</List>
          <div class="actions-row">
            <Button icon="trash" onClick={() => setAsking(true)}>{t.empty}</Button>
          </div>
        </>
      )}
      {isAsking && (
        <Dialog
          title={t.askTitle}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>{texts.cancel}</Button>
              <Button kind="primary" onClick={empty}>{t.empty}</Button>
            </>
          }
        >
          <p>{t.askText(items.length)}</p>
        </Dialog>
      )}
    </section>
  );
}

function TrashRow({ item }: { item: TrashItem }) {
  const store = useStore();
  const t = texts.trash;
  const [isBusy, setBusy] = useState(false);
  const kind = t.kinds[item.kind as keyof typeof t.kinds] ?? item.kind;
  const title = stripMarkdown(item.title) || t.untitled;
  const restore = async () => {
    setBusy(true);
    try {
      await store.trash.restore(item.id);
      store.toasts.show(t.restored(title));
    } catch (thrown) {
      store.report(thrown);
      setBusy(false);
    }
  };
  return (
    <ListRow
      title={<span class="clamped">{title}</span>}
      text={[kind, t.removedAt(formatTime(item.deleted_at, new Date()))].join(" · ")}
      end={
        <Button icon="restore" isBusy={isBusy} label={t.restoreIt(title)} onClick={() => void restore()}>
          {t.restore}
        </Button>
      }
    />
  );
}
