/** Import: choose a file, preview, import, report. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import type { ImportReport, ImportSource, Job } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { ConfirmDialog } from "../auth/ConfirmDialog.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { CARD, getImportOutcome, getImports, type Imports, isRunning } from "../../state/import_export/imports.ts";
import { useStore } from "../../state/store.ts";
import { useServerTexts } from "../../texts/server_texts.ts";
import { texts } from "../../texts/texts.ts";
import { formatDateTime } from "../../texts/format.ts";
import { ImportJobCard, UploadCard } from "./ImportProgress.tsx";
import { ImportReportView } from "./ImportReportView.tsx";
import { useResource } from "../hooks.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { bytes } from "../../texts/quantities.ts";
import { DropArea } from "../characters/DropArea.tsx";
import { describeImported, ImportedCards, ImportNotices } from "../characters/ImportNotices.tsx";

/** The steps; each continues when the page is left. */
export function ImportPage() {
  const store = useStore();
  const imports = getImports(store);
  const t = texts.import;
  // An import of an earlier page appears once the jobs are loaded.
  const jobsState = store.activity.state.value;
  useEffect(() => void imports.open(), [jobsState]);
  const { before } = imports;
  useServerTexts(); // rendered by the time there is a report
  return (
    <section class="import-page">
      <p>
        <a class="back-link" href="/settings/data">{t.back}</a>
      </p>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {!globalThis.isSecureContext && <Notice tone="warning">{t.plainHttp}</Notice>}
      <Step imports={imports} />
      {before.value && <Before key={before.value.id} imports={imports} job={before.value} />}
      <StoredFiles imports={imports} />
    </section>
  );
}

/** The previous import; its report loads on demand. */
function Before({ imports, job }: { imports: Imports; job: Job }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="import-earlier" onToggle={(event) => setOpen(isOpen || event.currentTarget.open)}>
      <summary>{texts.import.previousTitle}, {formatDateTime(job.updated_at)}</summary>
      {isOpen && <WithReport imports={imports} job={job}>{(report) => <ImportReportView report={report} />}
      </WithReport>}
    </details>
  );
}

/** Loads the report of a job, or shows why it can't. */
function WithReport(
  { imports, job, children }: { imports: Imports; job: Job; children: (report: ImportReport) => ComponentChildren },
) {
  const { value, error, again } = useResource(() => imports.readReport(job));
  if (value) return <>{children(value)}</>;
  if (error) return <ErrorNote title={texts.import.reportFailed} error={error} onRetry={again} />;
  return <p class="muted" role="status">{texts.loading}</p>;
}

function Step({ imports }: { imports: Imports }) {
  const sending = imports.sending.value;
  const job = imports.job.value;
  if (sending) return <UploadCard imports={imports} sending={sending} />;
  if (job && isRunning(job)) return <ImportJobCard imports={imports} job={job} />;
  const outcome = getImportOutcome(job);
  const source = imports.sources.value.find(({ id }) => id === outcome?.source_id);
  if (job && outcome) {
    return (
      <div key={job.id} class="card step-card">
        <h3 tabIndex={-1} ref={focusOnce}>{outcome.dry_run ? texts.import.previewTitle : texts.import.reportTitle}</h3>
        <WithReport imports={imports} job={job}>
          {(report) =>
            outcome.dry_run ? <DryRunReport imports={imports} report={report} /> : <ImportReportView report={report} />}
        </WithReport>
        {!outcome.dry_run && (
          <div class="actions-row">
            <Button onClick={() => imports.startOver()}>{texts.import.again}</Button>
            {source && <ReadAgain imports={imports} source={source} />}
          </div>
        )}
      </div>
    );
  }
  return (
    <>
      {job && <Ended job={job} />}
      <ImportFilePicker imports={imports} />
    </>
  );
}

/** Why a job failed. */
function Ended({ job }: { job: Job }) {
  const t = texts.import;
  if (job.state === "cancelled") return <p class="muted" role="status">{t.cancelled}</p>;
  const { code = "internal", message = "" } = job.error ?? {};
  return (
    <ErrorNote title={t.importFailed} error={new ApiError(0, { code, message })}>
      {t.importFailedText}
    </ErrorNote>
  );
}

function DryRunReport({ imports, report }: { imports: Imports; report: ImportReport }) {
  const t = texts.import;
  const error = imports.error.value;
  const isAnything = Object.values(report.counts).some(({ added, updated }) => added + updated > 0);
  return (
    <>
      <p class="muted">{[imports.file.value?.name, getImportKindName(report.kind)].filter(Boolean).join(" · ")}</p>
      <ImportReportView report={report} />
      {isAnything && report.upload_id !== undefined && (
        <Switch
          label={t.keepSource}
          hint={t.keepSourceHint}
          isOn={imports.keepsSource.value}
          onChange={(isOn) => imports.keepsSource.value = isOn}
        />
      )}
      {error && <ErrorNote title={t.importFailed} error={error} />}
      <div class="actions-row">
        {isAnything && <Button kind="primary" onClick={() => void imports.bringIn()}>{t.confirm}</Button>}
        {imports.file.value && <Button onClick={() => imports.changeKind(imports.kind.value)}>{t.changeKind}</Button>}
        <Button kind={isAnything ? "quiet" : "plain"} onClick={() => imports.startOver()}>{t.otherFile}</Button>
      </div>
    </>
  );
}

/** Takes the focus, which the previous step's button had. */
function focusOnce(heading: HTMLElement | null): void {
  if (heading && document.activeElement === document.body) heading.focus({ preventScroll: true });
}

/** Filter of the file dialog; a server may accept more. */
const FILES = ".zip,.json,.jsonl,.png,.charx,.byaf,.bin,application/zip,application/json,image/png";

/** The selection stays until another file is chosen. */
function ImportFilePicker({ imports }: { imports: Imports }) {
  const t = texts.import;
  const chooser = useRef<HTMLInputElement>(null);
  const [isMissing, setMissing] = useState(false);
  const file = imports.file.value;
  const kind = imports.kind.value;
  const error = imports.error.value;
  const complaint = imports.complaint.value;
  const importable = imports.importable.value;
  const begin = () => {
    setMissing(kind === "");
    void imports.begin();
  };
  const complaints = {
    folder: t.folder,
    too_large: t.tooLarge(bytes(importable?.max_bytes ?? 0)),
  };
  return (
    <DropArea
      title={t.drop}
      hint={t.dropHint}
      onFiles={(files, folders) => void imports.choose(files, folders)}
    >
      <form
        class="card step-card"
        onSubmit={(event) => {
          event.preventDefault();
          begin();
        }}
      >
        <input
          ref={chooser}
          type="file"
          hidden
          multiple
          accept={FILES}
          onChange={(event) => {
            void imports.choose([...event.currentTarget.files ?? []]);
            event.currentTarget.value = "";
          }}
        />
        {file
          ? (
            <p class="file-name">
              {file.name} <span class="muted">{bytes(file.size)}</span>
            </p>
          )
          : <p class="muted">{t.dropHint}</p>}
        <div class="actions-row">
          <Button icon="folder" kind={file ? "plain" : "primary"} onClick={() => chooser.current?.click()}>
            {file ? t.otherFile : t.chooseFile}
          </Button>
        </div>
        {complaint && <Notice tone="danger">{complaints[complaint]}</Notice>}
        {file && importable && (
          <Select
            id="import-kind"
            label={t.kind}
            hint={kind === CARD ? undefined : kind === "" ? t.kindNotListed : t.previewHint}
            error={kind === "" && isMissing ? t.kindMissing : undefined}
            value={kind}
            options={["", ...importable.kinds, CARD].map((value) => ({ value, name: getImportKindName(value) }))}
            onChange={(chosen) => {
              imports.changeKind(chosen);
              setMissing(false);
            }}
          />
        )}
        {error && (
          <ErrorNote
            title={importable ? t.sendFailed : t.unknown}
            error={error}
            onRetry={importable ? undefined : () => void imports.open()}
          />
        )}
        {file && importable && (
          <div class="actions-row">
            <Button kind="primary" type="submit">{kind === CARD ? t.confirm : t.look}</Button>
          </div>
        )}
        <ImportNotices imports={imports.cards} />
        <Arrived imports={imports} />
      </form>
    </DropArea>
  );
}

/** The stored files of imports, which a later version may read better. */
function StoredFiles({ imports }: { imports: Imports }) {
  const { toasts } = useStore();
  const t = texts.import;
  const [doomed, setDoomed] = useState<ImportSource>();
  const sources = imports.sources.value;
  if (sources.length === 0) return null;
  const remove = async (id: string) => {
    await imports.removeSource(id);
    toasts.show(t.sourceRemoved);
  };
  return (
    <section class="settings-part" aria-labelledby="import-sources">
      <h3 id="import-sources">{t.sources}</h3>
      <p class="muted">{t.sourcesText}</p>
      <List label={t.sources}>
        {sources.map((source) => (
          <ListRow
            key={source.id}
            title={<VisibleText text={source.name ?? getImportKindName(source.kind)} />}
            text={`${formatDateTime(source.created_at)} · ${bytes(source.size_bytes)}`}
            end={
              <>
                <ReadAgain imports={imports} source={source} />
                <IconButton
                  icon="trash"
                  label={t.removeSource(source.name ?? getImportKindName(source.kind))}
                  onClick={() => setDoomed(source)}
                />
              </>
            }
          />
        ))}
      </List>
      {doomed && (
        <ConfirmDialog
          title={t.removeSourceAsk}
          action={texts.backups.removeShort}
          act={() => remove(doomed.id)}
          onClose={() => setDoomed(undefined)}
        >
          <p class="file-name">{doomed.name ?? getImportKindName(doomed.kind)}</p>
          <p>{t.removeSourceText}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}

/** Starts a preview of a stored file. */
function ReadAgain({ imports, source }: { imports: Imports; source: ImportSource }) {
  const job = imports.job.value;
  const isReading = imports.sending.value !== undefined || job !== undefined && isRunning(job);
  const { readAgain, readAgainOf } = texts.import;
  return (
    <Button
      isDisabled={isReading}
      label={source.name && readAgainOf(source.name)}
      onClick={() => void imports.readAgain(source)}
    >
      {readAgain}
    </Button>
  );
}

/** Returns the label of a kind; an unknown one uses its own name. */
function getImportKindName(kind: string): string {
  const t = texts.import;
  return kind === "" ? t.kindUnknown : (t.kinds as Record<string, string>)[kind] ?? kind;
}

function Arrived({ imports }: { imports: Imports }) {
  const characters = imports.arrived.value;
  if (characters.length === 0) return null;
  return (
    <div role="status">
      <p>{describeImported(characters)}</p>
      <ImportedCards cards={characters} />
    </div>
  );
}
