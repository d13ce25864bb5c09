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
