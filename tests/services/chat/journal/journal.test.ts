import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Journal, type JournalBatch, type ReplyJournal } from "../../../../services/chat/journal/journal.ts";
import { readJournal, removeJournals } from "../../../../services/chat/journal/recovery.ts";
import { randomBytes } from "../../../../services/crypto/random.ts";
import { createSealer } from "../../../../services/crypto/sealer.ts";
import { PATIENCE_MS } from "../../../helpers/app/patience.ts";
import { fill, smallFileSystem } from "../../../helpers/processes/storage_small_disk.ts";

const sealer = createSealer(randomBytes(32)).forPurpose("journal");
/** A disk may take seconds to sync. */
const WAITING = { timeout: PATIENCE_MS };
const RUNS = [{ messageId: "a1", generation: "g1" }, { messageId: "a2", generation: "g2" }] as const;
let folder: string;
let journal: Journal;

beforeEach(async () => {
  folder = await Deno.makeTempDir();
  journal = await Journal.open(folder, sealer);
});
afterEach(async () => {
  await journal.close();
  await Deno.remove(folder, { recursive: true });
});

/** One reply that produces words. */
function writerOf(run: typeof RUNS[number], into = journal) {
  const reply = into.begin(run);
  let seq = 0;
  return {
    ...reply,
    write: (text: string) => reply.append(batchOf(seq, ++seq, text)),
  };
}

function batchOf(after: number, seq: number, text: string): JournalBatch {
  return { after, seq, text, reasoning: text.toUpperCase() };
}

async function textsIn(path = folder): Promise<string[]> {
  const found = await readJournal(path, sealer, [...RUNS]);
  return RUNS.map(({ generation }) => found.get(generation)!.text);
}

function names(): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

function onlyFile(): string {
  expect(names().length).toBe(1);
  return `${folder}/${names()[0]}`;
}

/** Cuts a file into its records. */
function recordsOf(bytes: Uint8Array): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + new DataView(bytes.buffer, at).getUint32(0);
    records.push(bytes.slice(at, end));
    at = end;
  }
  return records;
}

test("reads appended batches in order, also if the journal wasn't closed", async () => {
  const one = writerOf(RUNS[0]);
  for (const text of ["Grü", "ße ", "\ud83d", "\ude00"]) await one.write(text);
  const found = await readJournal(folder, sealer, [RUNS[0]]);
  expect(found).toEqual(new Map([["g1", { after: 0, seq: 4, text: "Grüße 😀", reasoning: "GRÜSSE 😀" }]]));
});

test("syncs the file and its folder within a second of a write, and later writes again", async () => {
  const data = vi.spyOn(Deno.FsFile.prototype, "syncData");
  const names = vi.spyOn(Deno.FsFile.prototype, "sync");
  const counts = () => [data.mock.calls.length, names.mock.calls.length];
  const wasCalled = async (count: number) => await vi.waitFor(() => expect(data).toHaveBeenCalledTimes(count), WAITING);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const { write } = writerOf(RUNS[0]);
    await write("a");
    vi.advanceTimersByTime(600);
    await write("b");
    expect(counts()).toEqual([0, 0]);
    vi.advanceTimersByTime(400);
    vi.useRealTimers();
    await wasCalled(1);
    await vi.waitFor(() => expect(names).toHaveBeenCalledTimes(1), WAITING);
    await Promise.all([...data.mock.results, ...names.mock.results].map(({ value }) => value));
    await new Promise((resolve) => setTimeout(resolve)); // then everything that waited for them has continued
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    vi.advanceTimersByTime(5000);
    expect(counts()).toEqual([1, 1]);
    await write("c");
    vi.advanceTimersByTime(1000);
    vi.useRealTimers();
    await wasCalled(2);
    expect(names).toHaveBeenCalledTimes(1);
  } finally {
    vi.useRealTimers();
    vi.restoreAllMocks();
  }
});

test("syncs the rest when the journal is closed", async () => {
  const data = vi.spyOn(Deno.FsFile.prototype, "syncData");
  try {
    await writerOf(RUNS[0]).write("a");
    await journal.close();
    expect(data).toHaveBeenCalledTimes(1);
  } finally {
    data.mockRestore();
  }
});

test("creates journals that only their owner can read", { tags: ["K08"] }, async () => {
  await writerOf(RUNS[0]).write("a");
  expect((await Deno.stat(onlyFile())).mode! & 0o777).toBe(0o600);
});

test("stores no plaintext and no ids in the journal", { tags: ["K01"] }, async () => {
  const run = { messageId: "the-message-id", generation: "the-generation" };
  await journal.begin(run).append(batchOf(0, 1, "the treasure lies under the pear tree"));
  const bytes = new TextDecoder("latin1").decode(await Deno.readFile(onlyFile()));
  for (const secret of ["treasure", "TREASURE", run.messageId, run.generation]) expect(bytes).not.toContain(secret);
});

test("writes batches of two replies in one tick as one record", async () => {
  const [one, two] = RUNS.map((run) => writerOf(run));
  await Promise.all([one!.write("one "), two!.write("eins "), one!.write("two ")]);
  await Promise.all([two!.write("zwei "), one!.write("three")]);
  await two!.write("drei");
  expect(recordsOf(await Deno.readFile(onlyFile())).length).toBe(3);
  expect(await textsIn()).toEqual(["one two three", "eins zwei drei"]);
});

test(
  "reads all complete records of a journal cut at any byte",
  { tags: ["D02"] },
  async () => {
    const [one, two] = RUNS.map((run) => writerOf(run));
    await one!.write("one ");
    await Promise.all([one!.write("two "), two!.write("eins ")]);
    await Promise.all([two!.write("zwei"), one!.write("three")]);
    const path = onlyFile();
    const bytes = await Deno.readFile(path);
    const ends = recordsOf(bytes).map((_, n, all) =>
      all.slice(0, n + 1).reduce((sum, record) => sum + record.length, 0)
    );
    const stages = [["", ""], ["one ", ""], ["one two ", "eins "], ["one two three", "eins zwei"]];
    for (let length = 0; length <= bytes.length; length++) {
      await Deno.writeFile(path, bytes.subarray(0, length));
      expect(await textsIn(), `${length} bytes`).toEqual(stages[ends.filter((end) => end <= length).length]);
    }
    await Deno.writeFile(path, new Uint8Array([...bytes, 0, 0, 0, 9, ...new Uint8Array(4096)]));
    expect(await textsIn()).toEqual(stages.at(-1));
  },
);

test("ignores records of another run, order or file", { tags: ["K02"] }, async () => {
  const writer = writerOf(RUNS[0]);
  await writer.write("one ");
  await writer.write("two ");
  expect((await readJournal(folder, sealer, [{ ...RUNS[0], generation: "g0" }])).get("g0")?.text).toBe("");
  expect(await textsIn()).toEqual(["one two ", ""]);
  const path = onlyFile();
  const bytes = await Deno.readFile(path);
  const [first, second] = recordsOf(bytes);
  await Deno.writeFile(path, new Uint8Array([...second!, ...first!]));
  expect(await textsIn()).toEqual(["", ""]);
  await Deno.writeFile(path, bytes);
  await Deno.rename(path, `${folder}/0000000007.journal`);
  expect(await textsIn()).toEqual(["", ""]);
});

test("stops at a flipped byte, and never returns text with a gap", { tags: ["K03"] }, async () => {
  const small = await Journal.open(folder, sealer, { fileBytes: 1 });
  const writer = writerOf(RUNS[0], small);
  for (const text of ["one ", "two ", "three "]) await writer.write(text);
  expect(names()).toEqual(["0000000001.journal", "0000000002.journal", "0000000003.journal"]);
  expect(await textsIn()).toEqual(["one two three ", ""]);
  const path = `${folder}/0000000002.journal`;
  const bytes = await Deno.readFile(path);
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at]! ^= 1;
    await Deno.writeFile(path, flipped);
    expect(await textsIn(), `byte ${at}`).toEqual(["one ", ""]);
  }
  await small.close();
});

test("deletes a journal file when its last reply is settled", async () => {
  const [one, two] = RUNS.map((run) => writerOf(run));
  await Promise.all([one!.write("one"), two!.write("eins")]);
  await one!.settle();
  expect(await textsIn()).toEqual(["one", "eins"]);
  await two!.write(" zwei");
  expect((await textsIn())[1]).toBe("eins zwei");
  await two!.settle();
  expect(names()).toEqual([]);
  await two!.settle();
  await writerOf(RUNS[0]).write("again");
  expect(await textsIn()).toEqual(["again", ""]);
});

test("starts another file when one is full, and deletes each when no reply needs it", async () => {
  const small = await Journal.open(folder, sealer, { fileBytes: 120 });
  const [long, short] = RUNS.map((run) => writerOf(run, small));
  await Promise.all([long!.write("one "), short!.write("eins")]);
  await short!.write(" zwei");
  await short!.write(" drei");
  expect(names()).toEqual(["0000000001.journal", "0000000002.journal"]);
  expect(await textsIn()).toEqual(["one ", "eins zwei drei"]);
  await short!.settle();
  expect(names()).toEqual(["0000000001.journal"]);
  for (let n = 2; n < 9; n++) await long!.write(`${n} `);
  expect(names().length).toBeGreaterThan(2);
  expect((await textsIn())[0]).toBe("one 2 3 4 5 6 7 8 ");
  await long!.settle();
  expect(names()).toEqual([]);
  await small.close();
});

test("prepares a file before the first batch, deletes it without one, and prepares none for a settled reply", async () => {
  const reply: ReplyJournal = journal.begin(RUNS[0]);
  expect(names()).toEqual([]);
  reply.prepare();
  expect(names().length).toBe(1);
  await reply.settle();
  expect(names()).toEqual([]);
  reply.prepare();
  expect(names()).toEqual([]);
});

test("keeps the files of an earlier process until they are removed", async () => {
  await writerOf(RUNS[0]).write("old");
  await journal.close();
  journal = await Journal.open(folder, sealer);
  await writerOf(RUNS[1]).write("new");
  expect(names()).toEqual(["0000000001.journal", "0000000002.journal"]);
  expect(await textsIn()).toEqual(["old", "new"]);
  await removeJournals(folder);
  expect(names()).toEqual([]);
});

test(
  "fails the batch on a full disk, keeps earlier ones, and continues when there is space",
  { tags: ["D03"] },
  async (context) => {
    await using small = await smallFileSystem(`${folder}/small`);
    if (small === undefined) {
      console.warn("SKIPPED D03 on a real full file system: only root on Linux can mount one");
      return context.skip();
    }
    const disk = await Journal.open(`${folder}/small`, sealer);
    const one = writerOf(RUNS[0], disk);
    await one.write("one ");
    await fill(`${folder}/small/filler`);
    const two = disk.begin(RUNS[1]);
    const failed = two.append(batchOf(0, 1, "x".repeat(100_000)));
    await expect(failed).rejects.toMatchObject({ code: "storage_full" });
    expect(await textsIn(`${folder}/small`)).toEqual(["one ", ""]);
    await Deno.remove(`${folder}/small/filler`);
    await Promise.all([one.write("two "), two.append(batchOf(0, 1, "eins"))]);
    expect(await textsIn(`${folder}/small`)).toEqual(["one two ", "eins"]);
    await Promise.all([one.settle(), two.settle()]);
    expect([...Deno.readDirSync(`${folder}/small`)]).toEqual([]);
    await disk.close();
  },
);
