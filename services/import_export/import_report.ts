/** What an import did, or in a dry run would do: counts of every kind of thing, and a line for whatever needs one. */
import {
  IMPORTED_THINGS,
  type ImportedItem,
  type ImportedThing,
  type ImportKind,
  type ImportNote,
} from "./import_item.ts";

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

/** Something that came in, or would. */
export interface ReportItem {
  what: ImportedThing;
  id: string;
  name: string;
  state: "added" | "updated";
}

/** The report of an import, on the wire as it is here. */
export interface ImportReport {
  kind: ImportKind;
  dry_run: boolean;
  /** Under which an upload can be imported after a dry run, for an hour. */
  upload_id?: string;
  counts: Record<ImportedThing, ThingCounts>;
  /** Messages of the conversations that were added or updated. */
  messages: number;
  /** The first of each kind that came in. */
  items: ReportItem[];
  lines: ReportLine[];
  /** Lines beyond those that are kept. */
  lines_dropped: number;
}

const MAX_LINES = 1_000;
const MAX_TEXT = 500;
/** Of each kind: enough to see what it is about. */
const MAX_ITEMS = 50;
const MAX_NAME = 100;

/** A report of nothing yet. */
export function newReport(kind: ImportKind, isDryRun: boolean): ImportReport {
  const counts = Object.fromEntries(
    IMPORTED_THINGS.map((thing) => [thing, { added: 0, updated: 0, present: 0, refused: 0 }]),
  ) as ImportReport["counts"];
  return { kind, dry_run: isDryRun, counts, messages: 0, items: [], lines: [], lines_dropped: 0 };
}

/** Counts how a thing fared, and names it where it came in and few of its kind did before. */
export function countItem(
  report: ImportReport,
  { what, id, name }: Pick<ImportedItem, "what" | "id" | "name">,
  state: keyof ThingCounts,
): void {
  const counts = report.counts[what];
  counts[state]++;
  if ((state === "added" || state === "updated") && counts.added + counts.updated <= MAX_ITEMS) {
    report.items.push({ what, id, name: name.slice(0, MAX_NAME), state });
  }
}

/** Adds a line, which is kept as long as there are few. */
export function addLine(report: ImportReport, { level, source, reason, code, params, count }: ReportLine): void {
  if (report.lines.length >= MAX_LINES) {
    report.lines_dropped++;
    return;
  }
  report.lines.push({
    level,
    source: source.slice(0, MAX_TEXT),
    reason: reason.slice(0, MAX_TEXT),
    ...(code !== undefined && { code }),
    ...(params !== undefined && { params }),
    ...(count !== undefined && { count }),
  });
}
