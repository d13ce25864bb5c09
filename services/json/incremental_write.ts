/** Writes long JSON documents in pieces. `JSON.stringify` alone would block the thread for some milliseconds per megabyte. */
import { yieldIfTickUsedUp } from "../async/delay.ts";

/** Items of a list that are written at a time. */
const PIECE_ITEMS = 20;
/** Levels of objects that are written a member at a time: the document, its `data`, and the lorebook in that. */
const LEVELS = 3;

/**
 * Writes what was parsed from JSON like `JSON.stringify`, but yields to the event loop between members, and between
 * pieces of lists that are members.
 */
export async function writeJsonIncrementally(json: unknown, indentation = 0): Promise<string> {
  return await write(json, " ".repeat(indentation), indentation === 0 ? "" : "\n", LEVELS);
}

/** @param line What stands before the closing bracket: a line break and the indentation of this level, or nothing. */
async function write(json: unknown, indentation: string, line: string, levels: number): Promise<string> {
  if (Array.isArray(json)) return await writeList(json, indentation, line);
  if (levels === 0 || typeof json !== "object" || json === null) return stringify(json, indentation, line);
  const members: string[] = [];
  for (const [name, value] of Object.entries(json)) {
    await yieldIfTickUsedUp();
    if (value === undefined) continue;
    const text = await write(value, indentation, line + indentation, levels - 1);
    members.push(`${JSON.stringify(name)}:${line === "" ? "" : " "}${text}`);
  }
  if (members.length === 0) return "{}";
  return `{${line}${indentation}${members.join(`,${line}${indentation}`)}${line}}`;
}

async function writeList(items: readonly unknown[], indentation: string, line: string): Promise<string> {
  if (items.length === 0) return "[]";
  const pieces: string[] = [];
  for (let at = 0; at < items.length; at += PIECE_ITEMS) {
    await yieldIfTickUsedUp();
    const piece = stringify(items.slice(at, at + PIECE_ITEMS), indentation, line);
    pieces.push(piece.slice(1, piece.length - line.length - 1));
  }
  return `[${pieces.join(",")}${line}]`;
}

function stringify(json: unknown, indentation: string, line: string): string {
  // Line breaks in texts are escaped.
  return JSON.stringify(json, null, indentation).replaceAll("\n", line);
}
