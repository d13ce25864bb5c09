/** A data directory with sealed data of every kind, and the same data as clients see it. */
import { strToU8, zipSync } from "fflate";
import { ask, gather, useModel } from "./chat_client.ts";
import { enrol } from "./enrolled.ts";
import { openFakeLlm } from "../fakes/llm/fake_llm.ts";
import { wavFile } from "../fakes/fake_speech.ts";
import { makeRgbaPng } from "../files/png_files.ts";
import { range, say } from "./stored_chat.ts";
import type { TestApp } from "./test_app.ts";

/** Creates one resource of every kind. */
export async function fillHouse(app: TestApp): Promise<void> {
  await using llm = await openFakeLlm({ pieces: ["one ", "two"] });
  await useModel(app, llm, { model: "m", api_key: "sk-house" });
  const settings = { display_name: "Ann", auto_title: false };
  await expectOk(app.patch("/api/settings", settings));
  await expectOk(app.put("/api/conversations/c1", { title: "First", messages: [say("m0")] }));
  await expectOk(app.put("/api/conversations/c1", { title: "Second", messages: range(80).map((i) => say(`n${i}`)) }));
  await expectOk(app.patch("/api/conversations/c1/messages/n3", { content: "edited" }));
  await expectOk(app.delete("/api/conversations/c1/messages/n4"));
  await expectOk(app.patch("/api/conversations/c1/draft", { draft: "half a thought" }));
  await expectOk(app.post("/api/conversations/c1/queue", { message: { content: "waits" } }));
  await gather(await ask(app, 1, { conversation_id: "c2" }));
  await gather(await ask(app, 1, { conversation_id: "c2", action: "regenerate" }));
  await expectOk(app.put("/api/conversations/gone", { title: "Gone", messages: [say("g0")] }));
  await expectOk(app.delete("/api/conversations/gone"));
  for (const id of ["p1", "p2"]) await expectOk(app.put(`/api/personas/${id}`, { name: `Persona ${id}` }));
  await expectOk(app.delete("/api/personas/p2"));
  for (const id of ["h1", "h2"]) {
    await expectOk(app.put(`/api/characters/${id}`, { card: { name: `Character ${id}` } }));
  }
  await expectOk(app.delete("/api/characters/h2"));
  for (const name of ["Kept", "Gone"]) {
    const card = strToU8(JSON.stringify({ name, description: "came in a CHARX" }));
    const files = zipSync({ "card.json": card, "module.risum": new Uint8Array(100_000) }, { level: 0 });
    const form = new FormData();
    form.append("file", new Blob([files as Uint8Array<ArrayBuffer>]), "risu.charx");
    const { id } = await (await expectOk(app.post("/api/characters/import", form))).json();
    if (name === "Gone") await expectOk(app.delete(`/api/characters/${id}`));
  }
  for (const name of ["a.png", "b.png"]) {
    const picture = makeRgbaPng(300, 300, (x, y) => [x * y % 251, (x * 7 + y * 13) % 253, x ^ y, 255]);
    await expectOk(app.put(`/api/attachments/${name}`, picture, { headers: { "content-type": "image/png" } }));
  }
  await expectOk(app.delete("/api/attachments/b.png"));
  await expectOk(app.put("/api/stt/config", { base_url: "http://127.0.0.1:9", model: "w", api_key: "sk-hearing" }));
  await expectOk(app.put("/api/tts/config", { base_url: "http://127.0.0.1:9", model: "t", api_key: "sk-speech" }));
  for (const name of ["Aunt", "Uncle"]) {
    const form = new FormData();
    form.append("audio", new Blob([wavFile(0.5)]), "x.wav");
    form.append("name", name);
    const { id } = await (await expectOk(app.post("/api/voices", form))).json();
    if (name === "Uncle") await expectOk(app.delete(`/api/voices/${id}`));
  }
  const book = { entries: [{ keys: ["sea"], content: "Salt." }] };
  for (const id of ["b1", "b2"]) await expectOk(app.put(`/api/lorebooks/${id}`, { name: `Book ${id}`, book }));
  for (const id of ["s1", "s2"]) await expectOk(app.put(`/api/presets/${id}`, { sampler: { temperature: 0.5 } }));
  await expectOk(app.delete("/api/lorebooks/b2"));
  await expectOk(app.delete("/api/presets/s2"));
  const painter = { id: "i1", name: "Painter", kind: "comfyui", base_url: "http://127.0.0.1:9", api_key: "sk-image" };
  await expectOk(app.put("/api/image/connections", painter));
  const workflow = { "1": { class_type: "SaveImage", inputs: { text: "%prompt%" } } };
  for (const id of ["w1", "w2"]) await expectOk(app.put(`/api/image/workflows/${id}`, workflow));
  await expectOk(app.delete("/api/image/workflows/w2"));
  const price = { prompt: 0.5, completion: 1.5 };
  await expectOk(app.put("/api/usage/prices", { connection_id: "double", model: "m", price }));
  await fillVersions(app);
  await enrol(app, "example.org");
}

/** Replaces one resource of every kind that has versions; some of them go to the trash. */
async function fillVersions(app: TestApp): Promise<void> {
  const picture = makeRgbaPng(30, 30, (x, y) => [x, y, 9, 255]);
  const [{ id: voice }] = await (await expectOk(app.get("/api/voices"))).json();
  for (const name of ["a.png", "c.png", "c.png"]) {
    await expectOk(app.put(`/api/attachments/${name}`, picture, { headers: { "content-type": "image/png" } }));
  }
  await expectOk(app.delete("/api/attachments/c.png"));
  await expectOk(app.patch(`/api/voices/${voice}`, { description: "a changed voice" }));
  const extensions = { fav: true, parlor: { folder: "House" } };
  await expectOk(app.put("/api/characters/h1", { card: { name: "Character h1", description: "changed", extensions } }));
  await expectOk(app.put("/api/personas/p1", { name: "Persona p1 changed" }));
  const workflow = { "1": { class_type: "SaveImage", inputs: { text: "changed" } } };
  await expectOk(app.put("/api/image/workflows/w1", workflow));
}

/** Returns everything that the API returns. */
export async function lookAround(app: TestApp): Promise<Record<string, unknown>> {
  const paths = [
    ...["/api/conversations", "/api/conversations/c1?variants=1", "/api/conversations/c2?variants=1"],
    ...[
      "/api/conversations/c1/queue",
      "/api/conversations/c1/revisions",
      "/api/conversations/c2/messages/a1/variants",
      "/api/connections",
    ],
    ...["/api/settings", "/api/personas", "/api/characters?view=full", "/api/trash", "/api/tts/config", "/api/voices"],
    ...["/api/lorebooks", "/api/lorebooks/b1", "/api/presets", "/api/presets/s1"],
    ...["/api/image/connections", "/api/image/workflows", "/api/image/workflows/w1"],
    ...["/api/auth/credentials", "/api/jobs", "/api/attachments/a.png"],
    ...["/api/usage", "/api/usage/prices", "/api/conversations/c2/usage"],
  ];
  const [{ id: voice }] = await (await expectOk(app.get("/api/voices"))).json();
  const versioned = ["/api/characters/h1", "/api/personas/p1", "/api/image/workflows/w1", `/api/voices/${voice}`];
  for (const path of versioned) paths.push(`${path}/versions`, `${path}/versions/1`);
  paths.push("/api/attachments/a.png/versions");
  const seen: Record<string, unknown> = {};
  for (const path of paths) {
    const answer = await expectOk(app.get(path));
    const type = answer.headers.get("content-type") ?? "";
    seen[path] = type.startsWith("application/json") ? await answer.json() : await digestOf(answer);
  }
  // The result of the last call is forgotten when the process ends.
  for (const connection of seen["/api/connections"] as Record<string, unknown>[]) delete connection.last_call;
  return seen;
}

/** Restores everything in the trash, which must be readable for that. */
export async function restoreAll(app: TestApp): Promise<number> {
  const items: { id: string }[] = await (await expectOk(app.get("/api/trash"))).json();
  for (const { id } of items) await expectOk(app.post(`/api/trash/${id}/restore`));
  for (const path of ["/api/lorebooks/b2", "/api/presets/s2", "/api/image/workflows/w2"]) {
    await (await expectOk(app.get(path))).json();
  }
  await expectOk(app.get("/api/attachments/b.png")).then((answer) => answer.arrayBuffer());
  for (const name of ["a.png", "c.png"]) await expectOk(app.post(`/api/attachments/${name}/versions/1/restore`, {}));
  return items.length;
}

async function digestOf(answer: Response): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await answer.arrayBuffer()));
  return Array.from(digest, (byte) => byte.toString(16)).join(" ");
}

async function expectOk(pending: Promise<Response>): Promise<Response> {
  const answer = await pending;
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}
