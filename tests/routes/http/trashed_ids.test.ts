import { expect, test } from "vitest";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { wavFile } from "../../helpers/fakes/fake_speech.ts";
import { makeRgbaPng } from "../../helpers/files/png_files.ts";

const PICTURE = makeRgbaPng(8, 8, (x, y) => [x, y, 9, 255]);
const PNG = { headers: { "content-type": "image/png" } };
const book = { name: "Book", book: { entries: [{ keys: ["sea"], content: "Salt." }] } };
const workflow = { "1": { class_type: "SaveImage", inputs: { text: "%prompt%" } } };

/** Adds a voice or a document, which are POSTed. @returns Its path */
async function addFile(app: TestApp, path: string, form: Record<string, Blob | string>): Promise<string> {
  const body = new FormData();
  for (const [name, value] of Object.entries(form)) body.append(name, value);
  const { id } = await (await app.post(path, body)).json();
  return `${path}/${id}`;
}

/** Each kind: how one is made, and every way of writing to its ID. */
const KINDS: [
  kind: string,
  add: (app: TestApp) => Promise<string>,
  writes: ((app: TestApp, path: string) => Promise<Response>)[],
][] = [
  ["attachment", putting("/api/attachments/a.png", PICTURE, PNG), [
    (app, path) => app.put(path, PICTURE, PNG),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["character", putting("/api/characters/fox", { card: { name: "Fox", description: "" } }), [
    (app, path) => app.put(path, { card: { name: "Other", description: "" } }),
    (app, path) => app.put(`${path}/avatar`, PICTURE, PNG),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["persona", putting("/api/personas/ann", { name: "Ann" }), [
    (app, path) => app.put(path, { name: "Other" }),
    (app, path) => app.put(`${path}/avatar`, PICTURE, PNG),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["lorebook", putting("/api/lorebooks/sea", book), [(app, path) => app.put(path, { ...book, name: "Other" })]],
  ["preset", putting("/api/presets/calm", {}), [(app, path) => app.put(path, {})]],
  ["memory", putting("/api/memories/tea", { text: "Likes tea." }), [
    (app, path) => app.put(path, { text: "Likes coffee." }),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["workflow", putting("/api/image/workflows/draw", workflow), [
    (app, path) => app.put(path, workflow),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["voice", (app) => addFile(app, "/api/voices", { audio: new Blob([wavFile(0.5)]), name: "Aunt" }), [
    (app, path) => app.patch(path, { name: "Other" }),
    (app, path) => app.post(`${path}/versions/1/restore`),
  ]],
  ["document", (app) => addFile(app, "/api/documents", { file: new File(["Tea"], "tea.txt") }), [
    (app, path) => app.post(path.replace("/api/documents/", "/api/documents?id="), { url: "https://example.com/" }),
    (app, path) => app.post(`${path}/read`, {}),
  ]],
];

function putting(path: string, body: Parameters<TestApp["put"]>[1], options?: { headers: Record<string, string> }) {
  return async (app: TestApp) => {
    expect((await app.put(path, body, options)).status).toBe(201);
    return path;
  };
}

test.each(KINDS)("the ID of a %s in the trash is refused for writes until it is purged", async (kind, add, writes) => {
  await using app = await openTestApp();
  const path = await add(app);
  expect((await app.delete(path)).status).toBe(204);
  const expectRefused = async () => {
    const [item] = await (await app.get("/api/trash")).json();
    expect(item).toMatchObject({ kind });
    for (const [i, write] of writes.entries()) {
      const refused = await write(app, path);
      const { error } = await refused.json();
      expect([refused.status, error.code, error.trash_id], `write ${i}`).toEqual([409, "in_trash", item.id]);
      expect(error.message).toContain(`/api/trash/${item.id}/restore`);
    }
    return item.id;
  };
  await expectRefused();
  await app.restart();
  const id = await expectRefused();
  for (const answer of [await app.get(path), await app.delete(path)]) expect(answer.status).toBe(404);
  expect((await app.post(`/api/trash/${id}/restore`)).status).toBe(204);
  expect((await app.get(path)).status).toBe(200);

  await app.delete(path);
  await expectRefused();
  await app.delete("/api/trash");
  for (const write of writes) expect(await (await write(app, path)).text()).not.toContain("in_trash");
});

test("what came by hand under the ID of something in the trash can be changed", async () => {
  await using app = await openTestApp();
  await app.put("/api/personas/ann", { name: "Ann" });
  await app.delete("/api/personas/ann");
  await Deno.writeTextFile(`${app.dataDir}/personas/ann.json`, JSON.stringify({ name: "Anna", description: "" }));
  expect((await app.put("/api/personas/ann", { name: "Annie" })).status).toBe(200);
});
