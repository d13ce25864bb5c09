import { Buffer } from "node:buffer";
import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import { afterEach, beforeEach, expect, test } from "vitest";
import { plainPng, sillyTavernCard, sillyTavernReads } from "../../helpers/files/cards.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp({ config: { builtinAppInstalled: true } });
});
afterEach(() => app[Symbol.asyncDispose]());

const JOY = "assets/emotion/image/joy.png";
const HALL = "assets/background/image/hall.webp";
const asset = (type: string, path: string, name: string) => ({
  ...{ type, uri: `embeded://${path}`, name, ext: path.split(".").pop() },
});
const noise = (length: number) => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
};

/** A file as RisuAI writes it. */
function risuFiles(icon: string, picture: Uint8Array): Record<string, Uint8Array> {
  const { data } = sillyTavernCard("Fox");
  const assets = [asset("emotion", JOY, "joy"), asset("icon", icon, "main"), asset("background", HALL, "hall")];
  const link = { type: "x_theme", uri: "https://example.org/theme.mp3", name: "theme", ext: "mp3" };
  const card = { spec: "chara_card_v3", spec_version: "3.0", data: { ...data, assets: [...assets, link] } };
  return {
    "card.json": strToU8(JSON.stringify(card)),
    [icon]: picture,
    [JOY]: plainPng(4, 4),
    [HALL]: noise(2_000),
    "x_meta/joy.json": strToU8('{"type":"PNG"}'),
    "module.risum": noise(300),
    "assets/other/audio/hum.ogg": noise(1_000),
  };
}

async function importFiles(files: Record<string, Uint8Array>): Promise<{ id: string; card: { data: CardData } }> {
  const form = new FormData();
  form.append("file", new Blob([zipSync(files) as Uint8Array<ArrayBuffer>]), "fox.charx");
  const answer = await app.request("POST", "/api/characters/import", form);
  expect(answer.status).toBe(201);
  return await answer.json();
}
interface CardData {
  name: string;
  assets: { type: string; uri: string }[];
}
async function exported(id: string, format: string): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await app.get(`/api/characters/${id}/export?format=${format}`);
  const bytes = await answer.bytes();
  expect(Number(answer.headers.get("content-length"))).toBe(bytes.length);
  return bytes;
}
const charxOf = async (id: string) => unzipSync(await exported(id, "charx"));
const dataIn = (files: Record<string, Uint8Array>): CardData => JSON.parse(strFromU8(files["card.json"]!)).data;
const names = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(`${app.dataDir}/${folder}`))).map(({ name }) => name).sort();
const jpeg = () => Deno.readFile(new URL("../../fixtures/images/quarters.jpg", import.meta.url));
const setAvatar = (id: string, png: Uint8Array<ArrayBuffer>) =>
  app.put(`/api/characters/${id}/avatar`, png, { headers: { "content-type": "image/png" } });

test("every file of a CHARX is unchanged and in its place after the name was edited", async () => {
  const came = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  const { id, card } = await importFiles(came);
  expect(await names("characters")).toEqual([`${id}.assets.zip`, `${id}.png`]);
  expect((await (await app.get(`/api/characters/${id}`)).json()).has_assets).toBe(true);
  const edited = { ...card, data: { ...card.data, name: "Vixen" } };
  expect((await app.put(`/api/characters/${id}`, { card: edited })).status).toBe(200);

  const { "card.json": text, ...others } = await charxOf(id);
  const { "card.json": _, ...wanted } = came;
  expect(others).toEqual(wanted);
  expect(dataIn({ "card.json": text! })).toMatchObject({ name: "Vixen", assets: dataIn(came).assets });
  expect(await charxOf((await importFiles({ "card.json": text!, ...others })).id)).toEqual({
    "card.json": text,
    ...others,
  });
});

test("an icon that isn't a PNG is kept next to its converted image until another one replaces it", async () => {
  const path = "assets/icon/image/face.jpg";
  const came = risuFiles(path, await jpeg());
  const { id } = await importFiles(came);
  const before = await charxOf(id);
  expect(before[path]).toEqual(came[path]);
  expect(Object.keys(before).filter((name) => name.startsWith("assets/icon"))).toEqual([path]);

  expect((await setAvatar(id, plainPng(20, 30))).status).toBe(200);
  const after = await charxOf(id);
  expect(Object.keys(after)).not.toContain(path);
  const icon = dataIn(after).assets.find(({ type }) => type === "icon")!;
  expect(after[icon.uri.replace("embeded://", "")]).toEqual(plainPng(20, 30));
  expect([after[JOY], after[HALL], after["module.risum"]]).toEqual([came[JOY], came[HALL], came["module.risum"]]);
});

test("PNG and JSON cards list only remote assets, because they contain no files", async () => {
  const { id } = await importFiles(risuFiles("assets/icon/image/face.png", plainPng(8, 12)));
  const kept = [
    { type: "icon", uri: "ccdefault:", name: "main", ext: "png" },
    { type: "x_theme", uri: "https://example.org/theme.mp3", name: "theme", ext: "mp3" },
  ];
  expect(sillyTavernReads(await exported(id, "png")).data.assets).toEqual(kept);
  expect(JSON.parse(strFromU8(await exported(id, "json"))).data.assets).toEqual(kept);
});

test("they are encrypted in the trash with their card, and restored or deleted with it", async () => {
  const came = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  const { id } = await importFiles(came);
  expect((await app.delete(`/api/characters/${id}`)).status).toBe(204);
  expect(await names("characters")).toEqual([]);
  for (const name of await names("trash")) {
    expect(strFromU8(await Deno.readFile(`${app.dataDir}/trash/${name}`), true)).not.toContain("x_meta");
  }
  const [entry] = await (await app.get("/api/trash")).json();
  expect((await app.post(`/api/trash/${entry.id}/restore`)).status).toBe(204);
  expect((await charxOf(id))["module.risum"]).toEqual(came["module.risum"]);
  expect(await names("trash")).toEqual([]);

  await app.delete(`/api/characters/${id}`);
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect(await names("trash")).toEqual([]);
  expect((await app.put(`/api/characters/${id}`, { card: { name: "Another", description: "" } })).status).toBe(201);
  expect(Object.keys(await charxOf(id))).toEqual(["card.json"]);
});

test("a full export contains them and imports them again", async () => {
  const came = risuFiles("assets/icon/image/face.jpg", await jpeg());
  const { id } = await importFiles(came);
  const everything = await (await app.get("/api/export")).bytes();
  const { "card.json": _, ...wanted } = came;
  expect(unzipSync(unzipSync(everything)[`characters/${id}.charx`]!)).toMatchObject(wanted);

  await using other = await openTestApp({ config: { builtinAppInstalled: true } });
  const answer = await other.request("POST", "/api/import?kind=parlor", everything as Uint8Array<ArrayBuffer>, {
    headers: { "content-type": "application/zip" },
  });
  expect(answer.status).toBe(202);
  const job = await answer.json();
  const stateOf = async () => (await (await other.get(`/api/jobs/${job.id}`)).json()).state;
  await expect.poll(stateOf).toBe("done");
  const again = await (await other.get(`/api/characters/${id}/export?format=charx`)).bytes();
  expect(unzipSync(again)).toMatchObject(wanted);
});

/** A form with one file, in chunks of 1 MiB. */
function streamed(parts: Uint8Array[], ends: { before?: string; after?: string } = {}): ReadableStream<Uint8Array> {
  const head = `${ends.before ?? ""}--b\r\nContent-Disposition: form-data; name="file"; filename="fox.charx"\r\n\r\n`;
  return ReadableStream.from((async function* () {
    yield strToU8(head);
    yield* parts;
    yield strToU8(ends.after ?? "\r\n--b--\r\n");
  })());
}
const sendForm = (body: ReadableStream<Uint8Array>) =>
  app.request("POST", "/api/characters/import", body, {
    headers: { "content-type": "multipart/form-data; boundary=b" },
  });
const inPieces = (bytes: Uint8Array) =>
  Array.from({ length: Math.ceil(bytes.length / 2 ** 20) }, (_, n) => bytes.subarray(n * 2 ** 20, (n + 1) * 2 ** 20));

test("a CHARX of 60 MB is imported, exported and part of a full export, without temporary files", async () => {
  const came = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  for (let n = 0; n < 6; n++) came[`assets/emotion/image/large-${n}.png`] = noise(10_000_000);
  const answer = await sendForm(streamed(inPieces(zipSync(came, { level: 0 }))));
  expect(answer.status).toBe(201);
  const { id } = await answer.json();
  const { "card.json": _, ...wanted } = came;
  const { "card.json": card, ...others } = await charxOf(id);
  expect(Object.keys(others).sort()).toEqual(Object.keys(wanted).sort());
  for (const [path, bytes] of Object.entries(wanted)) expect(Buffer.compare(others[path]!, bytes), path).toBe(0);
  const everything = unzipSync(await (await app.get("/api/export")).bytes());
  expect(Object.keys(unzipSync(everything[`characters/${id}.charx`]!)).length).toBe(Object.keys(came).length);
  expect(card).toBeDefined();
  expect(await names("cache/arriving")).toEqual([]);
});

test("applies the size limit of cards to files that aren't CHARX", { tags: ["P03"] }, async () => {
  const png = new Uint8Array(21 * 2 ** 20);
  png.set(plainPng());
  const refused = await sendForm(streamed(inPieces(png)));
  expect([refused.status, (await refused.json()).error.code]).toEqual([413, "too_large"]);
  expect(await names("characters")).toEqual([]);
});

test(
  "a form that breaks off or continues after a CHARX gets 400 and stores nothing",
  { tags: ["P04"] },
  async () => {
    const charx = zipSync(risuFiles("assets/icon/image/face.png", plainPng(8, 12)));
    const part = (name: string) => `\r\n--b\r\nContent-Disposition: form-data; name="${name}"; filename="x"\r\n\r\nPK`;
    for (const after of ["", "\r\n--", `${part("file")}\r\n--b--`, part("other"), part("x").repeat(60) + "\r\n--b--"]) {
      const answer = await sendForm(streamed([charx], { after }));
      expect([answer.status, (await answer.json()).error.code], after.slice(0, 80)).toEqual([400, "invalid_request"]);
    }
    expect(await names("characters")).toEqual([]);
    expect(await names("cache/arriving")).toEqual([]);
    const text = (name: string) => part(name).replace('; filename="x"', "");
    const before = text("note").slice(2) + "\r\n";
    expect((await sendForm(streamed([charx], { before, after: `${text("more")}\r\n--b--` }))).status).toBe(201);
  },
);

test("a reader that disconnects in the middle of a CHARX leaves no file open", async () => {
  const came = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  const { id } = await importFiles({ ...came, "assets/other/x": noise(2_000_000) });
  const opened = () => Array.from(Deno.readDirSync("/proc/self/fd")).length;
  const before = opened();
  for (let n = 0; n < 20; n++) {
    const head = await app.request("HEAD", `/api/characters/${id}/export?format=charx`);
    expect(Number(head.headers.get("content-length"))).toBeGreaterThan(2_000_000);
    const { body } = await app.get(`/api/characters/${id}/export?format=charx`);
    if (n % 2 === 0) await body!.cancel();
    else {
      const reader = body!.getReader();
      await reader.read();
      await reader.cancel();
    }
  }
  // The last connections end a little later.
  await expect.poll(opened).toBeLessThan(before + 10);
});

test("names that lead out of the folder are dropped, and a CHARX bomb is rejected", async () => {
  const came = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  const { id } = await importFiles({ ...came, "../../up.sh": strToU8("x"), "/etc/x": strToU8("x"), "a\\b": noise(3) });
  expect(Object.keys(await charxOf(id)).sort()).toEqual(Object.keys(came).sort());
  const form = new FormData();
  const large = zipSync({ ...came, "assets/other/zero": new Uint8Array(100 * 1024 * 1024) });
  form.append("file", new Blob([large as Uint8Array<ArrayBuffer>]), "fox.charx");
  const refused = await app.request("POST", "/api/characters/import", form);
  expect([refused.status, (await refused.json()).error.code]).toEqual([413, "too_large"]);
  expect(await names("characters")).toEqual([`${id}.assets.zip`, `${id}.png`]);
});

test("a card whose assets contain no icon keeps its image through a CHARX", async () => {
  const { "card.json": text, ...came } = risuFiles("assets/icon/image/face.png", plainPng(8, 12));
  const { spec, spec_version, data } = JSON.parse(strFromU8(text!));
  const card = { spec, spec_version, data: { ...data, assets: [asset("emotion", JOY, "joy")] } };
  const { id } = await importFiles({ "card.json": strToU8(JSON.stringify(card)), [JOY]: came[JOY]! });
  await setAvatar(id, plainPng(20, 30));
  const again = await importFiles(await charxOf(id));
  const picture = await (await app.get(`/api/characters/${again.id}/avatar`)).bytes();
  expect(new DataView(picture.buffer).getUint32(16)).toBe(20);
});
