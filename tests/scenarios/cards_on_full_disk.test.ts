import { expect, test } from "vitest";
import { noise } from "../helpers/files/pictures.ts";
import { cardChunk, END, plainPng, pngOf, type RawChunk } from "../helpers/files/cards.ts";
import { fill, smallFileSystem } from "../helpers/processes/storage_small_disk.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

const card = (name: string, description: string) => ({
  spec: "chara_card_v2",
  spec_version: "2.0",
  data: { name, description },
});
const STEP_BYTES = 4_096;
const STEPS = 40;

/** Fills the file system except for this number of bytes. */
async function leave(path: string, freeBytes: number): Promise<void> {
  await Deno.remove(path).catch(() => {});
  await fill(path);
  await Deno.truncate(path, (await Deno.stat(path)).size - freeBytes);
}

test(
  "on an almost full disk, an import or a save of a card gets 507 without effect, or is complete",
  { tags: ["D03"], timeout: 300_000 },
  async (context) => {
    await using home = await tempFolder();
    await using disk = await smallFileSystem(home.file("data"), 8);
    if (disk === undefined) return context.skip();
    await using app = await openTestApp({ dataDir: home.file("data"), config: { builtinAppInstalled: true } });
    const json = async (path: string) => await (await app.get(path)).json();
    const files = async () =>
      (await Array.fromAsync(Deno.readDir(`${app.dataDir}/characters`))).map(({ name }) => name).sort();
    const rest = `${app.dataDir}/rest`;
    const picture = pngOf(
      ...chunks(plainPng()).slice(0, 1),
      cardChunk("chara", card("Imported", "i")),
      ["prVt", noise(60, 60)],
      ...chunks(plainPng()).slice(1),
    );
    await app.put("/api/characters/fox", card("Fox", "before"));
    await app.put("/api/characters/fox/avatar", plainPng(), { headers: { "content-type": "image/png" } });
    const seen = { imported: new Set<number>(), saved: new Set<number>() };
    let description = "before";
    for (let step = 0; step < STEPS; step++) {
      await leave(rest, step * STEP_BYTES);
      const before = await files();
      const form = new FormData();
      form.append("file", new Blob([picture]), "card.png");
      const imported = await app.post("/api/characters/import", form);
      seen.imported.add(imported.status);
      const after = await files();
      if (imported.status === 201) {
        const { id } = await imported.json();
        expect(after).toEqual([...before, `${id}.png`].sort());
        expect(await json(`/api/characters/${id}`)).toMatchObject({ name: "Imported" });
      } else {
        expect([imported.status, (await imported.json()).error.code]).toEqual([507, "storage_full"]);
        expect(after, `step ${step}`).toEqual(before);
      }
      await leave(rest, step * STEP_BYTES);
      const versions = await json("/api/characters/fox/versions");
      const text = `${step} `.repeat(3_000);
      const saved = await app.put("/api/characters/fox", card("Fox", text));
      seen.saved.add(saved.status);
      if (saved.status === 200) description = text;
      else expect(saved.status).toBe(507);
      await saved.body?.cancel();
      expect((await json("/api/characters/fox")).card.data.description, `step ${step}`).toBe(description);
      expect(await json("/api/characters/fox/versions")).toHaveLength(versions.length + (saved.status === 200 ? 1 : 0));
    }
    expect([...seen.imported].sort()).toEqual([201, 507]);
    expect([...seen.saved].sort()).toEqual([200, 507]);
    await Deno.remove(rest);
    await app.restart();
    expect((await json("/api/characters/fox")).card.data.description).toBe(description);
    const list: { id: string }[] = await json("/api/characters");
    expect(list.map(({ id }) => `${id}.png`).sort()).toEqual(await files());
  },
);

/** The chunks of a PNG, to be combined with others. */
function chunks(png: Uint8Array): RawChunk[] {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const found: RawChunk[] = [];
  for (let at = 8; at < png.length; at += 12 + view.getUint32(at)) {
    const type = String.fromCharCode(...png.subarray(at + 4, at + 8));
    found.push([type, png.slice(at + 8, at + 8 + view.getUint32(at))]);
  }
  return found.filter(([type]) => type !== END[0]).concat([END]);
}
