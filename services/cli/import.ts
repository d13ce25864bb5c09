/** `parlor import KIND PATH`: imports data of other programs while the server is stopped. */
import { AppError } from "../errors.ts";
import { IMPORT_KINDS, type ImportKind } from "../import_export/import_item.ts";
import type { ImportReport } from "../import_export/import_report.ts";
import type { ImportRequest } from "../import_export/imports.ts";
import { takeOptions } from "./cli_environment.ts";

/** Description of each kind, in the order of the help text. */
const KINDS: Record<ImportKind, string> = {
  sillytavern: "the folder of a SillyTavern user",
  tavern: "chats in Tavern's JSONL",
  risuai: "a local backup or the data folder of RisuAI, or its cards, chats, personas and lorebooks",
  agnai: "the folder of an Agnai server, or its characters, chats and memory books",
  chatgpt: "the export of ChatGPT",
  claude: "the data export of Claude",
  openwebui: "the export of Open WebUI's chats",
  librechat: "conversations that LibreChat exported as JSON",
  lobechat: "the export of LobeChat",
  chatbox: "the data export of Chatbox",
  parlor: "an export of another Parlor server",
};

/** Text of `parlor import --help`. */
export const IMPORT_HELP = `Usage: parlor import KIND PATH [--dry-run] [options of parlor serve]

Imports data of another program and reports what was imported. PATH is a folder, a ZIP file or another file.
The server must be stopped. While it runs, import in the browser under Settings, Data.

  KIND       what PATH is:
${kindLines()}
  --dry-run  reads and compares everything without changing anything

Importing the same data again doesn't create duplicates.`;

/** What the command has of the world around it. */
export interface ImportOutside {
  /** Opens the data folder for one import. @throws {AppError} `conflict` while a server has it. */
  importPath(
    rest: string[],
    request: ImportRequest & { path: string; progress(done: number, total: number): void },
  ): Promise<ImportReport>;
  print(text: string): void;
  /** Prints the progress on one line that is overwritten; nothing without a terminal. */
  progress(text: string): void;
}

/** @returns 1 when something was refused, else 0. @throws {AppError} with a message for the terminal */
export async function runImport(args: readonly string[], outside: ImportOutside): Promise<number> {
  const { words: [kind = "", path = ""], options, rest } = takeOptions(args, { "dry-run": false }, {
    wordCount: 2,
    usage: "parlor import KIND PATH. See parlor import --help",
  });
  if (!isKind(kind)) {
    throw new AppError("invalid_request", `Can't import "${kind}": the kinds are ${IMPORT_KINDS.join(", ")}`);
  }
  const isDryRun = options.has("dry-run");
  const report = await outside.importPath(rest, {
    kind,
    path,
    isDryRun,
    progress: (done, total) => outside.progress(`${done} of ${total} files`),
  });
  outside.progress("");
  for (const line of reportLines(report)) outside.print(line);
  return report.lines.some(({ level }) => level === "refused") ? 1 : 0;
}

function* reportLines({ counts, messages, lines, lines_dropped, dry_run }: ImportReport): Generator<string> {
  yield dry_run ? "Dry run: nothing was changed. An import would add:" : "Imported:";
  for (const [thing, { added, updated, present, refused }] of Object.entries(counts)) {
    if (added + updated + present + refused === 0) continue;
    const more = [[updated, "updated"], [present, "here already"], [refused, "refused"]] as const;
    const words = more.filter(([count]) => count > 0).map(([count, word]) => `, ${count} ${word}`);
    yield `  ${thing.padEnd(14)}${added} new${words.join("")}`;
  }
  yield `  ${"messages".padEnd(14)}${messages}`;
  for (const { level, source, reason, count } of lines) {
    yield `${level.replace("_", " ").padEnd(10)}${source}${count === undefined ? "" : ` (${count})`}: ${reason}`;
  }
  if (lines_dropped > 0) yield `and ${lines_dropped} more such lines`;
}

function kindLines(): string {
  return IMPORT_KINDS.map((kind) => `               ${kind.padEnd(13)}${KINDS[kind]}`).join("\n");
}

function isKind(kind: string): kind is ImportKind {
  return (IMPORT_KINDS as readonly string[]).includes(kind);
}
