import { afterEach, beforeEach, expect, test } from "vitest";
import type { CardRow } from "../../../../services/characters/card/card_head.ts";
import { replaceRows } from "../../../../services/characters/index/card_rows.ts";
import { CardScan } from "../../../../services/characters/index/card_scan.ts";
import { quoteKey } from "../../../../services/json/text.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { type Database, openDatabase } from "../../../../services/storage/database/database.ts";
import {
  cardChunk,
  END,
  header,
  pngOf,
  type RawChunk,
  sillyTavernCard,
  sillyTavernPng,
} from "../../../helpers/files/cards.ts";
import { listDescendants } from "../../../helpers/processes/proc.ts";

let root: string;
let db: Database;
beforeEach(async () => {
  root = await Deno.makeTempDir({ prefix: "parlor-scan-" });
  await Deno.mkdir(`${root}/cards`);
  db = await openDatabase({ path: `${root}/app.db` });
});
afterEach(async () => {
  await db.close();
  await Deno.remove(root, { recursive: true });
});

const card = (name: string, extensions: unknown = {}) =>
  JSON.stringify({ spec: "chara_card_v2", spec_version: "2.0", data: { name, extensions } });

async function scan(scanner: CardScan, isStored = false): Promise<CardRow[]> {
  const folders = [{ path: `${root}/cards`, isExternal: false }];
  const { changes } = await scanner.scan({ databasePath: `${root}/app.db`, folders });
  if (isStored) await db.write(replaceRows(changes));
  return (JSON.parse(changes.rows) as CardRow[]).sort((a, b) => a.id < b.id ? -1 : 1);
}

test("reads hundreds of cards in the sandbox, and none of them again", async () => {
  for (let n = 100; n < 250; n++) await Deno.writeTextFile(`${root}/cards/c${n}.json`, card(`Card ${n}`));
  await Deno.writeFile(`${root}/cards/fox.png`, sillyTavernPng(sillyTavernCard("Fox")));
  await Deno.writeTextFile(`${root}/cards/odd.json`, "{}");
  await Deno.writeTextFile(`${root}/cards/empty.json`, "");
  await using sandbox = new Sandbox();
  const scanner = new CardScan(sandbox);
  const names = (await scan(scanner, true)).map(({ name }) => name);
  expect(names).toEqual([
    ...Array.from({ length: 150 }, (_, n) => quoteKey(`Card ${100 + n}`)),
    quoteKey("empty"),
    quoteKey("Fox"),
    quoteKey("odd"),
  ]);
  expect(await scan(scanner)).toEqual([]);
  scanner.close();
});

test("cards after many pixels are read, however many files there are", async () => {
  const pixels = Array.from({ length: 9 }, (): RawChunk => ["IDAT", new Uint8Array(4_000)]);
  for (let n = 1_000; n < 1_600; n++) {
    const data = { ...sillyTavernCard(`Card ${n}`).data, description: `${n} `.repeat(n) };
    const chunks = [header(2, 2), ...pixels, cardChunk("chara", { ...sillyTavernCard(""), data }), END];
    await Deno.writeFile(`${root}/cards/c${n}.png`, n % 100 === 0 ? pngOf(...chunks).slice(0, 90) : pngOf(...chunks));
  }
  await using sandbox = new Sandbox();
  const scanner = new CardScan(sandbox);
  const found = (await scan(scanner)).map(({ name, isUnreadable = false }) => ({ name, isUnreadable }));
  scanner.close();
  expect(found).toEqual(Array.from({ length: 600 }, (_, n) => {
    const isUnreadable = n % 100 === 0;
    return { name: quoteKey(isUnreadable ? `c${1_000 + n}` : `Card ${1_000 + n}`), isUnreadable };
  }));
});

test("closing ends a running scan, and the next one reads everything", async () => {
  for (let n = 100; n < 400; n++) await Deno.writeTextFile(`${root}/cards/c${n}.json`, card(`Card ${n}`));
  await using sandbox = new Sandbox();
  const closed = new CardScan(sandbox);
  const before = listDescendants(Deno.pid);
  const ended = scan(closed).catch((error) => error);
  await expect.poll(() => listDescendants(Deno.pid, before)).not.toEqual([]);
  closed.close();
  expect(await ended).toMatchObject({ code: "not_available" });
  const scanner = new CardScan(sandbox);
  expect(await scan(scanner)).toHaveLength(300);
  scanner.close();
});

test("a card that exceeds a limit is the only one that isn't listed, and no process of it is left", {
  tags: ["J01"],
}, async () => {
  await Deno.writeTextFile(`${root}/cards/a.json`, card("Fox"));
  await Deno.writeTextFile(`${root}/cards/b.json`, card("Bomb", Array.from({ length: 1_000_000 }, () => [])));
  await Deno.writeTextFile(`${root}/cards/c.json`, card("Owl"));
  const before = listDescendants(Deno.pid);
  await using sandbox = new Sandbox({ watchMs: 10 });
  const scanner = new CardScan(sandbox, { maxCpuMs: 50 });
  expect((await scan(scanner)).map(({ name }) => name)).toEqual(["Fox", "b", "Owl"].map(quoteKey));
  scanner.close();
  const patient = new CardScan(sandbox);
  expect((await scan(patient)).map(({ name }) => name)).toEqual(["Fox", "Bomb", "Owl"].map(quoteKey));
  patient.close();
  await sandbox.close();
  expect(listDescendants(Deno.pid, before)).toEqual([]);
});
