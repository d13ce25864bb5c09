import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type KnownFile, scanFolders } from "../../../../services/characters/index/card_rows.ts";
import { quoteKey } from "../../../../services/json/text.ts";

let root: string;
beforeEach(async () => {
  root = await Deno.makeTempDir({ prefix: "parlor-scan-" });
  await Deno.mkdir(`${root}/own`);
  await Deno.writeTextFile(`${root}/own/fox.json`, JSON.stringify({ spec: "chara_card_v2", data: { name: "Fox" } }));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Deno.remove(root, { recursive: true });
});

const scan = (folder: string, known: KnownFile[] = [], isExternal = false) =>
  scanFolders([{ path: `${root}/${folder}`, isExternal }], known);
const refuse = () => {
  throw new Deno.errors.PermissionDenied("not now");
};

test("an unreadable folder of Parlor doesn't remove characters from the list", async () => {
  const { rows } = scan("own");
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("Fox") }]);
  const reading = vi.spyOn(Deno, "readDirSync").mockImplementation(refuse);
  expect(() => scan("own", rows)).toThrow(Deno.errors.PermissionDenied);
  reading.mockRestore();
  expect(scan("own", rows)).toEqual({ rows: [], removed: [] });
  await Deno.remove(`${root}/own`, { recursive: true });
  expect(scan("own", rows).removed).toEqual([`${root}/own/fox.json`]);
  await Deno.mkdir(`${root}/own`);
});

test("characters of an unreadable foreign folder stay listed until the folder is removed", async () => {
  const { rows } = scan("own", [], true);
  const reading = vi.spyOn(Deno, "readDirSync").mockImplementation(refuse);
  expect(scan("own", rows, true)).toEqual({ rows: [], removed: [] });
  reading.mockRestore();
  await Deno.remove(`${root}/own`, { recursive: true });
  expect(scan("own", rows, true).removed).toEqual([`${root}/own/fox.json`]);
  await Deno.mkdir(`${root}/own`);
});

test("an unreadable file is logged once and tried again by each scan", () => {
  const opening = vi.spyOn(Deno, "openSync").mockImplementation(refuse);
  const reading = vi.spyOn(Deno, "readFileSync").mockImplementation(refuse);
  const { rows } = scan("own");
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("fox"), isUnreadable: true }]);
  expect(scan("own", rows)).toEqual({ rows: [], removed: [] });
  opening.mockRestore();
  reading.mockRestore();
  expect(scan("own", rows).rows).toMatchObject([{ id: "fox", name: quoteKey("Fox") }]);
});

test("a file without a card isn't read again until it changes", async () => {
  await Deno.writeTextFile(`${root}/own/fox.json`, "{}");
  const { rows } = scan("own");
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("fox"), isUnreadable: true }]);
  expect(scan("own", rows)).toEqual({ rows: [], removed: [] });
  await Deno.writeTextFile(`${root}/own/fox.json`, JSON.stringify({ spec: "chara_card_v2", data: { name: "Foxy" } }));
  expect(scan("own", rows).rows).toMatchObject([{ name: quoteKey("Foxy") }]);
});
