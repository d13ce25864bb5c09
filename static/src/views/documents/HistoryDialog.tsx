/** The earlier versions of a resource: when and why each was replaced, the difference, and Restore. */
import type { Version } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { listVersions, readVersion, restoreVersion } from "../../api/versions.ts";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { TextDiff } from "../../components/content/TextDiff.tsx";
import { useStore } from "../../state/store.ts";
import { formatDateTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";

/** Fields by name. */
export type VersionFields = Readonly<Record<string, unknown>>;

interface HistoryProps {
  /** Path of the resource in the API: `/api/personas/p1`. */
  path: string;
  name: string;
  /** The current fields. */
  current: VersionFields;
  /** Picks the fields from the API's version. */
  fieldsOf?: (detail: VersionFields) => VersionFields;
  /** Labels of fields; others use their own name. */
  names: Readonly<Record<string, string>>;
  /** Called after a version was restored, and after that was undone. */
  onRestored: () => void;
  onClose: () => void;
}

/** The list in a dialog. */
export function HistoryDialog(props: HistoryProps) {
  const { api: { client } } = useStore();
  const { value: versions, error, again } = useResource(() => listVersions(client, props.path));
  const t = texts.history;
  return (
    <Dialog title={t.title(props.name)} onClose={props.onClose}>
      <div class="history-panel">
        <p class="muted">{t.intro}</p>
        {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
        {!versions && !error && <p class="muted" role="status">{texts.loading}</p>}
        {versions?.length === 0 && <p>{t.none}</p>}
        {versions && versions.length > 0 && (
          <ul class="history-list" aria-label={t.open}>
            {versions.map((version) => <VersionRow key={version.n} {...props} version={version} />)}
          </ul>
        )}
      </div>
    </Dialog>
  );
}

function VersionRow(props: HistoryProps & { version: Version }) {
  const { version, path, name, onRestored, onClose } = props;
  const store = useStore();
  const { client } = store.api;
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const t = texts.history;
  const moment = formatDateTime(version.created_at);
  const undo = async () => {
    try {
      // Restoring stores the replaced version as the newest one.
      const [replaced] = await listVersions(client, path);
      if (replaced) await restoreVersion(client, path, replaced.n);
      onRestored();
    } catch (thrown) {
      store.report(thrown);
    }
  };
  const restore = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await restoreVersion(client, path, version.n);
      store.offerUndo({ done: t.restored(name), undo: texts.undo }, undo);
      onRestored();
      onClose();
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="history-cause">{t.causes[version.cause]}</span>
          <span class="muted">{moment}</span>
        </summary>
        {isOpen && <Detail {...props} />}
        {error && <ErrorNote title={t.restoreFailed} error={error} />}
        <div class="actions-row">
          <Button icon="restore" isBusy={isBusy} label={t.restoreOf(moment)} onClick={() => void restore()}>
            {t.restore}
          </Button>
        </div>
      </details>
    </li>
  );
}

/** The image of a version and each field that differs. */
function Detail(
  { version, path, name, current, names, fieldsOf = (detail) => detail }: HistoryProps & { version: Version },
) {
  const { api: { client } } = useStore();
  const t = texts.history;
  const { value: detail, error, again } = useResource(() => readVersion(client, path, version.n));
  if (error) return <ErrorNote title={t.failed} error={error} onRetry={again} />;
  if (detail === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const earlier = fieldsOf(detail);
  const fields = [...new Set([...Object.keys(earlier), ...Object.keys(current)])].filter((field) =>
    field !== "has_avatar" && getFieldText(earlier[field]) !== getFieldText(current[field])
  );
  return (
    <div class="history-detail">
      {detail.has_avatar === true && (
        <Portrait
          name={name}
          widthPx={96}
          path={`${path}/versions/${version.n}/avatar`}
          version={version.created_at}
          class="history-picture"
        />
      )}
      {fields.length === 0 && <p class="muted">{t.same}</p>}
      {fields.map((field) => (
        <section key={field}>
          <h3>{Object.hasOwn(names, field) ? names[field] : field}</h3>
          <TextDiff before={getFieldText(earlier[field])} after={getFieldText(current[field])} />
        </section>
      ))}
    </div>
  );
}

function getFieldText(value: unknown): string {
  if (typeof value === "string") return value;
  const isEmpty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  return isEmpty ? "" : JSON.stringify(value, null, 2);
}
