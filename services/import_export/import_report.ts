/** The report of an import or a dry run: counts for each type of item, and lines for notable ones. */
import {
  IMPORTED_ITEM_KINDS,
  type ImportedItem,
  type ImportedItemKind,
  type ImportKind,
  type ImportNote,
} from "./import_item.ts";

/** Results for one type of item. */
export interface ItemCounts {
  added: number;
  /** An older state existed; it is kept as a revision. */
  updated: number;
  /** Already present; nothing was done. */
  present: number;
  refused: number;
}

/** A line of the report. */
export type ReportLine = Omit<ImportNote, "what">;

/** An item that was imported, or would be. */
export interface ReportItem {
  what: ImportedItemKind;
  id: string;
  name: string;
  state: "added" | "updated";
}

/** The report, as sent by the API. */
export interface ImportReport {
  kind: ImportKind;
  dry_run: boolean;
  /** Id to import the upload after a dry run, for an hour. */
  upload_id?: string;
  counts: Record<ImportedItemKind, ItemCounts>;
  /** Number of messages in added or updated conversations. */
  messages: number;
  /** The first items of each type. */
  items: ReportItem[];
  lines: ReportLine[];
  /** Number of lines beyond the limit. */
  lines_dropped: number;
}

const MAX_LINES = 1_000;
const MAX_TEXT = 500;
/** Limit per type; enough to show what an import is about. */
const MAX_ITEMS = 50;
const MAX_NAME = 100;

/** Creates an empty report. */
export function createReport(kind: ImportKind, isDryRun: boolean): ImportReport {
  const counts = Object.fromEntries(
    IMPORTED_ITEM_KINDS.map((thing) => [thing, { added: 0, updated: 0, present: 0, refused: 0 }]),
  ) as ImportReport["counts"];
  return { kind, dry_run: isDryRun, counts, messages: 0, items: [], lines: [], lines_dropped: 0 };
}

/** Counts the result of an item, and lists it if few of its type were imported. */
export function countItem(
  report: ImportReport,
  { what, id, name }: Pick<ImportedItem, "what" | "id" | "name">,
  state: keyof ItemCounts,
): void {
  const counts = report.counts[what];
  counts[state]++;
  if ((state === "added" || state === "updated") && counts.added + counts.updated <= MAX_ITEMS) {
    report.items.push({ what, id, name: name.slice(0, MAX_NAME), state });
  }
}

/** Adds a line, up to a limit. */
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
