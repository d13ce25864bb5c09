/** The report of an import or a dry run: counts per kind with links, and what was not imported, with reasons. */
import type { ImportedItem, ImportedKind, ImportReport, ImportReportLine } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { formatNumber } from "../../texts/format.ts";
import { translateReason, useServerTexts } from "../../texts/server_texts.ts";
import { texts } from "../../texts/texts.ts";

/** Links to an item of each kind and to its list. An image in a chat has no page. */
const PLACES: Partial<Record<ImportedKind, { one: (id: string) => string; all: string }>> = {
  conversation: { one: (id) => `/c/${id}`, all: "/search" },
  character: { one: (id) => `/characters/${id}`, all: "/characters" },
  persona: { one: (id) => `/settings/personas/${id}`, all: "/settings/personas" },
  lorebook: { one: (id) => `/settings/lorebooks/${id}`, all: "/settings/lorebooks" },
  preset: { one: (id) => `/settings/presets/${id}`, all: "/settings/presets" },
  voice: { one: () => "/settings/voice", all: "/settings/voice" },
  workflow: { one: () => "/settings/images", all: "/settings/images" },
  connection: { one: () => "/settings/connections", all: "/settings/connections" },
  image_connection: { one: () => "/settings/images", all: "/settings/images" },
  tool_server: { one: () => "/settings/tools", all: "/settings/tools" },
  regex_script: { one: () => "/settings/regex", all: "/settings/regex" },
  settings: { one: () => "/settings/general", all: "/settings/general" },
};

const LEVELS: ImportReportLine["level"][] = ["refused", "left_out", "changed", "kept"];
/** Lines shown before the user asks for more. */
const LINES_AT_ONCE = 100;

/** A dry run lists names; an import lists links. */
export function ImportReportView({ report }: { report: ImportReport }) {
  const t = texts.import;
  const kinds = (Object.keys(report.counts) as ImportedKind[]).filter((kind) => sum(report, kind) > 0);
  const isNothing = kinds.every((kind) => report.counts[kind].added + report.counts[kind].updated === 0);
  const isHere = isNothing && kinds.some((kind) => report.counts[kind].present > 0);
  return (
    <div class="import-report">
      {isNothing && <p>{isHere ? t.previewAllPresent : report.dry_run ? t.previewNothing : t.reportNothing}</p>}
      {kinds.length > 0 && (
        <ul class="import-kinds">
          {kinds.map((kind) => <ImportedItems key={kind} kind={kind} report={report} />)}
        </ul>
      )}
      {LEVELS.map((level) => <Lines key={level} level={level} report={report} />)}
      {report.lines_dropped > 0 && <p class="muted">{t.linesDropped(report.lines_dropped)}</p>}
    </div>
  );
}

function ImportedItems({ kind, report }: { kind: ImportedKind; report: ImportReport }) {
  const t = texts.import;
  const { added, updated, present, refused } = report.counts[kind];
  const allCount = added + updated + present;
  const importedCount = added + updated;
  const more = [
    kind === "conversation" && importedCount > 0 && t.messages(report.messages),
    updated > 0 && t.updated(updated),
    present > 0 && t.present(present),
    refused > 0 && t.refused(refused),
  ].filter((detail) => detail !== false);
  const items = report.items?.filter(({ what }) => what === kind) ?? [];
  const head = (
    <>
      <strong>{t.things[kind](importedCount)}</strong>
      {more.length > 0 && <span class="muted">{` · ${more.join(" · ")}`}</span>}
    </>
  );
  if (items.length === 0) return <li class="import-kind">{head}</li>;
  const path = PLACES[kind];
  return (
    <li class="import-kind">
      <details>
        <summary>{head}</summary>
        <List label={t.things[kind](importedCount)}>
          {items.map((item) => <Item key={item.id} item={item} isHere={!report.dry_run} />)}
        </List>
        {allCount > items.length && (
          <p>
            {path && !report.dry_run
              ? <a href={path.all}>{t.more(allCount - items.length)}</a>
              : <span class="muted">{t.more(allCount - items.length)}</span>}
          </p>
        )}
      </details>
    </li>
  );
}

function Item({ item: { what, id, name, state }, isHere }: { item: ImportedItem; isHere: boolean }) {
  const t = texts.import;
  return (
    <ListRow
      title={name ? <VisibleText text={name} /> : t.unnamed}
      text={state === "updated" ? t.isUpdated : state === "present" && t.isPresent}
      href={isHere ? PLACES[what]?.one(encodeURIComponent(id)) : undefined}
    />
  );
}

/** All lines of a level, by reason. */
function Lines({ level, report }: { level: ImportReportLine["level"]; report: ImportReport }) {
  const serverTexts = useServerTexts();
  const lines = report.lines.filter((line) => line.level === level);
  const entries = report.ledger?.filter((entry) => entry.level === level) ?? [];
  if (lines.length === 0 && entries.length === 0) return null;
  const label = texts.import.lines[level](lines.length);
  // Reports of older versions have no ledger.
  const groups = entries.map((entry) => ({ entry, lines: lines.filter(({ code = "other" }) => code === entry.kind) }));
  const several = groups.filter(({ lines }) => lines.length !== 1);
  const single = groups.flatMap(({ lines }) => lines.length === 1 ? lines : []);
  if (several.length === 0 || groups.length === 1) return <LineList label={label} lines={lines} />;
  return (
    <details class="import-lines">
      <summary>{label}</summary>
      <LineRows label={label} lines={single} />
      {several.map(({ entry, lines }) => {
        const reason = translateReason(serverTexts, { ...entry, code: entry.kind });
        return <LineList key={entry.kind} label={`${formatNumber(entry.count)} × ${reason}`} lines={lines} />;
      })}
    </details>
  );
}

function LineList({ label, lines }: { label: string; lines: ImportReportLine[] }) {
  return (
    <details class="import-lines">
      <summary>
        <VisibleText text={label} />
      </summary>
      <LineRows label={label} lines={lines} />
    </details>
  );
}

function LineRows({ label, lines }: { label: string; lines: ImportReportLine[] }) {
  const t = texts.import;
  const [shown, setShown] = useState(LINES_AT_ONCE);
  const serverTexts = useServerTexts();
  if (lines.length === 0) return null;
  return (
    <>
      <List label={label}>
        {lines.slice(0, shown).map(({ source, count, ...line }, index) => (
          <ListRow
            key={index}
            title={source ? <VisibleText text={source} /> : t.files(count ?? 1)}
            text={<VisibleText text={translateReason(serverTexts, line)} />}
            end={count !== undefined && count > 1 && source !== "" && <span class="muted">{formatNumber(count)} ×
            </span>}
          />
        ))}
      </List>
      {lines.length > shown && (
        <div class="actions-row">
          <Button onClick={() => setShown(shown + LINES_AT_ONCE)}>
            {t.showMore(formatNumber(lines.length - shown))}
          </Button>
        </div>
      )}
    </>
  );
}

function sum({ counts }: ImportReport, kind: ImportedKind): number {
  const { added, updated, present, refused } = counts[kind];
  return added + updated + present + refused;
}
