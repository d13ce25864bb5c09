import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChangeEvent } from "../../services/events/event_hub.ts";
import { cardUnder, sillyTavernCard, sillyTavernPng, sillyTavernReads } from "../helpers/files/cards.ts";
import { fixtureImage } from "../helpers/files/image_files.ts";
import { dataUrl, noise, picture } from "../helpers/files/pictures.ts";
import { makeRgbaPng, pngChunk, pngFile, readPng } from "../helpers/files/png_files.ts";
import { filesBelow } from "../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const ann = { name: "Ann", description: "{{user}} is a sailor." };
const put = (id: string, body: Record<string, unknown> = ann, headers: Record<string, string> = {}) =>
  app.put(`/api/personas/${id}`, body, { headers });
const putAvatar = (id: string, bytes: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  app.put(`/api/personas/${id}/avatar`, bytes, { headers: { "Content-Type": "image/png", ...headers } });
const list = async () => await (await app.get("/api/personas")).json();
const codeOf = async (response: Response) => [response.status, (await response.json()).error.code];
const fileOf = (name: string) => `${app.dataDir}/personas/${name}`;

test("a persona is created, changed, listed by name, and still exists after a restart", async () => {
  const created = await put("p1");
  expect(created.status).toBe(201);
  expect(await created.json()).toEqual({ id: "p1", ...ann, has_avatar: false, updated_at: expect.any(String) });
  expect((await put("p2", { name: "Ada" })).status).toBe(201);
  const changed = await put("p1", { name: "Anna" });
  expect([changed.status, await changed.json()]).toMatchObject([200, { name: "Anna", description: ann.description }]);
  await put("p1", { name: "Zoe", description: null });
  await app.restart();
  expect((await list()).map(({ name }: { name: string }) => name)).toEqual(["Ada", "Zoe"]);
  expect(await (await app.get("/api/personas/p1")).json()).toMatchObject({ name: "Zoe", description: "" });
  expect(await codeOf(await app.get("/api/personas/none"))).toEqual([404, "not_found"]);
});

test("the place of its description is kept, also in its card, until it's changed or removed", async () => {
  const read = async (id = "p1") => (await (await app.get(`/api/personas/${id}`)).json()).placement;
  const placement = { position: "at_depth", depth: 3, role: "user" };
  await put("p1", { ...ann, placement });
  expect(await read()).toEqual(placement);
  await put("p1", { name: "Anna" });
  await app.restart();
  expect(await read()).toEqual(placement);
  const card = new Uint8Array(await (await app.get("/api/personas/p1/export")).arrayBuffer());
  const { id } = await (await importFile(card)).json();
  expect(await read(id)).toEqual(placement);
  await put("p1", { name: "Anna", placement: { position: "none" } });
  expect(await read()).toEqual({ position: "none", depth: 2, role: "system" });
  await put("p1", { name: "Anna", placement: null });
  expect(await read()).toBeUndefined();
  expect((await put("p1", { name: "Anna", placement: { position: "elsewhere" } })).status).toBe(400);
});

test("new chats with a character have its persona, or else the default one, unless they say which", async () => {
  for (const id of ["fox", "owl"]) {
    const card = { spec: "chara_card_v3", spec_version: "3.0", data: { name: id, first_mes: "{{user}}?" } };
    expect((await app.put(`/api/characters/${id}`, { card })).ok).toBe(true);
  }
  // As large as a card that is read beside the serving thread.
  await put("ann", { name: "Ann", description: "あ".repeat(200_000), character_ids: ["fox", "cat"] });
  await put("bea", { name: "Bea", description: "" });
  await put("ann", { name: "Ann" });
  await app.restart();
  await app.patch("/api/settings", { default_persona_id: "bea" });
  const begin = async (character_ids: string[], more = {}) => {
    const { persona_id, messages } = await (await app.post("/api/conversations", { character_ids, ...more })).json();
    return [persona_id, messages[0]?.content];
  };
  expect(await begin(["fox"])).toEqual(["ann", "Ann?"]);
  expect(await begin(["owl"])).toEqual(["bea", "Bea?"]);
  expect(await begin(["fox", "owl"])).toEqual(["bea", "Bea?"]);
  expect(await begin(["fox"], { persona_id: "bea" })).toEqual(["bea", "Bea?"]);
  expect((await begin(["fox"], { persona_id: null }))[0]).toBeUndefined();
  expect((await begin([]))[0]).toBeUndefined();
  await put("ann", { name: "Ann", character_ids: null });
  expect(await begin(["fox"])).toEqual(["bea", "Bea?"]);
  expect((await put("ann", { name: "Ann", character_ids: ["a/b"] })).status).toBe(400);
});

test("is stored as a V2 card that other programs read as a character", async () => {
  await put("p1");
  const card = JSON.parse(await Deno.readTextFile(fileOf("p1.json")));
  expect(card).toMatchObject({
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      ...ann,
      personality: "",
      scenario: "",
      first_mes: "",
      mes_example: "",
      system_prompt: "",
      alternate_greetings: [],
      creator_notes: expect.stringContaining("persona"),
      extensions: { "parlor/persona": { version: 1 } },
    },
  });
  expect((await putAvatar("p1", picture(3))).status).toBe(200);
  const file = await Deno.readFile(fileOf("p1.png"));
  expect(cardUnder(file, "chara")).toMatchObject(card);
  expect(cardUnder(file, "ccv3")).toBeUndefined();
  expect(sillyTavernReads(file).data).toMatchObject(ann);
  expect(await filesBelow(`${app.dataDir}/personas`)).toEqual([fileOf("p1.png")]);
});

test("the image is optional; a new text keeps the image, a new image the text", async () => {
  await put("p1");
  expect(await codeOf(await app.get("/api/personas/p1/avatar"))).toEqual([404, "not_found"]);
  const given = makeRgbaPng(9, 5, (x, y) => [x * 20, y * 40, 7, 255]);
  const saved = await putAvatar("p1", given);
  expect(await saved.json()).toMatchObject({ ...ann, has_avatar: true });
  await put("p1", { name: "Anna" });
  const fetched = await app.get("/api/personas/p1/avatar");
  expect(fetched.headers.get("content-type")).toBe("image/png");
  const bytes = new Uint8Array(await fetched.arrayBuffer());
  expect(readPng(bytes)).toEqual(readPng(given));
  expect(cardUnder(bytes, "chara").data).toMatchObject({ ...ann, name: "Anna" });
  for (const name of ["quarters.jpg", "quarters_lossy.webp"] as const) {
    expect((await putAvatar("p1", fixtureImage(name), { "Content-Type": "image/webp" })).status).toBe(200);
    const png = readPng(new Uint8Array(await (await app.get("/api/personas/p1/avatar")).arrayBuffer()));
    expect([png.width, png.height]).toEqual([48, 32]);
  }
  expect(await (await app.get("/api/personas/p1")).json()).toMatchObject({ name: "Anna", has_avatar: true });
});

test("fields that other programs add to the card survive a change", async () => {
  const foreign = { extensions: { "x/y": [1], "parlor/persona": { version: 1, position: 4 } }, tags: ["me"], odd: 5 };
  const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Old", description: "old", ...foreign } };
  await Deno.writeTextFile(fileOf("p1.json"), JSON.stringify(card));
  await put("p1");
  expect(JSON.parse(await Deno.readTextFile(fileOf("p1.json"))).data).toMatchObject({ ...ann, ...foreign });
});

test("a card file in the folder is a persona under any name; a broken one is marked", async () => {
  await put("p1");
  await Deno.copyFile(fileOf("p1.json"), fileOf("Das bin ich!.json"));
  await Deno.writeTextFile(fileOf("broken.json"), "{");
  await Deno.symlink("/etc/hostname", fileOf("link.json"));
  const all = await list();
  expect(all.find(({ id }: { id: string }) => id === "broken")).toMatchObject({ unreadable: true });
  const found = all.filter(({ id }: { id: string }) => id !== "broken");
  expect(found.map(({ id }: { id: string }) => id).sort()).toEqual([expect.stringMatching(/^p-[0-9a-f]{24}$/), "p1"]);
  const { id } = found.find((one: { id: string }) => one.id !== "p1");
  expect((await put(id, { name: "Me" })).status).toBe(200);
  expect(JSON.parse(await Deno.readTextFile(fileOf("Das bin ich!.json"))).data.name).toBe("Me");
  expect(await codeOf(await app.get("/api/personas/broken"))).toEqual([422, "unprocessable"]);
  await Deno.remove(fileOf("Das bin ich!.json"));
  expect(await list()).toHaveLength(2);
});

test("If-Match guards text, image and deletion", async () => {
  const tag = (await put("p1")).headers.get("etag")!;
  const now = (await put("p1", { name: "Anna" }, { "If-Match": tag })).headers.get("etag")!;
  expect((await app.get("/api/personas/p1")).headers.get("etag")).toBe(now);
  const stale = { "If-Match": tag };
  expect(await codeOf(await put("p1", ann, stale))).toEqual([412, "revision_mismatch"]);
  expect((await putAvatar("p1", picture(), stale)).status).toBe(412);
  expect((await app.delete("/api/personas/p1", { headers: stale })).status).toBe(412);
  expect((await put("new", ann, stale)).status).toBe(412);
  const pictured = (await putAvatar("p1", picture(), { "If-Match": now })).headers.get("etag")!;
  expect(pictured).not.toBe(now);
  expect((await app.delete("/api/personas/p1", { headers: { "If-Match": pictured } })).status).toBe(204);
});

test("a deleted one is encrypted in the trash, and restored with its image or deleted permanently", async () => {
  await put("p1", { name: "Needle-7f3a", description: "Needle-7f3a" });
  await putAvatar("p1", noise(200, 200));
  const file = await Deno.readFile(fileOf("p1.png"));
  const told: ChangeEvent[] = [];
  const end = app.services.events.subscribe((event) => void told.push(event));
  expect((await app.delete("/api/personas/p1")).status).toBe(204);
  expect(told).toEqual([{ kind: "persona", id: "p1" }, { kind: "trash", id: "trash" }]);
  end();
  expect((await app.get("/api/personas/p1")).status).toBe(404);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "persona", title: "Needle-7f3a" });
  for (const path of await filesBelow(`${app.dataDir}/trash`)) {
    expect(new TextDecoder("latin1").decode(await Deno.readFile(path))).not.toContain("IHDR");
  }
  await (await app.services.personas()).put("p1", { name: "Newer" });
  expect(await codeOf(await app.post(`/api/trash/${item.id}/restore`))).toEqual([409, "conflict"]);
  await app.delete("/api/personas/p1");
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBe(204);
  expect(await Deno.readFile(fileOf("p1.png"))).toEqual(file);
  await app.delete("/api/trash");
  expect(await filesBelow(`${app.dataDir}/trash`)).toEqual([]);
});

test.each([
  ["no name", { description: "x" }],
  ["an empty name", { name: " " }],
  ["a name that is none", { name: 5 }],
  ["a name of a page", { name: "x".repeat(201) }],
])("rejects %s", async (_name, body) => {
  expect(await codeOf(await put("p1", body))).toEqual([400, "invalid_request"]);
  expect(await list()).toEqual([]);
});

test(
  "IDs can't differ only in case, and existing ones aren't overwritten",
  { tags: ["P01"] },
  async () => {
    await put("p1");
    expect(await codeOf(await put("P1"))).toEqual([409, "conflict"]);
    await Deno.symlink(`${app.dataDir}/storage-key`, fileOf("link.json"));
    expect(await codeOf(await put("link"))).toEqual([409, "conflict"]);
    expect((await Deno.lstat(fileOf("link.json"))).isSymlink).toBe(true);
  },
);

test.each([
  ["SVG", "image/svg+xml", new TextEncoder().encode("<svg/>".padEnd(60)), 422],
  ["a PNG without pixels", "image/png", pngFile(pngChunk("IEND")), 422],
  ["a picture's data URL", "image/png", new TextEncoder().encode(dataUrl(picture())), 422],
  ["a picture called text", "application/json", picture(), 415],
])("rejects %s as a persona's image", { tags: ["P08"] }, async (_name, type, bytes, status) => {
  await put("p1");
  expect((await putAvatar("p1", bytes, { "Content-Type": type })).status).toBe(status);
  expect(await (await app.get("/api/personas/p1")).json()).toMatchObject({ has_avatar: false });
});

test("concurrently saved images are complete and match their card", { tags: ["P10"] }, async () => {
  await put("p1");
  const pictures = [picture(1, 64), picture(2, 64), picture(3, 64)];
  await Promise.all([...pictures.map((bytes) => putAvatar("p1", bytes)), put("p1", { name: "Anna" })]);
  const bytes = new Uint8Array(await (await app.get("/api/personas/p1/avatar")).arrayBuffer());
  expect(pictures.map(readPng)).toContainEqual(readPng(bytes));
  expect(cardUnder(bytes, "chara").data.name).toBe("Anna");
  expect(await (await app.get("/api/personas/p1")).json()).toMatchObject({ name: "Anna", has_avatar: true });
});

test("a temporarily unreadable persona fails the list, and is listed again when it can be read", async () => {
  await put("p1");
  await app.restart();
  const open = vi.spyOn(Deno, "open").mockRejectedValue(new Deno.errors.PermissionDenied("not now"));
  try {
    expect((await app.get("/api/personas")).status).toBe(500);
  } finally {
    open.mockRestore();
  }
  expect(await list()).toMatchObject([{ id: "p1", name: "Ann" }]);
});

test("the image is the persona's portable card, and may be sent as bytes of any type", async () => {
  await put("p1");
  expect((await putAvatar("p1", picture(), { "Content-Type": "application/octet-stream" })).status).toBe(200);
  const bytes = new Uint8Array(await (await app.get("/api/personas/p1/avatar")).arrayBuffer());
  expect(cardUnder(bytes, "chara")).toMatchObject({ spec: "chara_card_v2", spec_version: "2.0", data: ann });
});

const importFile = (content: Uint8Array | string, query = "") => {
  const form = new FormData();
  form.append("file", new Blob([content as Uint8Array<ArrayBuffer>]), "card");
  return app.request("POST", `/api/personas/import${query}`, form);
};
const exportOf = (id: string) => app.get(`/api/personas/${id}/export`);

test("its card is exported and imported again, with and without an image, with all fields", async () => {
  const foreign = { description: "Tall. {{user}} limps.", extensions: { other: { kept: [1] } }, tags: ["me"] };
  for (const hasPicture of [false, true]) {
    await put("p1");
    const mine = JSON.parse(await Deno.readTextFile(fileOf("p1.json")));
    await Deno.writeTextFile(
      fileOf("p1.json"),
      JSON.stringify(
        {
          ...mine,
          data: { ...mine.data, ...foreign, extensions: { ...mine.data.extensions, ...foreign.extensions } },
        },
        null,
        2,
      ),
    );
    if (hasPicture) expect((await putAvatar("p1", picture(3))).status).toBe(200);
    const file = await exportOf("p1");
    expect(file.headers.get("content-type")).toBe(hasPicture ? "image/png" : "application/json");
    expect(file.headers.get("content-disposition")).toContain(hasPicture ? "Ann.png" : "Ann.json");
    const bytes = await file.bytes();
    expect((await app.delete("/api/personas/p1")).status).toBe(204);
    await app.delete("/api/trash");

    const answer = await importFile(bytes);
    expect(answer.status).toBe(201);
    const { id, ...persona } = await answer.json();
    expect(persona).toMatchObject({ name: "Ann", description: foreign.description, has_avatar: hasPicture });
    expect(await (await exportOf(id)).bytes()).toEqual(bytes);
    if (hasPicture) expect(await (await app.get(`/api/personas/${id}/avatar`)).bytes()).toEqual(bytes);
  }
  expect(await codeOf(await exportOf("none"))).toEqual([404, "not_found"]);
});

test("name, image and description of a character's card are imported, rewritten for the user", async () => {
  const card = sillyTavernCard("Fox");
  card.data.description = "{{char}} met {{User}}. <BOT> knows <user>.";
  const swapped = await (await importFile(sillyTavernPng(card))).json();
  expect(swapped).toMatchObject({
    name: "Fox",
    has_avatar: true,
    description: "{{user}} met {{char}}. <USER> knows <BOT>.",
  });
  const { data } = cardUnder(await (await exportOf(swapped.id)).bytes(), "chara");
  expect(data).toMatchObject({
    first_mes: "",
    alternate_greetings: [],
    extensions: { "parlor/persona": { version: 1 } },
  });
  expect(data.character_book).toBeUndefined();
  const asItIs = await (await importFile(JSON.stringify(card), "?swap_names=false")).json();
  expect(asItIs).toMatchObject({ description: card.data.description, has_avatar: false });
});

test("rejects a file that isn't a persona with the reason and leaves nothing behind", async () => {
  const long = JSON.stringify({ name: "Long", description: "x".repeat(500_001), first_mes: "" });
  const cases: [Uint8Array | string, number, string][] = [
    ["{}", 422, "no name"],
    [picture(1), 422, "doesn't contain one"],
    ["PK\x03\x04", 422, "CHARX"],
    [long, 413, "500000"],
  ];
  for (const [content, status, reason] of cases) {
    const answer = await importFile(content);
    expect([answer.status, (await answer.json()).error.message]).toEqual([status, expect.stringContaining(reason)]);
  }
  expect(await list()).toEqual([]);
});
