import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { createChunk, joinPng, parsePng } from "../../../../services/attachments/images/png.ts";
import { removeImageMetadata } from "../../../../services/characters/png/image_metadata.ts";
import { parsePngCard } from "../../../../services/characters/png/png_card.ts";
import { sillyTavernCard, sillyTavernPng } from "../../../helpers/files/cards.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";

const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** Exif with a place and, if given, an orientation. */
function exif(orientation?: number): Uint8Array {
  const entries = [...orientation === undefined ? [] : [[0x0112, 3, 1, orientation << 16]], [0x8825, 4, 1, 99]];
  const view = new DataView(new ArrayBuffer(14 + entries.length * 12));
  view.setUint32(0, 0x4d4d002a);
  view.setUint32(4, 8);
  view.setUint16(8, entries.length);
  for (const [n, [tag, type, count, value]] of entries.entries()) {
    view.setUint16(10 + n * 12, tag!);
    view.setUint16(12 + n * 12, type!);
    view.setUint32(14 + n * 12, count!);
    view.setUint32(18 + n * 12, value!);
  }
  return new Uint8Array(view.buffer);
}

/** A card whose image tells where it was taken and how it was generated. */
function tellingPng(orientation?: number): Uint8Array<ArrayBuffer> {
  const [header, ...rest] = parsePng(sillyTavernPng(sillyTavernCard("Fox"))).chunks;
  return joinPng([
    header!,
    createChunk("eXIf", exif(orientation)),
    createChunk("tEXt", latin1("parameters\0a fox, Steps: 20")),
    createChunk("iTXt", latin1('Workflow\0\0\0\0\0{"nodes":[]}')),
    createChunk("tEXt", latin1("XML:com.adobe.xmp\0<x:xmpmeta/>")),
    createChunk("tEXt", latin1("Author\0Ann")),
    ...rest,
  ]);
}

const typesOf = (png: Uint8Array) =>
  parsePng(png).chunks.map(({ type, data }) => /t$/i.test(type) ? String.fromCharCode(...data).split("\0")[0] : type);

test("removes place and generation parameters, and nothing else", () => {
  const png = tellingPng();
  const clean = removeImageMetadata(png);
  const removed = ["eXIf", "parameters", "Workflow", "XML:com.adobe.xmp"];
  expect(typesOf(clean)).toEqual(typesOf(png).filter((type) => !removed.includes(type!)));
  expect(typesOf(clean)).toContain("Author");
  expect(parsePngCard(clean).data.name).toBe("Fox");
  expect(removeImageMetadata(clean)).toBe(clean);
});

test("keeps the orientation without the place", () => {
  const found = parsePng(removeImageMetadata(tellingPng(6))).chunks.find(({ type }) => type === "eXIf")!;
  expect(found.data.length).toBe(26);
  expect(new DataView(found.data.buffer, found.data.byteOffset).getUint16(18)).toBe(6);
});

test("returns what isn't a whole PNG as it is", () => {
  const png = tellingPng();
  for (const bytes of [new Uint8Array(), latin1("GIF89a"), png.slice(0, -20), png.slice(0, 9)]) {
    expect(removeImageMetadata(bytes as Uint8Array<ArrayBuffer>)).toBe(bytes);
  }
});

test.each(["characters", "personas"])(
  "exported cards of %s have no place and no parameters, unless they're asked for",
  async (kind) => {
    await using app = await openTestApp();
    const form = new FormData();
    form.set("file", new File([tellingPng()], "Fox.png", { type: "image/png" }));
    const { id } = await (await app.post(`/api/${kind}/import`, form)).json();
    const read = async (query: string) =>
      new Uint8Array(await (await app.get(`/api/${kind}/${id}/export${query}`)).arrayBuffer());
    expect(typesOf(await read(""))).not.toContain("parameters");
    expect(typesOf(await read(""))).not.toContain("eXIf");
    expect(typesOf(await read("?image_metadata=keep"))).toEqual(expect.arrayContaining(["parameters", "eXIf"]));
    if (kind === "personas") return;
    expect(new TextDecoder("latin1").decode(await read("?format=charx"))).not.toContain("Steps: 20");
    const readAll = async (choice: object) => {
      const answer = await app.post("/api/export", { kind: "characters", ids: [id], format: "png", ...choice });
      return typesOf(
        Object.values(unzipSync(new Uint8Array(await answer.arrayBuffer())))[0] as Uint8Array<ArrayBuffer>,
      );
    };
    expect(await readAll({})).not.toContain("parameters");
    expect(await readAll({ image_metadata: "keep" })).toEqual(expect.arrayContaining(["parameters", "eXIf"]));
  },
);
