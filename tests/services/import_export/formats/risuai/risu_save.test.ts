import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { openRisuSave, unpack } from "../../../../../services/import_export/formats/risuai/risu_save.ts";

const none = () => Promise.resolve(undefined);

test("a file that unpacks beyond the limit is rejected early", () => {
  const packed = gzipSync(new Uint8Array(1_000_000));
  expect(() => unpack(packed, 999_999)).toThrow(expect.objectContaining({ code: "too_large" }));
  expect(unpack(packed, 1_000_000).length).toBe(1_000_000);
});

test.each([
  ["a list that claims to be endless", [0xdd, 0xff, 0xff, 0xff, 0xff]],
  ["a value that is no object", [0xc0]],
  ["nothing", []],
  ["a key that reaches for what all objects share", [0x81, 0xa9, ...new TextEncoder().encode("__proto__"), 0x80]],
])("refuses %s as a database", async (_, bytes) => {
  await expect(openRisuSave(new Uint8Array(bytes), none)).rejects.toMatchObject({ code: "unprocessable" });
});

test("a character in a separate file is read, and a missing one is named", async () => {
  const block = (type: number, name: string, value: unknown) => {
    const [about, content] = [name, JSON.stringify(value)].map((text) => new TextEncoder().encode(text));
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, content!.length, true);
    return [type, 0, about!.length, ...about!, ...length, ...content!];
  };
  const mark = new TextEncoder().encode("RISUSAVE\0");
  const bytes = new Uint8Array([...mark, ...block(6, "fox", { v: 1 }), ...block(6, "owl", { v: 1 })]);
  const files = new Map([["fox", new TextEncoder().encode('{"name":"Fox"}')]]);
  const { database, missing } = await openRisuSave(bytes, (name) => Promise.resolve(files.get(name)));
  expect(database.characters).toEqual([{ name: "Fox" }]);
  expect(missing).toEqual(["owl"]);
});
