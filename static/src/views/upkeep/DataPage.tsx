/** The data: what takes room, and the backups. */
import { type DataReport, readData } from "../../api/upkeep_endpoints.ts";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { List, ListRow } from "../../components/List.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { moment } from "../../texts/times.ts";
import { bytes } from "../activity/progress_words.ts";
import { useReading } from "./use_reading.ts";

/** Measured when it opens. */
export function DataPage() {
  const { api } = useStore();
  const { value, error, again } = useReading(() => readData(api.client));
  const t = texts.data;
  return (
    <section class="privacy">
      <h2>{t.title}</h2>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {value && <Space report={value} />}
      {value && <Backups report={value} />}
    </section>
  );
}

function Space({ report }: { report: DataReport }) {
  const t = texts.data;
  const total = report.used.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return (
    <section class="privacy-part" aria-labelledby="space">
      <h3 id="space" tabIndex={-1}>{t.space}</h3>
      <p class="muted">{t.total(bytes(total))}</p>
      <List label={t.space}>
        {report.used.map(({ what, size_bytes }) => (
          <ListRow key={what} title={t.uses[what]} end={<span class="muted">{bytes(size_bytes)}</span>} />
        ))}
      </List>
    </section>
  );
}

function Backups({ report }: { report: DataReport }) {
  const t = texts.data;
  const now = new Date();
  return (
    <section class="privacy-part" aria-labelledby="backups">
      <h3 id="backups" tabIndex={-1}>{t.backups}</h3>
      {report.backup_dir === null
        ? <Notice tone="warning" title={t.noBackups}>{t.noBackupsText}</Notice>
        : <p class="muted">{t.daily(report.backup_dir, report.backup_keep)}</p>}
      {report.backup_dir !== null && report.backups.length === 0 && <p>{t.noneYet}</p>}
      {report.backups.length > 0 && (
        <List label={t.backups}>
          {report.backups.map(({ name, size_bytes, made_at }) => (
            <ListRow key={name} title={name} text={`${moment(made_at, now)} · ${bytes(size_bytes)}`} />
          ))}
        </List>
      )}
      <p>{t.byHand}</p>
      <p>
        <code>{BACKUP_COMMAND}</code>
      </p>
      <p class="muted">{t.key}</p>
    </section>
  );
}

const BACKUP_COMMAND = "parlor backup FILE";
