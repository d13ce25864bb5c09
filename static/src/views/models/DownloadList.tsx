/** Running, queued and failed downloads. */
import type { ModelDownload } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import type { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatDuration, formatSize } from "../../texts/quantities.ts";

/** Nothing without downloads. */
export function DownloadList({ models }: { models: Models }) {
  const downloads = models.downloads.value;
  if (downloads.length === 0) return null;
  return (
    <>
      <h3>{texts.models.downloads}</h3>
      <ul class="cards">
        {downloads.map((download) => <DownloadCard key={download.id} models={models} download={download} />)}
      </ul>
    </>
  );
}

function DownloadCard({ models, download }: { models: Models; download: ModelDownload }) {
  const store = useStore();
  const t = texts.models;
  const { id, repo, format, file, state, error } = download;
  const name = file ?? repo;
  const act = (work: Promise<void>) => work.catch((thrown) => store.report(thrown));
  const hasFailed = state === "failed";
  return (
    <li class="card">
      <div class="card-head">
        <h4>{name}</h4>
        <span class="badge">{t.states[state]}</span>
      </div>
      {file && <p class="muted facts">{repo}</p>}
      <Progress label={name} value={getShare(download)} text={listFigures(download)} />
      {hasFailed && error && <Notice tone="danger" title={t.downloadFailed}>{error.message}</Notice>}
      <div class="actions-row">
        {hasFailed
          ? (
            <>
              <Button
                kind="primary"
                label={`${t.resume}: ${name}`}
                onClick={() => act(models.download(repo, format, file))}
              >
                {t.resume}
              </Button>
              <Button
                kind="quiet"
                label={`${t.discard}: ${name}`}
                onClick={() => act(models.remove(file === undefined ? repo : `${repo}/${file}`))}
              >
                {t.discard}
              </Button>
            </>
          )
          : (
            <Button label={`${texts.models.cancel}: ${name}`} onClick={() => act(models.cancel(id))}>
              {texts.models.cancel}
            </Button>
          )}
      </div>
    </li>
  );
}

function getShare({ received_bytes, total_bytes }: ModelDownload): number | null {
  return total_bytes > 0 ? received_bytes / total_bytes : null;
}

/** Describes how far a download is. */
export function listFigures({ received_bytes, total_bytes, bytes_per_second, state }: ModelDownload): string {
  const t = texts.models;
  const parts = [t.amount(formatSize(received_bytes), formatSize(total_bytes))];
  if (state === "running" && bytes_per_second > 0) {
    parts.push(
      t.rate(formatSize(bytes_per_second)),
      t.left(formatDuration((total_bytes - received_bytes) / bytes_per_second)),
    );
  }
  return parts.join(" · ");
}
