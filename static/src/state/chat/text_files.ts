/** Text files that are dropped into the composer become a part of the message. */

/** A file of more than this is no part of a message. In bytes. */
export const MAX_TEXT_BYTES = 256 * 1024;

/** Why a file cannot become text. */
export type TextFileProblem = "too_large" | "not_text";

/** Reads a file; gives why that makes no sense instead. */
export async function readTextFile(file: File): Promise<{ text: string } | { problem: TextFileProblem }> {
  if (file.size > MAX_TEXT_BYTES) return { problem: "too_large" };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\u0000") ? { problem: "not_text" } : { text };
  } catch {
    return { problem: "not_text" };
  }
}

/** Gives a file's text as a fenced block under its name. The fence is longer than any inside. */
export function asFencedBlock(name: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/^\s*(`{3,})/gm)].map(([, ticks]) => ticks!.length));
  const fence = "`".repeat(longest + 1);
  const extension = /\.([A-Za-z0-9]{1,12})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return `${name}\n\n${fence}${extension}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}

/** Puts a block where the cursor stands, on lines of its own. */
export function insertBlock(text: string, at: number, block: string): string {
  const before = text.slice(0, at).replace(/\s+$/, "");
  const after = text.slice(at).replace(/^\s+/, "");
  return `${before}${before === "" ? "" : "\n\n"}${block}${after === "" ? "" : `\n${after}`}`;
}
