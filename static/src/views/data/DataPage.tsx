/** Data: import, export, disk usage, backups. */
import { getDataReport, getStoredReport } from "../../api/server.ts";
import type { DataReport } from "../../api/types.ts";
import { LinkButton } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { IMPORT_PATH } from "../../state/import_export/imports.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { bytes } from "../../texts/quantities.ts";
import { BackupsSection, DownloadLink } from "../import_export/BackupsSection.tsx";
import { useResource } from "../hooks.tsx";
import { UnreadableSection } from "./UnreadableSection.tsx";
import { useMemo } from "preact/hooks";
import { useDocuments } from "../documents/AlwaysAttached.tsx";

/** Measured when it opens. What is damaged comes first, and stays where it is while the page is open. */
export function DataPage() {
  const { api } = useStore();
  const { value, error, again } = useResource(() => getDataReport(api.client));
  const stored = useResource(() => getStoredReport(api.client), "unreadable");
  const damageFirst = useMemo(() => (stored.value?.items.length ?? 0) > 0, [stored.value === undefined]);
  const t = texts.data;
  return (
    <section class="settings-parts">
      <h2>{texts.settings.dataPage}</h2>
      {damageFirst && <UnreadableSection stored={stored} />}
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {value && <BackupsSection report={value} onChange={again} />}
      {!damageFirst && <UnreadableSection stored={stored} />}
      <Import />
      <ExportSection />
      {value && <Space report={value} />}
      <DocumentsSection />
    </section>
  );
}

function Import() {
  const t = texts.import;
  return (
    <section class="settings-part" aria-labelledby="import">
      <h3 id="import" tabIndex={-1}>{t.title}</h3>
      <p>{t.startHint}</p>
      <div class="actions-row">
        <LinkButton href={IMPORT_PATH}>{t.start}</LinkButton>
      </div>
    </section>
  );
}

function Space({ report }: { report: DataReport }) {
  const t = texts.data;
  const total = report.used.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return (
    <section class="settings-part" aria-labelledby="space">
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

/** Warns if others on the network could read the traffic. */
function ExportSection() {
  const t = texts.export;
  const isSafe = globalThis.isSecureContext;
  return (
    <section class="settings-part" aria-labelledby="export">
      <h3 id="export" tabIndex={-1}>{t.title}</h3>
      <p>{t.text}</p>
      <dl class="import-facts">
        <dt>{t.inside}</dt>
        <dd>{t.insideText}</dd>
        <dt>{t.outside}</dt>
        <dd>{t.outsideText}</dd>
      </dl>
      <p class="muted">{t.unsealed}</p>
      {!isSafe && <Notice tone="warning">{t.plainHttp}</Notice>}
      <div class="actions-row">
        <DownloadLink path="/api/export" fileName={`parlor-${new Date().toISOString().slice(0, 10)}.zip`}>
          {isSafe ? t.save : t.exportAnyway}
        </DownloadLink>
      </div>
    </section>
  );
}

/** How many there are. The library lists them. */
function DocumentsSection() {
  const { documents, error, refresh } = useDocuments();
  const t = texts.documents;
  const size = documents?.reduce((sum, { size_bytes }) => sum + size_bytes, 0) ?? 0;
  return (
    <section class="settings-part" aria-labelledby="documents">
      <h3 id="documents" tabIndex={-1}>{t.title}</h3>
      {error && <ErrorNote title={t.listFailed} error={error} onRetry={refresh} />}
      {documents === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {documents?.length === 0 && <p class="muted">{t.none}</p>}
      {documents !== undefined && documents.length > 0 && (
        <p class="muted">{texts.import.things.document(documents.length)} · {bytes(size)}</p>
      )}
      <div class="actions-row">
        <LinkButton href="/library">{texts.library.title}</LinkButton>
      </div>
    </section>
  );
}
