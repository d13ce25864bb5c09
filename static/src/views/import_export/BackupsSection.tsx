/** Backups: schedule, create one now, and the list. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type BackupChanges, backupPath, changeBackups, removeBackup, startBackup } from "../../api/import_export.ts";
import type { DataReport, Job } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatDateTime, formatTime } from "../../texts/format.ts";
import { bytes, formatProgress } from "../../texts/quantities.ts";
import { ConfirmDialog } from "../auth/ConfirmDialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { useAction } from "../hooks.tsx";
import { downloadFile, needsFetch } from "../../components/ApiFile.tsx";
import { Icon } from "../../components/Icon.tsx";

const BACKUP_COMMAND = "parlor backup FILE";

/** @param props.onChange Called when the list is outdated. */
export function BackupsSection({ report, onChange }: { report: DataReport; onChange: () => void }) {
  const { api, toasts } = useStore();
  const t = texts.data;
  const [doomed, setDoomed] = useState<DataReport["backups"][number]>();
  const heading = useRef<HTMLHeadingElement>(null);
  const hasRemoved = useRef(false);
  const remove = async (name: string) => {
    await removeBackup(api.client, name);
    toasts.show(texts.backups.removed);
    hasRemoved.current = true;
    onChange();
  };
  // The row's button, which had the focus, has been removed.
  useEffect(() => {
    if (hasRemoved.current && document.activeElement === document.body) heading.current?.focus();
    hasRemoved.current = false;
  }, [report]);
  const now = new Date();
  const hasFolder = report.backup_dir !== null;
  return (
    <section class="settings-part" aria-labelledby="backups">
      <h3 id="backups" tabIndex={-1} ref={heading}>{t.backups}</h3>
      {hasFolder
        ? <p class="muted">{texts.backups.kept}</p>
        : <Notice tone="warning" title={texts.backups.off}>{texts.backups.offText}</Notice>}
      {hasFolder && <BackupNow onMade={onChange} />}
      <BackupSettings key={`${report.backup_dir}`} report={report} onChange={onChange} />
      {hasFolder && report.backups.length === 0 && <p>{t.noneYet}</p>}
      {report.backups.length > 0 && (
        <List label={t.backups}>
          {report.backups.map(({ name, size_bytes, made_at }) => (
            <ListRow
              key={name}
              title={name}
              text={`${formatTime(made_at, now)} · ${bytes(size_bytes)}`}
              end={
                <>
                  <DownloadLink path={backupPath(name)} fileName={name} label={texts.backups.save(name)}>
                    {texts.backups.saveShort}
                  </DownloadLink>
                  <IconButton
                    icon="trash"
                    label={texts.backups.remove(name)}
                    onClick={() => setDoomed({ name, size_bytes, made_at })}
                  />
                </>
              }
            />
          ))}
        </List>
      )}
      {doomed && (
        <ConfirmDialog
          title={texts.backups.removeAsk}
          action={texts.backups.removeShort}
          act={() => remove(doomed.name)}
          onClose={() => setDoomed(undefined)}
        >
          <p class="file-name">{doomed.name}</p>
          <p>{formatDateTime(doomed.made_at)} · {bytes(doomed.size_bytes)}</p>
          <p>{texts.backups.removeText}</p>
        </ConfirmDialog>
      )}
      {report.backups.length > 0 && <p class="muted">{texts.backups.sealed}</p>}
      <p>{t.byHand}</p>
      <p>
        <code>{BACKUP_COMMAND}</code>
      </p>
      <p class="muted">{t.key}</p>
    </section>
  );
}

function BackupNow({ onMade }: { onMade: () => void }) {
  const store = useStore();
  const { activity } = store;
  const t = texts.backups;
  const [error, setError] = useState<ApiError>();
  const [isStarting, setStarting] = useState(false);
  const running = activity.runningJobs.value.find(({ kind }) => kind === "backup");
  // The job that was seen here, to show its result.
  const [followedId, follow] = useState<string>();
  if (running && running.id !== followedId) follow(running.id);
  const ended = activity.endedJobs.value.find(({ id }) => id === followedId);
  // Also one that was too quick to be seen running, and one that failed: backup_after comes after the file was written.
  const lastId = activity.endedJobs.value.find(({ kind }) => kind === "backup")?.id;
  useEffect(() => {
    if (lastId !== undefined) onMade();
  }, [lastId]);
  const start = async () => {
    setStarting(true);
    setError(undefined);
    try {
      follow((await startBackup(store.api.client)).id);
      await activity.refresh();
    } catch (thrown) {
      setError(asApiError(thrown));
    } finally {
      setStarting(false);
    }
  };
  return (
    <>
      {error && <ErrorNote title={t.failed} error={error} />}
      {ended && <Ending job={ended} />}
      {running
        ? (
          <div class="card step-card">
            <p role="status">{t.running}</p>
            <Progress
              label={t.running}
              value={running.progress?.total ? running.progress.done / running.progress.total : null}
              text={formatProgress(running.progress)}
            />
            <div class="actions-row">
              <Button
                onClick={() => void activity.cancel(running.id).catch((thrown) => store.report(thrown))}
                label={texts.activity.cancelJob(running.title)}
              >
                {texts.cancel}
              </Button>
            </div>
          </div>
        )
        : (
          <div class="actions-row">
            <Button isBusy={isStarting} onClick={() => void start()}>{t.now}</Button>
          </div>
        )}
    </>
  );
}

function Ending({ job: { state, error, detail } }: { job: Job }) {
  const t = texts.backups;
  if (state === "done") {
    const { after, ...counts } = (detail ?? {}) as { after?: string } & Record<string, unknown>;
    return (
      <p role="status">{[after === undefined ? t.done : t.doneAfter(after), ...listContents(counts)].join(" · ")}</p>
    );
  }
  if (state === "failed") return <Notice tone="danger" title={t.failed}>{error?.message}</Notice>;
  return null;
}

/** Lists what is in a backup: `["12 chats", "3 characters"]`. */
function listContents(counts: Record<string, unknown>): string[] {
  const { conversation: chats, character: characters, persona: personas, lorebook: lorebooks, voice: voices } =
    texts.import.things;
  const { images, recordings } = texts.backups;
  return Object.entries({ chats, characters, personas, lorebooks, images, recordings, voices })
    .flatMap(([kind, format]) => {
      const count = counts[kind];
      return typeof count === "number" && count > 0 ? [format(count)] : [];
    });
}

const KEEP_CHOICES = [1, 3, 7, 14, 30, 90];

/** Values set by a flag or the environment are read-only. @param props.onChange Called after a change. */
function BackupSettings({ report, onChange }: { report: DataReport; onChange: () => void }) {
  const store = useStore();
  const t = texts.backups;
  const { backup_dir: folder, backup_schedule: schedule, backup_keep: keep, backup_fixed: fixed } = report;
  const [path, setPath] = useState(folder ?? "");
  const save = async (changes: BackupChanges, message?: string) => {
    await changeBackups(store.api.client, changes);
    if (message) store.toasts.show(message);
    onChange();
  };
  const draft = useFormDraft("backup_folder");
  const useFolder = useAction(async () => {
    await save({ backup_dir: path.trim() }, t.folderSaved);
    draft.clear();
  });
  const turnOff = useAction(() => save({ backup_dir: null }, t.turnedOff));
  const change = (changes: BackupChanges) => void save(changes).catch((thrown) => store.report(thrown));
  const hintOf = (field: keyof BackupChanges, hint?: string) => fixed.includes(field) ? t.fixed : hint;
  const counts = [...new Set([...KEEP_CHOICES, keep])].sort((a, b) => a - b);
  return (
    <div class="form backup-settings">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void useFolder.run();
        }}
      >
        <Drafted draft={draft}>
          <TextField
            id="backup-folder"
            label={t.folder}
            hint={hintOf("backup_dir", t.folderHint)}
            value={path}
            placeholder={t.folderPlaceholder}
            maxLength={4096}
            error={useFolder.failure ?? turnOff.failure}
            isMono
            isDisabled={fixed.includes("backup_dir")}
            onInput={setPath}
          />
        </Drafted>
        {report.backup_same_disk === true && <Notice tone="warning">{t.sameDisk}</Notice>}
        {!fixed.includes("backup_dir") && (path.trim() !== (folder ?? "") || folder !== null) && (
          <div class="actions-row">
            {path.trim() !== "" && path.trim() !== folder && (
              <Button kind="primary" type="submit" isBusy={useFolder.isBusy}>{t.useFolder}</Button>
            )}
            {folder !== null && <Button isBusy={turnOff.isBusy} onClick={() => void turnOff.run()}>{t.turnOff}</Button>}
          </div>
        )}
      </form>
      {folder !== null && (
        <>
          <Select
            id="backup-schedule"
            label={t.schedule}
            hint={hintOf("backup_schedule")}
            value={schedule}
            options={(["daily", "weekly", "off"] as const).map((value) => ({ value, name: t.schedules[value] }))}
            isDisabled={fixed.includes("backup_schedule")}
            onChange={(value) => change({ backup_schedule: value })}
          />
          {schedule !== "off" && (
            <Select
              id="backup-keep"
              label={t.keep}
              hint={hintOf("backup_keep", t.keepHint)}
              value={String(keep)}
              options={counts.map((count) => ({ value: String(count), name: String(count) }))}
              isDisabled={fixed.includes("backup_keep")}
              onChange={(value) => change({ backup_keep: Number(value) })}
            />
          )}
        </>
      )}
    </div>
  );
}

/**
 * A link that downloads a response of our server. Usually the browser downloads it as a stream. On a device that signs in with a token, which links don't send, the
 * page fetches it first.
 */
export function DownloadLink(
  { path, fileName, label, children, kind = "plain" }: {
    path: string;
    fileName: string;
    /** Accessible name, if the visible label is ambiguous. */
    label?: string;
    children: string;
    kind?: "plain" | "primary";
  },
) {
  const store = useStore();
  const [isBusy, setBusy] = useState(false);
  if (!needsFetch(path)) {
    return (
      <a class={`button ${kind}`} href={path} download={fileName} aria-label={label}>
        <Icon name="export" />
        <span>{children}</span>
      </a>
    );
  }
  const save = async () => {
    setBusy(true);
    await downloadFile(store, path, fileName);
    setBusy(false);
  };
  return <Button kind={kind} icon="export" isBusy={isBusy} label={label} onClick={() => void save()}>{children}
  </Button>;
}
