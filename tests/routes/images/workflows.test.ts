import { afterEach, beforeEach, expect, test } from "vitest";
import { STARTER_WORKFLOW } from "../../../services/image_generation/comfyui/workflow_format.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
});
afterEach(() => app[Symbol.asyncDispose]());

const PATH = "/api/image/workflows";
const list = async () => await (await app.get(PATH)).json();
const drop = (name: string, text: string) => Deno.writeTextFile(`${app.dataDir}/workflows/${name}`, text);
const small = (text = "%prompt%") => ({ "6": { class_type: "CLIPTextEncode", inputs: { text, clip: ["6", 1] } } });

test("a built-in workflow can be read and not deleted", async () => {
  expect(await list()).toEqual([{
    id: "starter",
    name: "starter",
    builtin: true,
    placeholders: expect.arrayContaining(["prompt", "negative_prompt", "seed", "model", "width", "height"]),
  }]);
  const answer = await app.get(`${PATH}/starter`);
  expect(answer.headers.get("etag")).toMatch(/^"[\w-]+"$/);
  expect(await answer.json()).toEqual(STARTER_WORKFLOW);
  expect((await app.delete(`${PATH}/starter`)).status).toBe(409);
});

test("the owner's workflow replaces a built-in one until it is deleted", async () => {
  expect((await app.put(`${PATH}/starter`, small())).status).toBe(201);
  expect(await (await app.get(`${PATH}/starter`)).json()).toEqual(small());
  expect(await list()).toMatchObject([{ id: "starter", placeholders: ["prompt"], updated_at: expect.any(String) }]);
  expect((await app.delete(`${PATH}/starter`)).status).toBe(204);
  expect(await (await app.get(`${PATH}/starter`)).json()).toEqual(STARTER_WORKFLOW);
});

test("a saved workflow is a readable file that is returned unchanged, and changes are validated", async () => {
  const created = await app.put(`${PATH}/mine`, small("%prompt%, %style%"));
  expect(created.status).toBe(201);
  expect(JSON.parse(await Deno.readTextFile(`${app.dataDir}/workflows/mine.json`))).toEqual(small("%prompt%, %style%"));
  expect(await list()).toMatchObject([{ id: "mine", placeholders: ["prompt", "style"] }, { id: "starter" }]);
  const tag = created.headers.get("etag")!;
  expect((await app.put(`${PATH}/mine`, small("a"), { headers: { "if-match": tag } })).status).toBe(200);
  expect((await app.put(`${PATH}/mine`, small("b"), { headers: { "if-match": tag } })).status).toBe(412);
  expect(await (await app.get(`${PATH}/mine`)).json()).toEqual(small("a"));
});

test("a file added to the folder appears, even under a name that isn't an ID", async () => {
  await drop("My Föxes (2).json", JSON.stringify(small()));
  const [mine] = await list();
  expect(mine).toMatchObject({ name: "My Föxes (2)", id: expect.stringMatching(/^w-[0-9a-f]{24}$/) });
  expect(await (await app.get(`${PATH}/${mine.id}`)).json()).toEqual(small());
  expect((await app.put(`${PATH}/${mine.id}`, small("x"))).status).toBe(200);
  expect(JSON.parse(await Deno.readTextFile(`${app.dataDir}/workflows/My Föxes (2).json`))).toEqual(small("x"));
});

test("an unusable file stays in the list with a reason", async () => {
  await drop("page.json", JSON.stringify({ last_node_id: 9, nodes: [], links: [], version: 0.4 }));
  await drop("torn.json", '{"3":');
  await drop("notes.txt", "no workflow");
  await Deno.symlink("/etc/hostname", `${app.dataDir}/workflows/link.json`);
  expect(await list()).toMatchObject([
    { id: "page", problem: expect.stringContaining("Export (API)"), placeholders: [] },
    { id: "starter" },
    { id: "torn", problem: expect.stringContaining("isn't JSON") },
  ]);
  const broken = await app.get(`${PATH}/torn`);
  expect([broken.status, (await broken.json()).error.code]).toEqual([422, "unprocessable"]);
});

test.each([
  ["the page's format", { nodes: [{ id: 1 }], links: [], version: 1 }, "Export (API)"],
  ["an empty object", {}, "no nodes"],
  ["a list", [], "isn't a JSON object"],
  ["a node without a class", { "3": { inputs: {} } }, "node 3 has no class_type"],
  ["a link to nowhere", { "3": { class_type: "K", inputs: { model: ["4", 0] } } }, "linked to node 4"],
])("rejects %s with a reason", async (_what, body, words) => {
  const response = await app.put(`${PATH}/bad`, body);
  expect(response.status).toBe(422);
  expect((await response.json()).error.message).toContain(words);
  expect((await app.get(`${PATH}/bad`)).status).toBe(404);
});

test("a deleted workflow can be restored", async () => {
  await app.put(`${PATH}/mine`, small());
  expect((await app.delete(`${PATH}/mine`)).status).toBe(204);
  expect((await app.get(`${PATH}/mine`)).status).toBe(404);
  const [item] = await (await app.get("/api/trash")).json();
  expect(item).toMatchObject({ kind: "workflow", title: "mine" });
  expect((await app.post(`/api/trash/${item.id}/restore`)).status).toBeLessThan(300);
  expect(await (await app.get(`${PATH}/mine`)).json()).toEqual(small());
});

test("rejects IDs that differ only in case, words of paths and unknown IDs", async () => {
  await app.put(`${PATH}/mine`, small());
  expect((await app.put(`${PATH}/MINE`, small())).status).toBe(409);
  expect((await app.put(`${PATH}/search`, small())).status).toBe(400);
  expect((await app.get(`${PATH}/other`)).status).toBe(404);
  expect((await app.delete(`${PATH}/other`)).status).toBe(404);
});

test("a deeply nested workflow in the folder is named in the list and doesn't affect others", {
  tags: ["P07"],
}, async () => {
  const nested = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
  await drop("deep.json", `{"1":{"class_type":"K","inputs":{"a":${nested}}}}`);
  await drop("fine.json", JSON.stringify(small()));
  expect(await list()).toMatchObject([
    { id: "deep", problem: expect.stringContaining("nested deeper") },
    { id: "fine", placeholders: ["prompt"] },
    { id: "starter" },
  ]);
  expect((await app.get(`${PATH}/deep`)).status).toBe(422);
  expect((await app.delete(`${PATH}/deep`)).status).toBe(204);
});
