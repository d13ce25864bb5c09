import { afterEach, beforeEach, expect, test } from "vitest";
import { Journal, readJournal, removeJournal } from "../../../services/chat/journal.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";

const sealer = createSealer(randomBytes(32)).forPurpose("journal");
const key = { messageId: "a1", generation: "g1" };
let folder: string;

beforeEach(async () => {
  folder = await Deno.makeTempDir();
});
afterEach(() => Deno.remove(folder, { recursive: true }));

function write(...texts: string[]): Journal {
  const journal = Journal.open(folder, sealer, key);
  texts.forEach((text, index) => journal.append({ seq: index + 1, text, reasoning: text.toUpperCase() }));
  return journal;
}

test("a journal gives back what was appended, in order, without having been closed", async () => {
  const journal = write("Grü", "ße ", "\ud83d", "\ude00");
  expect(await readJournal(folder, sealer, key)).toEqual({ seq: 4, text: "Grüße 😀", reasoning: "GRÜSSE 😀" });
  await journal.close();
});

test("K08 a journal is readable by its owner only", async () => {
  const journal = write("a");
  expect((await Deno.stat(`${folder}/a1.journal`)).mode! & 0o777).toBe(0o600);
  await journal.close();
});

test("K01 the text of a reply is not found in its journal", async () => {
  const journal = write("the treasure lies under the pear tree");
  await journal.close();
  expect(new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/a1.journal`))).not.toContain("treasure");
});

test("a journal cut anywhere gives every whole record before the cut and nothing else", async () => {
  await write("one ", "two ", "three").close();
  const path = `${folder}/a1.journal`;
  const bytes = await Deno.readFile(path);
  const seen = new Set<string>();
  for (let length = 0; length <= bytes.length; length++) {
    await Deno.writeFile(path, bytes.subarray(0, length));
    seen.add((await readJournal(folder, sealer, key)).text);
  }
  expect([...seen]).toEqual(["", "one ", "one two ", "one two three"]);
});

test("K02 records of another run, or in another order, are not taken", async () => {
  await write("one ", "two ").close();
  expect((await readJournal(folder, sealer, { ...key, generation: "g2" })).text).toBe("");
  expect((await readJournal(folder, sealer, key)).text).toBe("one two ");
  const path = `${folder}/a1.journal`;
  const bytes = await Deno.readFile(path);
  const first = 4 + new DataView(bytes.buffer).getUint32(0);
  await Deno.writeFile(path, new Uint8Array([...bytes.subarray(first), ...bytes.subarray(0, first)]));
  expect((await readJournal(folder, sealer, key)).text).toBe("");
});

test("a journal begun anew forgets the earlier run, a removed one is gone, and removing twice is no error", async () => {
  await write("old").close();
  const journal = write("new");
  expect((await readJournal(folder, sealer, key)).text).toBe("new");
  await journal.remove();
  await removeJournal(folder, "a1");
  expect([...Deno.readDirSync(folder)]).toEqual([]);
});
