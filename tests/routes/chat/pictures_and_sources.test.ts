/** Pictures, sound and sources that a model returns with its reply. */
import { expect, test } from "vitest";
import { makeBackup } from "../../../services/backup/backup.ts";
import { restoreBackup } from "../../../services/backup/restore.ts";
import { ask, gather, savedMessage, until, useModel } from "../../helpers/app/chat_client.ts";
import { startChildServer } from "../../helpers/app/child_server.ts";
import { importReport } from "../../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { makePcm, type MediaModel, openMediaModel, PIXEL, SOURCE } from "../../helpers/fakes/llm/fake_media_model.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const PICTURE = {
  type: "image_url",
  image_url: { url: expect.stringMatching(/^\/api\/attachments\/[0-9a-f]{40}\.png$/) },
  origin: "model",
};
const SPOKEN = { seconds: 0.2, transcript: "Rain." };

/** Asks and waits for the end. */
const askAndRead = async (app: TestApp, n: number, fields: Record<string, unknown> = {}) =>
  await gather(await ask(app, n, { context: "server", model: "m", ...fields }));

/** The part of a message that has a sound. */
async function findSound(app: TestApp, mid: string) {
  const { content } = (await savedMessage(app, mid))! as { content: { type: string; audio: { url: string } }[] };
  return content.find(({ type }) => type === "audio")!;
}

test("stores the pictures and sources of a reply, sends them to clients, and sends the pictures back", async () => {
  await using model = openMediaModel({ images: [PIXEL], sources: [SOURCE] });
  await using app = await openTestApp();
  await useModel(app, model);
  const answer = await askAndRead(app, 1);
  const stored = (await savedMessage(app, "a1"))!;
  expect(stored).toMatchObject({ status: "complete", content: [PICTURE], sources: [{ n: 1, ...SOURCE }] });
  expect(answer.message).toEqual(stored);
  const [{ image_url: image }] = stored.content as { image_url: { url: string } }[] as [{ image_url: { url: string } }];
  expect((await app.get(image.url)).headers.get("content-type")).toBe("image/png");
  await askAndRead(app, 2);
  const sent = JSON.stringify(model.requests.at(-1)!.messages);
  expect(sent).toContain('"url":"data:image/jpeg;base64,');
  expect(sent).not.toContain("origin");
});

test("the gallery lists the picture of a reply, and removing it there removes it from the message", async () => {
  await using model = openMediaModel({ images: [PIXEL] });
  await using app = await openTestApp();
  await useModel(app, model);
  await askAndRead(app, 1);
  const [{ image_url: image }] = (await savedMessage(app, "a1"))!.content as { image_url: { url: string } }[] as [
    { image_url: { url: string } },
  ];
  const { items } = await (await app.get("/api/image/gallery")).json();
  expect(items).toMatchObject([
    { url: image.url, origin: "model", model: "m", connection_id: "double", conversation_id: "c1", message_id: "a1" },
  ]);
  expect(items[0].prompt).not.toBe("");
  expect(items[0].profile_id).toBeUndefined();
  expect((await app.delete(`/api/image/gallery/${items[0].id}`)).status).toBe(204);
  expect((await (await app.get("/api/image/gallery")).json()).items).toEqual([]);
  expect((await savedMessage(app, "a1"))!.content).toBe("");
});

test("of a very long message, the gallery keeps the begin with its picture", async () => {
  await using model = openMediaModel({ images: [PIXEL] });
  await using app = await openTestApp();
  await useModel(app, model);
  const content = "Draw a harbor. ".repeat(2_000);
  await askAndRead(app, 1, { messages: [{ id: "u1", role: "user", content }] });
  const { items } = await (await app.get("/api/image/gallery")).json();
  expect(items.map(({ prompt }: { prompt: string }) => prompt)).toEqual([content.slice(0, 20_000)]);
});

test("stores the sound of a reply as a WAV file with its transcript, and a new version has its own", async () => {
  await using model = openMediaModel({ sound: SPOKEN });
  await using app = await openTestApp();
  await useModel(app, model);
  const answer = await askAndRead(app, 1);
  const stored = (await savedMessage(app, "a1"))!;
  expect(stored.content).toEqual([
    { type: "text", text: "Rain." },
    {
      type: "audio",
      audio: {
        url: expect.stringMatching(/^\/api\/attachments\/[0-9a-f]{40}\.wav$/),
        id: "audio_1",
        expires_at: 4_000_000_000,
        connection_id: "double",
      },
      origin: "model",
    },
  ]);
  expect([answer.text, answer.message]).toEqual(["Rain.", stored]);
  const first = await findSound(app, "a1");
  const file = await app.get(first.audio.url);
  expect(file.headers.get("content-type")).toBe("audio/wav");
  expect(new Uint8Array(await file.arrayBuffer()).subarray(44)).toEqual(makePcm(SPOKEN.seconds));

  model.reply = { sound: { seconds: 0.1, transcript: "Snow." } };
  await askAndRead(app, 1, { action: "regenerate" });
  const second = await findSound(app, "a1");
  expect(second.audio.url).not.toBe(first.audio.url);
  const markdown = await (await app.get("/api/conversations/c1/export?format=markdown")).text();
  expect(markdown).toContain("Snow.\n\n*(a recording)*");
});

test.each([
  ["OpenAI's server, by its ID", { server: { override: "openai" } }, 4_000_000_000, {
    content: null,
    audio: { id: "audio_1" },
  }],
  ["OpenAI's server, by its transcript, once that has forgotten it", { server: { override: "openai" } }, 1, {
    content: "Rain.",
  }],
  ["another server, by its transcript", {}, 4_000_000_000, { content: "Rain." }],
])("the sound of a reply goes back to %s", async (_, fields, expiresAt, sent) => {
  await using model = openMediaModel({ sound: { ...SPOKEN, expiresAt } });
  await using app = await openTestApp();
  await useModel(app, model, fields);
  await askAndRead(app, 1);
  await askAndRead(app, 2);
  expect((model.requests.at(-1)!.messages as unknown[])[1]).toEqual({ role: "assistant", ...sent });
});

test("clients of the API get the pictures and the sound of a model", async () => {
  await using model = openMediaModel({ images: [PIXEL], sound: SPOKEN });
  await using app = await openTestApp();
  await useModel(app, model);
  const body = { model: "default", messages: [{ role: "user", content: "hi" }] };
  const streamed = await (await app.post("/api/v1/chat/completions", { ...body, stream: true })).text();
  expect(streamed).toContain(`"url":"data:image/png;base64,${PIXEL}"`);
  expect(streamed).toContain('"delta":{"audio":{"expires_at":4000000000}}');
  const { choices: [choice] } = await (await app.post("/api/v1/chat/completions", body)).json();
  expect(choice.message).toMatchObject({ content: "Rain.", audio: { id: "audio_1", transcript: "Rain." } });
  expect(atob(choice.message.audio.data)).toHaveLength(makePcm(SPOKEN.seconds).length);
});

/** Asks for a reply with everything, and returns it as it's stored. */
async function askForAll(app: TestApp, model: MediaModel) {
  await useModel(app, model);
  await askAndRead(app, 1);
  const stored = (await savedMessage(app, "a1"))!;
  expect(stored).toMatchObject({
    content: [{ type: "text" }, PICTURE, { type: "audio" }],
    sources: [{ n: 1 }, { n: 2 }],
  });
  return stored;
}

const ALL = { images: [PIXEL], sound: SPOKEN, sources: [SOURCE, { ...SOURCE, url: `${SOURCE.url}/2` }] };

/** Expects that a server has a stored reply, and the files that it refers to. */
async function expectReply(app: TestApp, stored: Record<string, unknown>): Promise<void> {
  const [{ id }] = (await (await app.get("/api/conversations")).json()) as [{ id: string }];
  const { messages } = await (await app.get(`/api/conversations/${id}`)).json();
  const { content, sources } = stored;
  expect(messages.at(-1)).toMatchObject({ content, sources });
  const urls = JSON.stringify(content).match(/\/api\/attachments\/[^"]+/g)!;
  expect(urls).toHaveLength(2);
  for (const url of urls) {
    const file = await app.get(url);
    expect([url, file.status]).toEqual([url, 200]);
    await file.body?.cancel();
  }
}

test("an export with pictures, sounds and sources of replies is imported with them", async () => {
  await using model = openMediaModel(ALL);
  await using app = await openTestApp();
  const stored = await askForAll(app, model);
  const exported = new Uint8Array(await (await app.get("/api/export")).arrayBuffer());
  await using other = await openTestApp();
  await importReport(other, "kind=parlor", exported);
  await expectReply(other, stored);
});

test("a restored backup has the pictures, sounds and sources of replies", async () => {
  await using home = await tempFolder();
  await using model = openMediaModel(ALL);
  await using app = await openTestApp();
  const stored = await askForAll(app, model);
  const storageKey = await Deno.readFile(`${app.dataDir}/storage-key`);
  const path = home.file("a.backup");
  const passphrase = "correct horse";
  await makeBackup({ dataDir: app.dataDir, storageKey, path, version: "1", nowMs: Date.now(), passphrase });
  const dataDir = home.file("restored");
  await restoreBackup({
    path,
    dataDir,
    replace: false,
    now: Date.now,
    getPassphrase: () => Promise.resolve(passphrase),
    acceptSetting: () => false,
  });
  await using restored = await openTestApp({ dataDir });
  await expectReply(restored, stored);
});

test("kill -9 before a reply is saved keeps the pictures that the model had returned", {
  timeout: 240_000,
}, async () => {
  await using home = await tempFolder();
  await using model = openMediaModel({ text: "Here:", images: [PIXEL], isEndless: true });
  const dataDir = home.file("data");
  const first = await startChildServer({ dataDir });
  const connection = { id: "double", name: "Double", kind: "openai", base_url: model.url, model: "m" };
  await first.json("PUT", "/api/connections", connection);
  await first.json("POST", "/api/connections/double/activate");
  const asked = first.request("POST", "/api/chat", {
    conversation_id: "c1",
    assistant_message_id: "a1",
    messages: [{ role: "user", content: "Draw" }],
  }).then((response) => response.body?.cancel(), () => {});
  const read = async (server: typeof first) => {
    const { messages } = await server.json<{ messages: Record<string, unknown>[] }>("GET", "/api/conversations/c1");
    return messages.at(-1)!;
  };
  await until(async () => {
    const response = await first.request("GET", "/api/conversations/c1");
    return (await response.text()).includes("/api/attachments/");
  }, "the picture has arrived");
  await first.kill("SIGKILL");
  await asked;

  await using second = await startChildServer({ dataDir });
  const message = await read(second);
  expect(message).toMatchObject({ status: "interrupted", content: [{ type: "text", text: "Here:" }, PICTURE] });
  const [, { image_url: image }] = message.content as [unknown, { image_url: { url: string } }];
  const picture = await second.request("GET", image.url);
  expect([picture.status, (await picture.arrayBuffer()).byteLength]).toEqual([200, atob(PIXEL).length]);
});
