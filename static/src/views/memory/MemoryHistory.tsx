/** The earlier versions of a note, and Restore. */
import { memoryApi } from "../../api/memories.ts";
import type { Memory } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { useStore } from "../../state/store.ts";
import { formatDateTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../use_resource.ts";

/** Restoring makes a version of what it replaces. */
export function MemoryHistory({ note, onRestored, onClose }: {
  note: Memory;
  onRestored: () => void;
  onClose: () => void;
}) {
  const store = useStore();
  const api = memoryApi(store.api.client);
  const { value, error, again } = useResource(() => api.listVersions(note.id));
  const t = texts.memory;
  const restore = (n: number) =>
    api.restoreVersion(note.id, n).then(() => {
      onRestored();
      onClose();
    }, (thrown) => store.report(thrown));
  return (
    <Dialog title={t.history} onClose={onClose}>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {!value && !error && <p class="muted" role="status">{texts.loading}</p>}
      {value?.length === 0 && <p>{t.noHistory}</p>}
      <ul class="memory-versions">
        {value?.map(({ n, text, created_at }) => (
          <li key={n}>
            <p class="memory-text">{text}</p>
            <p class="hint">{formatDateTime(created_at)}</p>
            <Button icon="restore" onClick={() => void restore(n)}>{t.restore}</Button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
