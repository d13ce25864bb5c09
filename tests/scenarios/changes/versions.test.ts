import { afterEach, beforeEach, expect, test } from "vitest";
import { plainPng } from "../../helpers/files/cards.ts";
import { wavFile } from "../../helpers/fakes/fake_speech.ts";
import { picture, putPicture } from "../../helpers/files/pictures.ts";
import { filesBelow } from "../../helpers/files/storage_folder.ts";
import { listDataFiles } from "../../../services/backup/backup.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let app: TestApp;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.now();
  app = await openTestApp({ config: { builtinAppInstalled: true }, now: () => nowMs });
});
afterEach(() => app[Symbol.asyncDispose]());

const PNG = { headers: { "content-type": "image/png" } };
const card = (name: string, more: Record<string, unknown> = {}) => ({ card: { name, description: "d", ...more } });
const workflow = (text: string) => ({ "1": { class_type: "SaveImage", inputs: { text } } });
const json = async (path: string) => await (await app.get(path)).json();
const bytes = async (path: string) => new Uint8Array(await (await app.get(path)).arrayBuffer());
const versions = async (path: string) =>
  (await json(`${path}/versions`) as { n: number; cause: string }[]).map(({ n, cause }) => [n, cause]);
const restore = (path: string, n: number, init?: RequestInit) => app.post(`${path}/versions/${n}/restore`, {}, init);
const storedVersions = async () =>
  (await filesBelow(`${app.dataDir}/versions`)).filter((path) => !/last\.\d+$/.test(path));

async function addVoice(): Promise<string> {
  const form = new FormData();
  form.append("audio", new Blob([wavFile(0.5)]), "x.wav");
  form.append("name", "First");
  return (await (await app.post("/api/voices", form)).json()).id;
}

/** One resource of each kind with two states: how to create, change and compare it. */
const KINDS = {
  character: {
    make: async () => {
      await app.put("/api/characters/fox", card("First"));
      return "/api/characters/fox";
    },
    change: (path: string) => app.put(path, card("Second")),
    look: async (path: string) => (await json(path)).card,
    cause: "put",
  },
  persona: {
    make: async () => {
      await app.put("/api/personas/me", { name: "First", description: "about me" });
      return "/api/personas/me";
    },
    change: (path: string) => app.put(path, { name: "Second", description: "other" }),
    look: async (path: string) => ({ ...await json(path), updated_at: "" }),
    cause: "put",
  },
  workflow: {
    make: async () => {
      await app.put("/api/image/workflows/w1", workflow("First"));
      return "/api/image/workflows/w1";
    },
    change: (path: string) => app.put(path, workflow("Second")),
    look: json,
    cause: "put",
  },
  voice: {
    make: async () => `/api/voices/${await addVoice()}`,
    change: (path: string) => app.patch(path, { name: "Second", description: "other" }),
    look: json,
    cause: "patch",
  },
  attachment: {
    make: async () => {
      await putPicture(app, "a.png", picture(1));
      return "/api/attachments/a.png";
    },
    change: () => putPicture(app, "a.png", picture(2)),
    look: bytes,
    cause: "put",
  },
};
const kinds = Object.entries(KINDS);

test.each(kinds)(
  "a replaced %s is kept, listed with its cause and restored, and restoring keeps what it replaces",
  async (_, kind) => {
    const path = await kind.make();
    const first = await kind.look(path);
    expect(await versions(path)).toEqual([]);
    expect((await kind.change(path)).status).toBe(200);
    const second = await kind.look(path);
    expect(second).not.toEqual(first);
    expect(await versions(path)).toEqual([[1, kind.cause]]);
    const restored = await restore(path, 1);
    expect(restored.status).toBe(200);
    expect(restored.headers.get("etag")).toBe((await app.get(path)).headers.get("etag"));
    expect(await kind.look(path)).toEqual(first);
    expect(await versions(path)).toEqual([[2, "restore"], [1, kind.cause]]);
    await app.restart();
    expect((await restore(path, 2)).status).toBe(200);
    expect(await kind.look(path)).toEqual(second);
  },
);

test.each(kinds)("an unknown %s or version gets 404, and a wrong If-Match gets 412 without effect", async (_, kind) => {
  const path = await kind.make();
  const before = await kind.look(path);
  await kind.change(path);
  const after = await kind.look(path);
  expect((await restore(path, 2)).status).toBe(404);
  expect((await restore(path, 0)).status).toBe(400);
  expect((await restore(path, 1, { headers: { "If-Match": '"0"' } })).status).toBe(412);
  expect(await kind.look(path)).toEqual(after);
  const unknown = path.replace(/[^/]+$/, "unknown");
  expect((await app.get(`${unknown}/versions`)).status).toBe(404);
  expect((await restore(unknown, 1)).status).toBe(404);
  const tag = (await app.get(path)).headers.get("etag")!;
  expect((await restore(path, 1, { headers: { "If-Match": tag } })).status).toBe(200);
  expect(await kind.look(path)).toEqual(before);
});

test.each(kinds)(
  "versions of a %s are deleted and restored with it, and a new one has none of them",
  async (_, kind) => {
    const path = await kind.make();
    const first = await kind.look(path);
    await kind.change(path);
    expect((await app.delete(path)).status).toBe(204);
    expect((await app.get(`${path}/versions`)).status).toBe(404);
    const [{ id }] = await json("/api/trash");
    expect((await app.post(`/api/trash/${id}/restore`)).status).toBe(204);
    expect(await versions(path)).toEqual([[1, kind.cause]]);
    expect((await restore(path, 1)).status).toBe(200);
    expect(await kind.look(path)).toEqual(first);
    await app.delete(path);
    expect(await storedVersions()).not.toEqual([]);
    await app.delete("/api/trash");
    expect(await storedVersions()).toEqual([]);
    if (path.startsWith("/api/voices/")) return; // A new sample gets a new ID.
    await kind.make();
    expect(await versions(path)).toEqual([]);
  },
);

const lasting = kinds.filter(([name]) => name !== "attachment");
test.each(lasting)("versions of a %s expire after 30 days, and their numbers aren't used again", async (_, kind) => {
  const path = await kind.make();
  const first = await kind.look(path);
  await kind.change(path);
  await passTime(app, 29 * DAY_MS, (stepMs) => nowMs += stepMs);
  expect(await versions(path)).toEqual([[1, kind.cause]]);
  nowMs += 2 * DAY_MS;
  expect(await versions(path)).toEqual([]);
  expect((await restore(path, 1)).status).toBe(404);
  await app.services.runMaintenance();
  expect(await storedVersions()).toEqual([]);
  if (path.startsWith("/api/voices/")) await app.patch(path, { name: "First", description: "" });
  else await kind.make();
  expect(await kind.look(path)).toEqual(first);
  expect(await versions(path)).toEqual([[2, kind.cause]]);
});

test("an unused attachment is deleted with its versions", async () => {
  const path = await KINDS.attachment.make();
  await KINDS.attachment.change();
  expect((await storedVersions()).length).toBe(1);
  nowMs += 2 * DAY_MS;
  await app.services.runMaintenance();
  await app.services.runMaintenance();
  expect((await app.get(path)).status).toBe(404);
  expect(await storedVersions()).toEqual([]);
});

test("a version of a card includes its image, or that it had none", async () => {
  const path = "/api/characters/fox";
  await app.put(path, card("Fox"));
  await app.put(`${path}/avatar`, plainPng(8, 12), PNG);
  await app.put(`${path}/avatar`, plainPng(20, 30), PNG);
  expect(await versions(path)).toEqual([[2, "avatar"], [1, "avatar"]]);
  expect(await json(`${path}/versions/1`)).toMatchObject({ has_avatar: false, card: { data: { name: "Fox" } } });
  expect((await app.get(`${path}/versions/1/avatar`)).status).toBe(404);
  const small = await bytes(`${path}/versions/2/avatar?w=16`);
  expect(new DataView(small.buffer).getUint32(16)).toBe(8);
  const before = await bytes(`${path}/avatar`);

  await restore(path, 1);
  expect(await json(path)).toMatchObject({ has_avatar: false, name: "Fox" });
  expect((await app.get(`${path}/avatar`)).status).toBe(404);
  await restore(path, 3);
  expect(await bytes(`${path}/avatar`)).toEqual(before);
  expect((await filesBelow(`${app.dataDir}/characters`)).length).toBe(1);
});

test("a persona gets its earlier image back", async () => {
  const path = "/api/personas/me";
  await app.put(path, { name: "Me" });
  await app.put(`${path}/avatar`, plainPng(8, 12), PNG);
  const before = await bytes(`${path}/avatar`);
  await app.put(`${path}/avatar`, plainPng(20, 30), PNG);
  expect(await json(`${path}/versions/2`)).toEqual({ name: "Me", description: "", has_avatar: true });
  await restore(path, 2);
  expect(await bytes(`${path}/avatar`)).toEqual(before);
  await restore(path, 1);
  expect((await json(path)).has_avatar).toBe(false);
});

test("saving without a change creates no version", async () => {
  const path = "/api/characters/fox";
  for (let i = 0; i < 3; i++) await app.put(path, card("Fox"));
  for (let i = 0; i < 3; i++) await app.put("/api/image/workflows/w1", workflow("same"));
  for (let i = 0; i < 3; i++) await app.put("/api/personas/me", { name: "Me", description: "same" });
  for (const one of [path, "/api/image/workflows/w1", "/api/personas/me"]) expect(await versions(one), one).toEqual([]);
});

test("a replaced card is kept without being copied", async () => {
  const path = "/api/characters/fox";
  await app.put(path, card("Fox"));
  await app.put(`${path}/avatar`, plainPng(), PNG);
  const before = await Deno.stat(`${app.dataDir}/characters/fox.png`);
  await app.put(path, card("Vixen"));
  const stored = (await storedVersions()).find((one) => /\/2\.\d+\.put\/card\.png$/.test(one))!;
  expect((await Deno.stat(stored)).ino).toBe(before.ino);
  expect((await Deno.stat(stored)).mode! & 0o777).toBe(0o600);
  expect((await Deno.stat(`${app.dataDir}/characters/fox.png`)).ino).not.toBe(before.ino);
});

test("backups contain versions", async () => {
  await app.put("/api/characters/fox", card("First"));
  await app.put("/api/characters/fox", card("Second"));
  const backedUp = await Array.fromAsync(listDataFiles(app.dataDir), ({ path }) => `${app.dataDir}/${path}`);
  expect(await storedVersions()).toHaveLength(1);
  expect(backedUp).toEqual(expect.arrayContaining(await storedVersions()));
});

test("versions of encrypted resources are encrypted", { tags: ["K01"] }, async () => {
  const id = await addVoice();
  await app.patch(`/api/voices/${id}`, { name: "needleFirst" });
  await app.patch(`/api/voices/${id}`, { name: "Second" });
  const png = picture(1);
  await putPicture(app, "a.png", png);
  await putPicture(app, "a.png", picture(2));
  const stored = await storedVersions();
  expect(stored.length).toBe(3);
  for (const path of stored) {
    const text = new TextDecoder("latin1").decode(await Deno.readFile(path));
    expect(text, path).not.toContain("needle");
    expect(text, path).not.toContain("IHDR");
  }
});

test("a version moved to another number or name can't be decrypted", { tags: ["K02"] }, async () => {
  const id = await addVoice();
  const path = `/api/voices/${id}`;
  await app.patch(path, { name: "Second" });
  await app.patch(path, { name: "Third" });
  const [one, two] = (await storedVersions()).sort() as [string, string];
  await Deno.copyFile(one, two);
  expect((await app.get(`${path}/versions/1`)).status).toBe(200);
  expect((await app.get(`${path}/versions/2`)).status).toBe(500);
  expect((await restore(path, 2)).status).toBe(500);
  expect((await json(path)).name).toBe("Third");
});

test("changes and restorations are published under the kind of the resource", async () => {
  const path = "/api/characters/fox";
  await app.put(path, card("First"));
  await app.put(path, card("Second"));
  const events: unknown[] = [];
  app.services.events.subscribe((event) => void events.push(event));
  await restore(path, 1);
  expect(events).toEqual([{ kind: "character", id: "fox" }]);
});

test("a damaged version doesn't replace the current card", async () => {
  const path = "/api/characters/fox";
  await app.put(path, card("First"));
  await app.put(path, card("Second"));
  const [stored] = await storedVersions();
  await Deno.writeTextFile(stored!, '{"data":');
  expect((await restore(path, 1)).status).toBe(422);
  expect((await json(path)).name).toBe("Second");
  expect(await versions(path)).toEqual([[1, "put"]]);
});
