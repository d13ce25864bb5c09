import { type Zippable, zipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openZip } from "../../../services/import_export/import_zip.ts";

const TEXT = new TextEncoder().encode("a line of a chat, and another one\n".repeat(40));
const MAX_BYTES = 1_000_000;
/** Offsets of an entry's fields in its directory record. @see APPNOTE.TXT, 4.3.12 */
const [FLAGS, METHOD, PACKED_BYTES, SIZE_BYTES, HEADER_AT] = [8, 10, 20, 24, 42];

let path: string;
beforeEach(async () => {
  path = await Deno.makeTempFile({ prefix: "parlor-zip-" });
});
afterEach(() => Deno.remove(path));

/** Changes a zip file and opens it. */
async function open(files: Zippable, change: (bytes: DataView, directoryAt: number) => void = () => {}) {
  const bytes = zipSync(files);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  change(view, view.getUint32(bytes.length - 22 + 16, true));
  await Deno.writeFile(path, bytes);
  const file = await Deno.open(path);
  const zip = await openZip(file);
  const read = (name: string) => zip.read({ path: name, sizeBytes: 0 }, MAX_BYTES);
  return { zip, read, [Symbol.dispose]: () => file.close() };
}

test.each([0, 9] as const)("an entry compressed at level %i is read unchanged", async (level) => {
  using opened = await open({ "chats/a.jsonl": [TEXT, { level }], "b.txt": [new Uint8Array(), { level }] });
  expect(opened.zip.files).toEqual([{ path: "b.txt", sizeBytes: 0 }, {
    path: "chats/a.jsonl",
    sizeBytes: TEXT.length,
  }]);
  expect(await opened.read("chats/a.jsonl")).toEqual(TEXT);
  expect(await opened.read("b.txt")).toEqual(new Uint8Array());
});

test("an entry with a changed byte is damaged, and its neighbor is still read", async () => {
  const other = TEXT.toReversed();
  using opened = await open(
    { "a.txt": [TEXT, { level: 0 }], "b.txt": [other, { level: 0 }] },
    (bytes) => bytes.setUint8(100, bytes.getUint8(100) ^ 1),
  );
  await expect(opened.read("a.txt")).rejects.toMatchObject({ code: "unprocessable", message: /"a.txt" is damaged/ });
  expect(await opened.read("b.txt")).toEqual(other);
});

test.each([
  ["is longer than it says", SIZE_BYTES, TEXT.length - 1],
  ["says that it is empty", SIZE_BYTES, 0],
  ["is shorter than it says", SIZE_BYTES, TEXT.length + 1],
  ["is said to be packed in more bytes than there are", PACKED_BYTES, 10_000_000],
  ["is said to lie elsewhere", HEADER_AT, 1],
  ["is packed in an unknown way", METHOD, 99],
  ["is encrypted", FLAGS, 1],
])("rejects an entry that %s", async (_, field, value) => {
  using opened = await open({ "a.txt": [TEXT, { level: 9 }] }, (bytes, directoryAt) => {
    if (field === METHOD || field === FLAGS) bytes.setUint16(directoryAt + field, value, true);
    else bytes.setUint32(directoryAt + field, value, true);
  });
  await expect(opened.read("a.txt")).rejects.toMatchObject({ code: "unprocessable" });
});

test("rejects an entry larger than its kind allows before creating a byte of it", async () => {
  using opened = await open({ "a.txt": [TEXT, { level: 9 }] }, (bytes, directoryAt) => {
    bytes.setUint32(directoryAt + SIZE_BYTES, MAX_BYTES + 1, true);
  });
  await expect(opened.read("a.txt")).rejects.toMatchObject({ code: "too_large" });
});

test("skips names that lead out of the zip", async () => {
  using opened = await open({ "../up.txt": TEXT, "/root.txt": TEXT, "a\\b.txt": TEXT, "a.txt": TEXT });
  expect(opened.zip.files.map((file) => file.path)).toEqual(["a.txt"]);
  expect([...opened.zip.skippedPaths].sort()).toEqual(["../up.txt", "/root.txt", "a\\b.txt"]);
  await expect(opened.read("../up.txt")).rejects.toMatchObject({ code: "not_found" });
});

test("refuses a file that isn't a ZIP file, or is incomplete", async () => {
  for (const bytes of [TEXT, zipSync({ "a.txt": TEXT }).slice(0, -30), zipSync({ "a.txt": TEXT }).slice(50)]) {
    await Deno.writeFile(path, bytes);
    using file = await Deno.open(path);
    await expect(openZip(file)).rejects.toMatchObject({ code: "unprocessable" });
  }
});
