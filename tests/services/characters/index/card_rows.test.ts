import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CardFileStat, isPngPath, toCardHead } from "../../../../services/characters/card/card_head.ts";
import { readCard } from "../../../../services/characters/card/card_reader.ts";
import { type KnownFile, scanFolders, type ScannedCard } from "../../../../services/characters/index/card_rows.ts";
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

/** Reads files as the sandbox does. */
const read = (files: CardFileStat[]): Promise<ScannedCard[]> =>
  Promise.all(files.map(async ({ path, size }) => {
    const bytes = await Deno.readFile(path);
    const readBytes = (at: number, length: number) => Promise.resolve(bytes.slice(at, at + length));
    return await readCard(readBytes, size, isPngPath(path)).then(toCardHead, () => "invalid" as const);
  }));
const readNothing = (files: CardFileStat[]): Promise<ScannedCard[]> => Promise.resolve(files.map(() => "unreadable"));
const scan = (folder: string, known: KnownFile[] = [], isExternal = false, reader = read) =>
  scanFolders([{ path: `${root}/${folder}`, isExternal }], known, reader);
const refuse = () => {
  throw new Deno.errors.PermissionDenied("not now");
};

test("an unreadable folder of Parlor doesn't remove characters from the list", async () => {
  const { rows } = await scan("own");
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("Fox") }]);
  const reading = vi.spyOn(Deno, "readDirSync").mockImplementation(refuse);
  await expect(scan("own", rows)).rejects.toThrow(Deno.errors.PermissionDenied);
  reading.mockRestore();
  expect(await scan("own", rows)).toEqual({ rows: [], removed: [] });
  await Deno.remove(`${root}/own`, { recursive: true });
  expect((await scan("own", rows)).removed).toEqual([`${root}/own/fox.json`]);
  await Deno.mkdir(`${root}/own`);
});

test("characters of an unreadable foreign folder stay listed until the folder is removed", async () => {
  const { rows } = await scan("own", [], true);
  const reading = vi.spyOn(Deno, "readDirSync").mockImplementation(refuse);
  expect(await scan("own", rows, true)).toEqual({ rows: [], removed: [] });
  reading.mockRestore();
  await Deno.remove(`${root}/own`, { recursive: true });
  expect((await scan("own", rows, true)).removed).toEqual([`${root}/own/fox.json`]);
  await Deno.mkdir(`${root}/own`);
});

test("an unreadable file is logged once and tried again by each scan", async () => {
  const { rows } = await scan("own", [], false, readNothing);
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("fox"), isUnreadable: true }]);
  expect(await scan("own", rows, false, readNothing)).toEqual({ rows: [], removed: [] });
  expect((await scan("own", rows)).rows).toMatchObject([{ id: "fox", name: quoteKey("Fox") }]);
});

test("a file without a card isn't read again until it changes", async () => {
  await Deno.writeTextFile(`${root}/own/fox.json`, "{}");
  const { rows } = await scan("own");
  expect(rows).toMatchObject([{ id: "fox", name: quoteKey("fox"), isUnreadable: true }]);
  expect(await scan("own", rows)).toEqual({ rows: [], removed: [] });
  await Deno.writeTextFile(`${root}/own/fox.json`, JSON.stringify({ spec: "chara_card_v2", data: { name: "Foxy" } }));
  expect((await scan("own", rows)).rows).toMatchObject([{ name: quoteKey("Foxy") }]);
});
