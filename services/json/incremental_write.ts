/** Writes long JSON documents in pieces. `JSON.stringify` alone would block the thread for some milliseconds per megabyte. */
import { yieldIfTickUsedUp } from "../async/delay.ts";

/** Items of a list that are written at a time. */
const PIECE_ITEMS = 20;

/** Writes an object like `JSON.stringify`, but yields to the event loop between pieces of lists that are its members. */
export async function writeJsonIncrementally(document: object): Promise<string> {
  const members: string[] = [];
  for (const [name, value] of Object.entries(document)) {
    const text = Array.isArray(value) ? await writeList(value) : JSON.stringify(value);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
    await yieldIfTickUsedUp();
  }
  return `{${members.join(",")}}`;
}

async function writeList(items: readonly unknown[]): Promise<string> {
  const pieces: string[] = [];
  for (let at = 0; at < items.length; at += PIECE_ITEMS) {
    pieces.push(JSON.stringify(items.slice(at, at + PIECE_ITEMS)).slice(1, -1));
    await yieldIfTickUsedUp();
  }
  return `[${pieces.join(",")}]`;
}

/** Levels of an indented document that are written a member at a time: `data`, its list, and what is in that. */
const LEVELS = 3;

/** Writes JSON like `JSON.stringify` with an indentation, but yields to the event loop between members. */
export async function writeIndentedJson(json: unknown, indentation: number): Promise<string> {
  return await writeIndented(json, " ".repeat(indentation), "\n", LEVELS);
}

async function writeIndented(json: unknown, indentation: string, line: string, levels: number): Promise<string> {
  if (levels === 0 || typeof json !== "object" || json === null) {
    // Line breaks in texts are escaped.
    return JSON.stringify(json, null, indentation).replaceAll("\n", line);
  }
  const isList = Array.isArray(json);
  const members: string[] = [];
  for (const [name, value] of Object.entries(json)) {
    await yieldIfTickUsedUp();
    if (value === undefined && !isList) continue;
    const text = await writeIndented(value ?? null, indentation, line + indentation, levels - 1);
    members.push(isList ? text : `${JSON.stringify(name)}: ${text}`);
  }
  const [begin, end] = isList ? "[]" : "{}";
  return members.length === 0
    ? `${begin}${end}`
    : `${begin}${line}${indentation}${members.join(`,${line}${indentation}`)}${line}${end}`;
}
