/** An upload, and the job that reads it. */
import type { Job } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Progress } from "../../components/Progress.tsx";
import type { Imports, Upload } from "../../state/import_export/imports.ts";
import { texts } from "../../texts/texts.ts";
import { bytes, formatProgress } from "../../texts/quantities.ts";

/** Progress, rate, and Cancel. */
export function UploadCard({ imports, sending }: { imports: Imports; sending: Upload }) {
  const t = texts.import;
  return (
    <div class="card step-card">
      <div role="status">
        <h3>{t.sending}</h3>
        <p>{sending.name}</p>
      </div>
      <Progress label={t.sending} value={getUploadShare(sending)} text={formatUpload(sending)} />
      <p class="muted">{t.keepOpenHint}</p>
      <div class="actions-row">
        <Button onClick={() => imports.cancel()}>{texts.cancel}</Button>
      </div>
    </div>
  );
}

/** Progress of the job, and Cancel. */
export function ImportJobCard({ imports, job }: { imports: Imports; job: Job }) {
  const t = texts.import;
  const { progress } = job;
  return (
    <div class="card step-card">
      <div role="status">
        <h3>{job.title}</h3>
      </div>
      <Progress
        label={job.title}
        value={progress?.total ? progress.done / progress.total : null}
        text={formatProgress(progress)}
      />
      <p class="muted">{t.leaveHint}</p>
      <div class="actions-row">
        <Button onClick={() => imports.cancel()}>{texts.cancel}</Button>
      </div>
    </div>
  );
}

/** Returns the uploaded share. */
export function getUploadShare({ sentBytes, totalBytes }: Upload): number {
  return totalBytes === 0 ? 1 : sentBytes / totalBytes;
}

/** Returns `12 MB of 40 MB · 3.2 MB a second`. */
export function formatUpload({ sentBytes, totalBytes, bytesPerSecond }: Upload): string {
  const done = texts.activity.of(bytes(sentBytes), bytes(totalBytes));
  return bytesPerSecond > 0 ? `${done} · ${texts.import.rate(bytes(bytesPerSecond))}` : done;
}
