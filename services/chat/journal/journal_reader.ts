/** Reads back what a killed process left in the journal. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { readFileIfExists } from "../../storage/atomic_file.ts";
import type { JournalBatch, JournalEntry, JournalKey } from "./journal.ts";
import { journalNumber, journalPath, LENGTH_BYTES, recordPlace, removeJournal } from "./journal_file.ts";

const decoder = new TextDecoder();

/** Gives the numbers of the files in a folder, oldest first. */
export async function journalNumbers(folder: string): Promise<number[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map((entry) => entry.name);
  return names.map(journalNumber).filter((number) => number !== undefined).sort((a, b) => a - b);
}

/**
 * Gives everything that the journal holds of some replies, by the generation of their run, of which each has its own.
 *
 * A record that was cut off or damaged ends its file. Of each reply only what follows without a gap counts, so that no text
 * comes back with a hole in it.
 */
export async function readJournal(
  folder: string,
  sealer: PurposeSealer,
  wanted: JournalKey[],
): Promise<Map<string, JournalBatch>> {
  const found = new Map<string, JournalBatch>(
    wanted.map(({ generation }) => [generation, { after: 0, seq: 0, text: "", reasoning: "" }]),
  );
  const messageIds = new Map(wanted.map(({ messageId, generation }) => [generation, messageId]));
  if (wanted.length === 0) return found;
  for (const number of await journalNumbers(folder)) {
    for await (const [mid, generation, after, seq, text, reasoning] of entriesOf(folder, sealer, number)) {
      const whole = found.get(generation);
      if (whole === undefined || messageIds.get(generation) !== mid || whole.seq !== after) continue;
      whole.seq = seq;
      whole.text += text;
      whole.reasoning += reasoning;
    }
  }
  return found;
}

/** Removes every file: all replies that were running are settled. */
export async function removeJournals(folder: string): Promise<void> {
  for (const number of await journalNumbers(folder)) await removeJournal(folder, number);
}

async function* entriesOf(folder: string, sealer: PurposeSealer, number: number): AsyncGenerator<JournalEntry> {
  const bytes = await readFileIfExists(journalPath(folder, number));
  if (bytes === undefined) return;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, index = 0; at + LENGTH_BYTES <= bytes.length; index++) {
    const begin = at + LENGTH_BYTES;
    const end = begin + view.getUint32(at);
    const entries = end > bytes.length
      ? undefined
      : openRecord(sealer, recordPlace(number, index), bytes.subarray(begin, end));
    if (entries === undefined) return;
    yield* entries;
    at = end;
  }
}

function openRecord(
  sealer: PurposeSealer,
  place: ReturnType<typeof recordPlace>,
  sealed: Uint8Array,
): JournalEntry[] | undefined {
  try {
    return JSON.parse(decoder.decode(sealer.openNow(place, sealed)));
  } catch {
    return undefined; // Torn by a power cut, or put there by somebody else.
  }
}
