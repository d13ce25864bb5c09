/** What an import did, or in a dry run would do: counts of every kind of thing, and a line for whatever needs one. */
import { IMPORTED_THINGS, type ImportedThing, type ImportKind, type ImportNote } from "./import_item.ts";

/** How things of a kind fared. */
export interface ThingCounts {
  added: number;
  /** It was here in an older state, which is kept as a revision. */
  updated: number;
  /** It was here already; nothing was done. */
  present: number;
  refused: number;
}

/** One line of the report. */
export type ReportLine = Omit<ImportNote, "what">;

/** The report of an import, on the wire as it is here. */
export interface ImportReport {
  kind: ImportKind;
  dry_run: boolean;
  /** Under which an upload can be imported after a dry run, for an hour. */
  upload_id?: string;
  counts: Record<ImportedThing, ThingCounts>;
  /** Messages of the conversations that were added or updated. */
  messages: number;
  lines: ReportLine[];
  /** Lines beyond those that are kept. */
  lines_dropped: number;
}

const MAX_LINES = 1_000;
const MAX_TEXT = 500;

/** A report of nothing yet. */
export function newReport(kind: ImportKind, isDryRun: boolean): ImportReport {
  const counts = Object.fromEntries(
    IMPORTED_THINGS.map((thing) => [thing, { added: 0, updated: 0, present: 0, refused: 0 }]),
  ) as ImportReport["counts"];
  return { kind, dry_run: isDryRun, counts, messages: 0, lines: [], lines_dropped: 0 };
}

/** Adds a line, which is kept as long as there are few. */
export function addLine(report: ImportReport, { level, source, reason, count }: ReportLine): void {
  if (report.lines.length >= MAX_LINES) {
    report.lines_dropped++;
    return;
  }
  report.lines.push({
    ...{ level, source: source.slice(0, MAX_TEXT), reason: reason.slice(0, MAX_TEXT) },
    ...(count !== undefined && { count }),
  });
}
