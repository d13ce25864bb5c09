import { expect, test } from "vitest";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

const OPTIONAL = ["/api/setup/complete", "/api/tailnet/enable", "/api/tailnet/disable"];

test.each(OPTIONAL)("%s rejects a body that isn't JSON with 400", async (path) => {
  await using app = await openTestApp();
  const headers = { "Content-Type": "application/json" };
  for (const body of ["nonsense", "{", '{"a":', "[]", '"x"']) {
    const answer = await app.request("POST", path, body, { headers });
    expect([body, answer.status]).toEqual([body, 400]);
    expect((await answer.json()).error.code).toMatch(/^invalid_(json|request)$/);
  }
  expect((await (await app.get("/api/setup/status")).json()).completed).toBe(false);
});

test("setup completes without a body and with an empty object", async () => {
  for (const body of [undefined, {}]) {
    await using app = await openTestApp();
    expect(await (await app.post("/api/setup/complete", body)).json()).toMatchObject({ completed: true });
  }
});

const base_url = "http://127.0.0.1:9";
const KEYED = [
  ["a connection", "/api/connections", { id: "k", kind: "openai", base_url }],
  ["an image profile", "/api/image/connections", { id: "k", kind: "a1111", base_url }],
  ["the speech server", "/api/tts/config", { base_url }],
] as const;

test.each(KEYED)("the key of %s with white space or a control character inside gets 400", async (_name, path, body) => {
  await using app = await openTestApp();
  for (const api_key of ["sk-a b", "sk-a\nb", "Bearer sk-a b", "sk-a\tb", "sk-a\u0000b", "sk-a\u00a0b"]) {
    const answer = await app.put(path, { ...body, api_key });
    expect([api_key, answer.status]).toEqual([api_key, 400]);
    expect((await answer.json()).error.issues[0].path).toBe("api_key");
  }
});

test.each(["  sk-1\n", "Bearer sk-1", "bearer   sk-1 ", "sk-1\r\n"])(
  "the key %j reaches the model server as sk-1",
  async (api_key) => {
    await using llm = await openFakeLlm();
    await using app = await openTestApp();
    await app.put("/api/connections", { id: "k", kind: "openai", base_url: llm.url, model: "fake-model", api_key });
    await app.post("/api/connections/k/activate");
    const answer = await app.post("/api/chat", { messages: [{ role: "user", content: "Hi" }], stream: false });
    expect(answer.status).toBe(200);
    expect(llm.chats[0]!.headers.get("authorization")).toBe("Bearer sk-1");
  },
);
