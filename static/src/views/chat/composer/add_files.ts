/** Pasted, dropped or chosen files: images, documents and text files are attached as chips. */
import { ApiError, asApiError } from "../../../api/client.ts";
import { isDocumentName, isImageFile } from "../../../state/chat/attachments.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/**
 * Adds files to the composer of a chat.
 *
 * @param at The caret's position in the text.
 * @param onProblem Called with the reason for every file that can't be added.
 */
export async function addFiles(
  files: Iterable<File>,
  chat: OpenChat,
  at: number,
  onProblem: (problem: string) => void,
): Promise<void> {
  // Copied at once: a drop's list is empty after its event.
  for (const file of [...files]) {
    if (isImageFile(file)) {
      await chat.images.add(file).catch((thrown) =>
        onProblem(thrown instanceof ApiError ? thrown.message : texts.composer.badImage(file.name))
      );
      continue;
    }
    if (!chat.isTemporary && isDocument(file)) {
      await chat.documents.add(file).catch((thrown) => onProblem(asApiError(thrown).message));
      continue;
    }
    const found = await readTextFile(file);
    // A temporary chat has no documents, so its text goes into the message.
    if ("text" in found && !chat.isTemporary) {
      await chat.documents.add(file).catch((thrown) => onProblem(asApiError(thrown).message));
    } else if ("text" in found) {
      chat.draft.type(insertBlock(chat.draft.text.peek(), at, asFencedBlock(file.name, found.text)));
      at = chat.draft.text.peek().length;
    } else if (found.problem === "too_large") onProblem(texts.composer.fileTooLarge(file.name));
    else onProblem(texts.composer.fileNotText(file.name));
  }
}

/** Files whose text only the server can read, or that are too large to look into. */
function isDocument({ name, size }: File): boolean {
  return isDocumentName(name) || size > MAX_TEXT_BYTES;
}

/** Largest text file of a message, in bytes. */
const MAX_TEXT_BYTES = 256 * 1024;

/** Pasted text with more characters or lines than this becomes a file. */
const LONG_PASTE = { chars: 4000, lines: 60 };

/** Returns a long pasted text as a file; undefined for one that belongs into the message. */
export function toPastedFile(text: string, chat: OpenChat): File | undefined {
  if (chat.isTemporary) return undefined;
  const isLong = text.length > LONG_PASTE.chars || text.split("\n", LONG_PASTE.lines + 1).length > LONG_PASTE.lines;
  return isLong ? new File([text], `${namePasted(text)}.txt`, { type: "text/plain" }) : undefined;
}

/** Maximum length of the name of a pasted text, in characters. */
const MAX_PASTED_NAME = 48;

/** Names a pasted text by its first words, without signs of Markdown and those that file names can't have. */
function namePasted(text: string): string {
  const line = text.split("\n").map((each) => each.replace(/[\p{Cc}\\/:*?"<>|#`]+/gu, " ").replace(/\s+/g, " ").trim())
    .find((each) => /[\p{L}\p{N}]/u.test(each)) ?? "";
  const chars = [...line.replace(/^[-+>.\s]+/, "")];
  if (chars.length <= MAX_PASTED_NAME) return chars.join("") || texts.composer.pastedText;
  const start = chars.slice(0, MAX_PASTED_NAME).join("");
  // Chinese and Japanese have no spaces.
  return start.replace(/(.{16,}) .*$/u, "$1").trim();
}

/** Reasons why a file can't be inserted as text. */
type TextFileProblem = "too_large" | "not_text";

/** Reads a text file, or returns why it can't be used. */
async function readTextFile(file: File): Promise<{ text: string } | { problem: TextFileProblem }> {
  if (file.size > MAX_TEXT_BYTES) return { problem: "too_large" };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\u0000") ? { problem: "not_text" } : { text };
  } catch {
    return { problem: "not_text" };
  }
}

/** Returns a file's text as a fenced block under its name. The fence is longer than any inside. */
function asFencedBlock(name: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/^\s*(`{3,})/gm)].map(([, ticks]) => ticks!.length));
  const fence = "`".repeat(longest + 1);
  const extension = /\.([A-Za-z0-9]{1,12})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return `${name}\n\n${fence}${extension}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}

/** Inserts a block at the caret, on its own lines. */
function insertBlock(text: string, at: number, block: string): string {
  const before = text.slice(0, at).replace(/\s+$/, "");
  const after = text.slice(at).replace(/^\s+/, "");
  return `${before}${before === "" ? "" : "\n\n"}${block}${after === "" ? "" : `\n${after}`}`;
}
