import { expect, test } from "vitest";
import { openTestApp } from "../../helpers/app/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

function makeForm(content: string): FormData {
  const form = new FormData();
  form.append("file", new File([content], "keys.md", { type: "text/markdown" }));
  return form;
}

const CARD = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Mason", description: "", first_mes: "" } };

/** A request that makes something, and one with another body. */
const REQUESTS: [what: string, path: string, make: () => BodyInit, other: () => BodyInit][] = [
  ["a document", "/api/documents", () => makeForm("# Keys"), () => makeForm("# Locks")],
  [
    "a linked document",
    "/api/documents",
    () => JSON.stringify({ url: "https://example.invalid/keys" }),
    () => JSON.stringify({ url: "https://example.invalid/locks" }),
  ],
  ["a conversation", "/api/conversations", () => "{}", () => JSON.stringify({ persona_id: "p1" })],
  [
    "a copy of a conversation",
    "/api/conversations/c1/fork",
    () => JSON.stringify({ message_id: "m1" }),
    () => JSON.stringify({ message_id: "m0" }),
  ],
  [
    "a character",
    "/api/characters/import",
    () => makeForm(JSON.stringify(CARD)),
    () => makeForm(JSON.stringify({ ...CARD, data: { ...CARD.data, name: "Miller" } })),
  ],
];

test.each(REQUESTS)("the same key makes %s once, and another body with it is refused", async (_, path, make, other) => {
  let now = Date.now();
  await using app = await openTestApp({ now: () => now });
  const messages = [{ id: "m0", role: "user", content: "Keys?" }, { id: "m1", role: "assistant", content: "Here." }];
  await app.put("/api/conversations/c1", { messages });
  const post = async (body: BodyInit, key?: string) => {
    const headers = new Headers(key === undefined ? {} : { "idempotency-key": key });
    if (typeof body === "string") headers.set("content-type", "application/json");
    const response = await app.post(path, body, { headers });
    return { status: response.status, body: await response.json() };
  };
  const sent = await Promise.all([post(make(), "k1"), post(make(), "k1")]);
  const again = await post(make(), "k1");
  expect([...sent, again].map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(new Set([...sent, again].map(({ body }) => body.id)).size).toBe(1);
  expect(await post(other(), "k1")).toMatchObject({ status: 422, body: { error: { code: "unprocessable" } } });
  const id = again.body.id;
  for (const key of ["k2", undefined]) expect((await post(make(), key)).body.id).not.toBe(id);
  for (let day = 0; day < 8; day++) {
    now += DAY_MS;
    await app.services.runMaintenance();
  }
  expect((await post(make(), "k1")).body.id).not.toBe(id);
});

test("a reply isn't regenerated twice by requests with the same key", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", {
    messages: [{ id: "m0", role: "user", content: "Keys?" }, { id: "m1", role: "assistant", content: "Here." }],
  });
  const regenerate = async (key: string) => {
    const body = { conversation_id: "c1", assistant_message_id: "m1", action: "regenerate", context: "server" };
    const headers = { "idempotency-key": key };
    await (await app.post("/api/chat", { ...body, messages: [] }, { headers })).text();
    const { messages } = await (await app.get("/api/conversations/c1")).json();
    return messages.at(-1).variant_count;
  };
  expect(await regenerate("k1")).toBe(2);
  expect(await regenerate("k1")).toBe(2);
  expect(await regenerate("k2")).toBe(3);
});
