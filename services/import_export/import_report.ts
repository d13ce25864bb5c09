/**
 * The report of an import or a dry run: counts for each type of item, lines for notable ones, and reasons why something
 * isn't imported or is imported with changes. Reasons are codes with English sentences; other languages translate by
 * code.
 */
import {
  IMPORTED_ITEM_KINDS,
  type ImportedItem,
  type ImportedItemKind,
  type ImportKind,
  type ImportNote,
} from "./import_item.ts";
import { AppError } from "../errors.ts";
import { addExample, type LedgerEntry } from "../json/ledger.ts";
import { fillTemplate, type TextParams } from "../json/text.ts";

/** Results for one type of item. */
export interface ItemCounts {
  added: number;
  /** An older state existed; it became a revision. */
  updated: number;
  /** Already present; nothing was done. */
  present: number;
  refused: number;
}

/** A line of the report. */
export type ReportLine = Omit<ImportNote, "what">;

/** What the lines of one reason have in common. Also counts lines beyond the limit. */
export interface ImportLedgerEntry extends LedgerEntry {
  /** Code of the reason; `other` for messages that only exist in English. */
  kind: ImportReasonCode | typeof OTHER_REASON;
  level: ImportNote["level"];
  /** `…` stands for one that differs from line to line. */
  params?: TextParams;
}

/** Kind of the entry for messages without a code. */
const OTHER_REASON = "other";

/** An item that was imported, or would be, or is there already. */
export interface ReportItem {
  what: ImportedItemKind;
  id: string;
  name: string;
  state: "added" | "updated" | "present";
}

/** The report, as sent by the API. */
export interface ImportReport {
  kind: ImportKind;
  dry_run: boolean;
  /** ID to import the upload after a dry run. Valid for an hour. */
  upload_id?: string;
  /** ID of the stored file, to read it again. */
  source_id?: string;
  counts: Record<ImportedItemKind, ItemCounts>;
  /** Number of messages in added or updated conversations. */
  messages: number;
  /** The first items of each type. */
  items: ReportItem[];
  lines: ReportLine[];
  /** The lines by reason. */
  ledger: ImportLedgerEntry[];
  /** Number of lines beyond the limit. */
  lines_dropped: number;
}

const MAX_LINES = 1_000;
const MAX_TEXT = 500;
/** Maximum number of listed items per type, enough to show what an import contains. */
const MAX_ITEMS = 50;
const MAX_NAME = 100;

/** Creates an empty report. */
export function createReport(kind: ImportKind, isDryRun: boolean): ImportReport {
  const counts = Object.fromEntries(
    IMPORTED_ITEM_KINDS.map((itemKind) => [itemKind, { added: 0, updated: 0, present: 0, refused: 0 }]),
  ) as ImportReport["counts"];
  return { kind, dry_run: isDryRun, counts, messages: 0, items: [], lines: [], ledger: [], lines_dropped: 0 };
}

/** Counts the result of an item, and lists it unless there are many of its type with such a result. */
export function countItem(
  report: ImportReport,
  { what, id, name }: Pick<ImportedItem, "what" | "id" | "name">,
  state: keyof ItemCounts,
): void {
  const counts = report.counts[what];
  counts[state]++;
  if (state === "refused") return;
  if ((state === "present" ? counts.present : counts.added + counts.updated) <= MAX_ITEMS) {
    report.items.push({ what, id, name: name.slice(0, MAX_NAME), state });
  }
}

/** Adds a line, up to a limit, and counts it in the ledger. */
export function addLine(report: ImportReport, line: ReportLine): void {
  addToLedger(report.ledger, line);
  const { level, source, reason, code, params, count } = line;
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

function addToLedger(
  ledger: ImportLedgerEntry[],
  { level, source, reason, code, params, count = 1 }: ReportLine,
): void {
  const kind = code ?? OTHER_REASON;
  let entry = ledger.find((one) => one.kind === kind && one.level === level && one.params?.kind === params?.kind);
  if (entry === undefined) {
    entry = { kind, level, count: 0, reason: reason.slice(0, MAX_TEXT), ...(params !== undefined && { params }) };
    ledger.push(entry);
  } else if (entry.reason !== reason.slice(0, MAX_TEXT)) {
    // The examples name what differs.
    const differing = params && Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name, entry!.params?.[name] === value ? value : "…"]),
    );
    entry.reason = code === undefined ? "other reasons" : fillTemplate(IMPORT_REASONS[code], differing ?? {});
    if (differing !== undefined) entry.params = differing;
  }
  entry.count += count;
  const details = code === undefined
    ? reason
    : code === "unused_part"
    ? String(params?.names ?? "")
    : Object.values(params ?? {}).join(", ");
  addExample(entry, [source, details].filter((text) => text !== "").join(": "));
}

/** English sentences by code; `{name}` is a parameter. */
export const IMPORT_REASONS = {
  not_plain_file: "not a regular file inside the import",
  unreadable: "can't be read",
  too_long: "too long to import",
  not_json: "not valid JSON in UTF-8",
  not_whole_json: "the JSON is incomplete",
  not_object: "not a JSON object",
  not_chat: "not a chat",
  no_messages: "the chat has no messages",
  messages_missing: "its messages are missing",
  not_jsonl: "not a .jsonl file",
  other_parts: "parts of a kind that isn't imported: {kinds}",
  other_files: "files without chats aren't imported",
  broken_line: "skipped line {line}: not a JSON object",
  broken_lines: "skipped lines that are not JSON objects: {count}",
  image_missing: 'the image "{image}" is missing',
  files_not_in_export: "its files are not part of the export",
  claude_instructions: 'the instructions of the project "{project}" aren\'t imported',
  artifact_edits: "later edits of its artifacts aren't applied",
  chatgpt_images: "its images are not part of the chat export",
  chatgpt_audio: "recordings of spoken turns aren't imported: their text is",
  chatgpt_files: "attached files aren't imported: {kinds}",
  chatgpt_citations: "marks of citations whose links are missing are left out",
  chatgpt_canvas_edits: "edits of its canvases that can't be applied: {kinds}",
  chatgpt_unknown: "messages of a kind that Parlor doesn't know: {kinds}",
  changed_here: "already here and changed since the last import: left as is",
  image_unreadable: "its image can't be read",
  avatar_unreadable: "imported without its image: the image can't be read",
  avatar_not_in_file: "imported without its image: the file doesn't contain it",
  avatar_missing: "imported without its image: the image is missing",
  enter_key: "exports don't contain API keys: enter the key again",
  server_not_chosen: '"{server}" isn\'t used yet: choose the connection if you trust this server',
  recordings_left_off: "keeping recordings stays off: turn it on in Settings if you want it",
  proposals_left_off: "memory proposals stay off: turn them on under Memory if you want them",
  speech_left_off: 'the speech server "{server}" isn\'t added: add it under Speech if you trust it',
  transcription_left_off: 'the transcription server "{server}" isn\'t added: add it under Speech if you trust it',
  web_tools_left_off:
    'web search and page reading ("{server}") stay off: turn them on under Tools if you trust the search server',
  notifications_left_off: 'notifications through "{server}" stay off: save the address under Access if you trust it',
  source_not_kept: "the file isn't kept to read it again: the disk is full",
  reply_not_finished: "a reply wasn't finished when the chat was exported: imported as interrupted",
  tool_server_left_off: 'stays off: turn on "{server}" under Tools if you trust it',
  keys_left_out: "API keys and settings aren't imported: add your services under Connections",
  service_keys_left_out: "API keys aren't imported: add your services under Connections",
  character_missing: 'imported without its character: "{card}" is missing',
  group_missing: "imported without characters: no group contains this chat",
  members_missing: "some characters of the group are missing: {cards}",
  empty_entries: "entries without keys and text aren't imported: {entries}",
  persona_image_unused: "no persona uses this image",
  backgrounds: "backgrounds aren't imported: choose one in a chat's options or in Settings",
  thumbnails: "thumbnails are created again when needed",
  backups: "backups are copies of data that is imported anyway",
  themes: "themes only work in SillyTavern",
  presets_of_service: "presets for a service that Parlor doesn't support",
  presets_of_interface: "presets for an API that Parlor doesn't support",
  instruct: "instruct templates aren't imported: the model server applies the model's own template",
  context: "context templates aren't imported: the model server applies the model's own template",
  tavern_book_linked: 'its embedded lorebook isn\'t imported: the linked "{book}" replaces it',
  tavern_note_off: "its author's note is off in SillyTavern and isn't imported",
  tavern_parent_missing: 'imported as a chat of its own: "{chat}", of which it\'s a branch, is missing',
  tavern_own_settings: "settings with your own texts or data that Parlor has no place for: {names}",
  tavern_settings: "other settings of SillyTavern: {names}",
  quick_reply_scripts: "quick replies that are scripts and have no button aren't imported: {names}",
  quick_reply_scripts_shown: "quick replies that are scripts have buttons that do nothing: {names}",
  quick_reply_menus: "the menus of quick replies aren't imported: {names}",
  quick_reply_automatic: "quick replies are only sent by their buttons, not automatically: {names}",
  quick_replies_beyond: "quick replies that are too long or too many for templates: {names}",
  unused_part: "{part} ({names})",
  sillytavern_own: "only used by SillyTavern",
  agnai_not: "not an Agnai file",
  agnai_scenarios: "scenarios that change during a chat aren't supported",
  agnai_templates: "prompt templates aren't imported: they use Agnai's template language",
  agnai_presets: "the prompts of presets aren't imported: they use Agnai's template language",
  agnai_trees: "chat trees are rebuilt from the messages",
  chat_without_character: "imported without its character: the file doesn't contain it",
  agnai_overrides: "fields that override the character aren't imported: {fields}",
  backyard_images: "its other images aren't imported: a character has one portrait",
  backyard_sampling: "sampling settings of scenarios aren't imported: choose a preset",
  backyard_scenario: 'of the scenario "{title}", which has no chat, only the greeting is imported',
  risu_not: "not a RisuAI file",
  risu_neither: "neither a card nor a persona",
  risu_persona: "its persona can't be read",
  risu_no_entries: "the lorebook has no entries",
  risu_text_chat: "chats exported as text or HTML have no times and roles: export the chat as JSON",
  risu_note: "its note isn't imported: personas have no notes in Parlor",
  risu_module: "only the lorebook of the module is imported: its scripts and images only work in RisuAI",
  risu_module_rest: "scripts and images of the module aren't imported: they only work in RisuAI",
  risu_scripts: "scripts aren't imported: they only work in RisuAI",
  risu_chats_without_character: "chats imported without their character and its greeting: the file doesn't contain it",
  risu_presets: "the prompts of presets aren't imported: they use RisuAI's template language",
  risu_character_missing: "the character's file is missing",
  risu_trash: "in RisuAI's trash",
  empty_chats: "chats without messages",
  risu_chat_images: "images missing from the RisuAI data: {count}",
  risu_cold:
    "its messages are in RisuAI's cold storage and not in this file: open the chat in RisuAI once, then export again",
  risu_memory: "RisuAI's memory of the chat isn't imported: Parlor writes a new summary when it needs one",
  risu_variables: "script variables aren't imported",
  risu_voice: "its voice model isn't imported: Parlor uses voice samples of a speech server",
  risu_card_scripts: "its scripts stay in the card for RisuAI and have no effect in Parlor",
  risu_damaged: "damaged: can't be unpacked",
  risu_cut_off: "the file is incomplete",
  agnai_body: "its sprite stays in the card for Agnai: Parlor can't draw it",
  expressions_only: "only expression images are imported, from the folder with the character's name",
  files_in_card: "its other images and sounds are stored with the character: export it as CHARX to get them",
  too_many_files: "the character has too many files",
  risu_media: "missing images and sounds: {count}",
  risu_module_empty: "the module has no lorebook: its scripts and images only work in RisuAI",
  risu_no_module: "not a RisuAI module, or a newer version of the format",
  risu_holds_no_module: "the file contains no module",
  risu_module_damaged: "damaged: the module can't be read",
  risu_no_preset: "not a RisuAI preset, or a newer version of the format",
  risu_holds_no_preset: "the file contains no preset",
  risu_preset_damaged: "damaged: the preset can't be decrypted",
  risu_foreign: "not from RisuAI, or damaged",
} as const;

/** Code of a reason. */
export type ImportReasonCode = keyof typeof IMPORT_REASONS;

/** A reason in a report. */
export interface ImportReason {
  /** In English, with parameters filled in. */
  reason: string;
  /** Absent for a message that only exists in English. */
  code?: ImportReasonCode;
  params?: TextParams;
}

/** Maximum length of a parameter. Parameters come from imported files. */
const MAX_PARAM_CHARS = 500;

/** Creates the reason with a code; parameters are truncated to 500 characters. */
export function importReason(code: ImportReasonCode, params?: Record<string, string | number>): ImportReason {
  if (params === undefined) return { reason: IMPORT_REASONS[code], code };
  const short = Object.fromEntries(
    Object.entries(params).map(([name, value]) => [name, String(value).slice(0, MAX_PARAM_CHARS)]),
  );
  return { reason: fillTemplate(IMPORT_REASONS[code], short), code, params: short };
}

/** An `unprocessable` item of an import. */
export class ImportError extends AppError {
  readonly reason: ImportReason;

  constructor(code: ImportReasonCode, options?: { cause?: unknown }) {
    const reason = importReason(code);
    super("unprocessable", reason.reason, options);
    this.reason = reason;
  }
}

/** Returns the reason of an error; `unreadable` for unexpected ones. */
function toReason(error: unknown): ImportReason {
  if (error instanceof ImportError) return error.reason;
  return error instanceof AppError ? { reason: error.message } : importReason("unreadable");
}

/** Creates the note that something isn't imported. @param error A code, or the error of reading it. */
export function createRefusedNote(source: string, error: unknown): ImportNote {
  const reason = typeof error === "string" ? importReason(error as ImportReasonCode) : toReason(error);
  return { what: "note", level: "refused", source, ...reason };
}

/** Creates the note that files intentionally aren't imported. @param count Number of files. */
export function createLeftOutNote(source: string, code: ImportReasonCode, count = 1): ImportNote {
  return { what: "note", level: "left_out", source, ...importReason(code), count };
}

/** Creates the note that some things of a file aren't imported. @param names For the reason's `{names}`. */
export function createNamesNote(source: string, code: ImportReasonCode, names: readonly string[]): ImportNote {
  return { ...createLeftOutNote(source, code, names.length), ...importReason(code, { names: names.join(", ") }) };
}

/** Creates the note about a part that is stored without effect. @param entry Of the ledger of a card or a preset. */
export function createUnusedNote(source: string, { kind, reason, count, examples = [] }: LedgerEntry): ImportNote {
  const params = { kind, part: reason, names: examples.join(", ") || String(count) };
  return { what: "note", level: "kept", source, ...importReason("unused_part", params), count };
}

/** Creates the note that something is imported with changes. */
export function createChangedNote(source: string, reason: ImportReasonCode | ImportReason): ImportNote {
  return { what: "note", level: "changed", source, ...(typeof reason === "string" ? importReason(reason) : reason) };
}
