/** Import: choose a file, preview, import, report. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import type { ImportReport, Job } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { CARD, getImportOutcome, getImports, type Imports, isRunning } from "../../state/import_export/imports.ts";
import { useStore } from "../../state/store.ts";
import { useServerTexts } from "../../texts/server_texts.ts";
import { texts } from "../../texts/texts.ts";
import { formatDateTime } from "../../texts/format.ts";
import { ImportJobCard, UploadCard } from "./ImportProgress.tsx";
import { ImportReportView } from "./ImportReportView.tsx";
import { useResource } from "../hooks.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { bytes } from "../../texts/quantities.ts";
import { DropArea } from "../characters/DropArea.tsx";
import { ImportNotices } from "../characters/ImportNotices.tsx";

/** The steps; each continues when the page is left. */
export function ImportPage() {
  const store = useStore();
  const moving = getImports(store);
  const t = texts.import;
  // An import of an earlier page appears once the jobs are loaded.
  const jobsState = store.activity.state.value;
  useEffect(() => void moving.open(), [jobsState]);
  const { before } = moving;
  useServerTexts(); // rendered by the time there is a report
  return (
    <section class="moving">
      <p>
        <a class="back-link" href="/settings/data">{t.back}</a>
      </p>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {!globalThis.isSecureContext && <Notice tone="warning">{t.plainHttp}</Notice>}
      <Step moving={moving} />
      {before.value && <Before key={before.value.id} moving={moving} job={before.value} />}
    </section>
  );
}

/** The previous import; its report loads on demand. */
function Before({ moving, job }: { moving: Imports; job: Job }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="moving-before" onToggle={(event) => setOpen(isOpen || event.currentTarget.open)}>
      <summary>{texts.import.previousTitle}, {formatDateTime(job.updated_at)}</summary>
      {isOpen && <WithReport moving={moving} job={job}>{(report) => <ImportReportView report={report} />}</WithReport>}
    </details>
  );
}

/** Loads the report of a job, or shows why it can't. */
function WithReport(
  { moving, job, children }: { moving: Imports; job: Job; children: (report: ImportReport) => ComponentChildren },
) {
  const { value, error, again } = useResource(() => moving.readReport(job));
  if (value) return <>{children(value)}</>;
  if (error) return <ErrorNote title={texts.import.reportFailed} error={error} onRetry={again} />;
  return <p class="muted" role="status">{texts.loading}</p>;
}

function Step({ moving }: { moving: Imports }) {
  const sending = moving.sending.value;
  const job = moving.job.value;
  if (sending) return <UploadCard moving={moving} sending={sending} />;
  if (job && isRunning(job)) return <ImportJobCard moving={moving} job={job} />;
  const outcome = getImportOutcome(job);
  if (job && outcome) {
    return (
      <div key={job.id} class="card moving-step">
        <h3 tabIndex={-1} ref={focusOnce}>{outcome.dry_run ? texts.import.previewTitle : texts.import.reportTitle}</h3>
        <WithReport moving={moving} job={job}>
          {(report) =>
            outcome.dry_run ? <Trial moving={moving} report={report} /> : <ImportReportView report={report} />}
        </WithReport>
        {!outcome.dry_run && (
          <div class="actions-row">
            <Button onClick={() => moving.startOver()}>{texts.import.again}</Button>
          </div>
        )}
      </div>
    );
  }
  return (
    <>
      {job && <Ended job={job} />}
      <ImportFilePicker moving={moving} />
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

function Trial({ moving, report }: { moving: Imports; report: ImportReport }) {
  const t = texts.import;
  const error = moving.error.value;
  const isAnything = Object.values(report.counts).some(({ added, updated }) => added + updated > 0);
  return (
    <>
      <p class="muted">{[moving.file.value?.name, getImportKindName(report.kind)].filter(Boolean).join(" · ")}</p>
      <ImportReportView report={report} />
      {error && <ErrorNote title={t.importFailed} error={error} />}
      <div class="actions-row">
        {isAnything && <Button kind="primary" onClick={() => void moving.bringIn()}>{t.confirm}</Button>}
        {moving.file.value && <Button onClick={() => moving.changeKind(moving.kind.value)}>{t.changeKind}</Button>}
        <Button kind={isAnything ? "quiet" : "plain"} onClick={() => moving.startOver()}>{t.otherFile}</Button>
      </div>
    </>
  );
}

/** The previous step took its button, and the focus with it. */
function focusOnce(heading: HTMLElement | null): void {
  if (heading && document.activeElement === document.body) heading.focus({ preventScroll: true });
}

/** Filter of the file dialog; a server may accept more. */
const FILES = ".zip,.json,.jsonl,.png,.charx,.bin,application/zip,application/json,image/png";

/** The selection stays until another file is chosen. */
function ImportFilePicker({ moving }: { moving: Imports }) {
  const t = texts.import;
  const chooser = useRef<HTMLInputElement>(null);
  const [isMissing, setMissing] = useState(false);
  const file = moving.file.value;
  const kind = moving.kind.value;
  const error = moving.error.value;
  const complaint = moving.complaint.value;
  const importable = moving.importable.value;
  const begin = () => {
    setMissing(kind === "");
    void moving.begin();
  };
  const complaints = {
    folder: t.folder,
    too_large: t.tooLarge(bytes(importable?.max_bytes ?? 0)),
  };
  return (
    <DropArea
      title={t.drop}
      hint={t.dropHint}
      onFiles={(files, folders) => void moving.choose(files, folders)}
    >
      <form
        class="card moving-step"
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
            void moving.choose([...event.currentTarget.files ?? []]);
            event.currentTarget.value = "";
          }}
        />
        {file
          ? (
            <p class="moving-file">
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
              moving.changeKind(chosen);
              setMissing(false);
            }}
          />
        )}
        {error && (
          <ErrorNote
            title={importable ? t.sendFailed : t.unknown}
            error={error}
            onRetry={importable ? undefined : () => void moving.open()}
          />
        )}
        {file && importable && (
          <div class="actions-row">
            <Button kind="primary" type="submit">{kind === CARD ? t.confirm : t.look}</Button>
          </div>
        )}
        <ImportNotices imports={moving.cards} />
        <Arrived moving={moving} />
      </form>
    </DropArea>
  );
}

/** Returns the label of a kind; an unknown one uses its own name. */
function getImportKindName(kind: string): string {
  const t = texts.import;
  return kind === "" ? t.kindUnknown : (t.kinds as Record<string, string>)[kind] ?? kind;
}

function Arrived({ moving }: { moving: Imports }) {
  const characters = moving.arrived.value;
  if (characters.length === 0) return null;
  const t = texts.import;
  return (
    <div role="status">
      <p>{t.cardsImported(characters.length)}</p>
      <List label={t.reportTitle}>
        {characters.map(({ id, name }) => (
          <ListRow key={id} title={name} href={`/characters/${encodeURIComponent(id)}`} />
        ))}
      </List>
    </div>
  );
}
