/** Every client of Parlor, with an address of Parlor itself, as a hostile or mistaken setting would have it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";

let app: TestApp;
beforeAll(async () => void (app = await openTestApp({ config: { guardAllow: ["127.0.0.0/8"], metrics: true } })));
afterAll(() => app[Symbol.asyncDispose]());

const post = async (path: string, body: Record<string, unknown>) => await (await app.post(path, body)).json();
const testConnection = (kind: string) => (url: string) =>
  post("/api/connections/test", { kind, base_url: `${url}/v1`, model: "m" });
const REFUSED = {
  error: { code: "address_not_allowed", message: expect.stringContaining("the address of Parlor itself") },
};

test.each<[string, (url: string) => Promise<unknown>]>([
  ["an OpenAI connection", testConnection("openai")],
  ["a Responses connection", testConnection("openai-responses")],
  ["an Anthropic connection", testConnection("anthropic")],
  ["an Ollama connection", testConnection("ollama")],
  ["an image server", (url) => post("/api/image/connections/test", { kind: "a1111", base_url: url })],
  ["a ComfyUI server", (url) => post("/api/image/connections/test", { kind: "comfyui", base_url: url })],
  ["the speech server", async (url) => {
    await app.put("/api/tts/config", { base_url: `${url}/v1`, model: "m", voice: "v" });
    return await post("/api/tts/speak", { text: "Hello" });
  }],
  ["the transcription server", (url) => post("/api/stt/test", { base_url: `${url}/v1`, model: "whisper-1" })],
  ["the notification server", async (url) => {
    await app.put("/api/push/server", { kind: "ntfy", url: `${url}/topic` });
    return await post("/api/push/server/test", {});
  }],
  ["the search server", (url) => post("/api/tools/web/test", { search_url: url })],
  ["a tool server", async (url) => {
    await app.put("/api/tools/servers/own", { transport: "http", url: `${url}/mcp` });
    return await post("/api/tools/servers/own/test", {});
  }],
])("%s at Parlor's own address is refused", { tags: ["J09"] }, async (_title, request) => {
  for (const host of ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"]) {
    expect(await request(`http://${host}:${app.listener.port}`)).toMatchObject(REFUSED);
  }
});

test("links to Parlor's own address are refused, even if guard_allow lists it", { tags: ["J09"] }, async () => {
  const url = `http://127.0.0.1:${app.listener.port}/api/characters`;
  expect(await post("/api/documents", { url })).toMatchObject({ error: { code: "address_not_allowed" } });
  expect(await post("/api/characters/import-url", { url })).toMatchObject({ error: { code: "address_not_allowed" } });
});
