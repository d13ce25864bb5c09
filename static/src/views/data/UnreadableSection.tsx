/** Stored things that can't be read, and the button that restores them. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import { checkStored, restoreUnreadable } from "../../api/server.ts";
import type { StoredReport } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { formatDateTime, formatTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { ConfirmDialog } from "../auth/ConfirmDialog.tsx";
import type { Resource } from "../hooks.tsx";

/** What was found, when everything was read last, and a check at once. */
export function UnreadableSection({ stored }: { stored: Resource<StoredReport> }) {
  const store = useStore();
  const { client } = store.api;
  const t = texts.unreadable;
  const { value: report, error, again } = stored;
  const [isChecking, setChecking] = useState(false);
  const [busyPath, setBusyPath] = useState<string>();
  const [older, setOlder] = useState<{ path: string; text: string }>();

  const check = async () => {
    setChecking(true);
    try {
      await checkStored(client);
      again();
    } catch (thrown) {
      store.report(thrown);
    }
    setChecking(false);
  };
  const restore = async (path: string, acceptsOlder: boolean) => {
    const { from, made_at } = await restoreUnreadable(client, path, acceptsOlder);
    store.toasts.show(t.restored[from](formatDateTime(made_at)));
    again();
  };
  const press = async (path: string) => {
    setBusyPath(path);
    try {
      await restore(path, false);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 409) setOlder({ path, text: thrown.message });
      else store.report(thrown);
    }
    setBusyPath(undefined);
  };
  return (
    <section class="settings-part" aria-labelledby="unreadable">
      <h3 id="unreadable" tabIndex={-1}>{t.title}</h3>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {report && report.items.length > 0 && (
        <Notice tone="warning" title={t.found(report.items.length)}>{t.text}</Notice>
      )}
      {report && (
        <p class="muted" role="status">
          {report.checked_at === null ? t.never : t.checked(formatDateTime(report.checked_at))}
        </p>
      )}
      {report && report.items.length > 0 && (
        <List label={t.title}>
          {report.items.map(({ path, since }) => (
            <ListRow
              key={path}
              title={describe(path)}
              text={t.since(formatTime(since, new Date()))}
              end={
                <Button isBusy={busyPath === path} onClick={() => void press(path)}>
                  {t.restore}
                </Button>
              }
            />
          ))}
        </List>
      )}
      <div class="actions-row">
        <Button icon="search" isBusy={isChecking} onClick={() => void check()}>{t.check}</Button>
      </div>
      {older && (
        <ConfirmDialog
          title={t.olderTitle}
          action={t.olderRestore}
          act={() => restore(older.path, true)}
          onClose={() => setOlder(undefined)}
        >
          <p>{describe(older.path)}</p>
          <p>{t.olderText}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}

/** Names an item by its kind and ID: its title may be what can't be read. */
function describe(path: string): string {
  const [folder = "", ...id] = path.split("/");
  const kinds: Readonly<Record<string, string>> = texts.unreadable.kinds;
  const kind = kinds[folder];
  return kind === undefined ? path : `${kind}: ${id.join("/")}`;
}
