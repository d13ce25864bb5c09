import { afterEach, beforeEach, expect, test } from "vitest";
import { readConversation, say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
beforeEach(async () => {
  app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "Old", messages: [say("m0"), say("m1"), say("m2")] });
  await app.put("/api/conversations/c1", { title: "Tea", messages: [say("m0"), say("m1"), say("m2")] });
  await app.patch("/api/conversations/c1/draft", { draft: "Dear" });
  await app.put("/api/connections", { id: "k1", kind: "openai", base_url: "http://127.0.0.1:9", api_key: "key" });
  await app.put("/api/connections", { id: "k1", kind: "openai", base_url: "http://127.0.0.1:9", name: "Nine" });
  await app.patch("/api/settings", { display_name: "Ada" });
});
afterEach(() => app[Symbol.asyncDispose]());

interface Write {
  method: string;
  path: string;
  body?: Record<string, unknown>;
  /** The current version. */
  version: number;
}

const C1 = "/api/conversations/c1";
/** Every write of every document that has a version. */
const WRITES: Write[] = [
  { method: "PUT", path: C1, body: { messages: [] }, version: 2 },
  { method: "PATCH", path: C1, body: { title: "New" }, version: 2 },
  { method: "DELETE", path: C1, version: 2 },
  { method: "PATCH", path: `${C1}/draft`, body: { draft: "New" }, version: 1 },
  { method: "POST", path: `${C1}/messages`, body: { message: say("m9") }, version: 2 },
  { method: "PATCH", path: `${C1}/messages/m1`, body: { content: "New" }, version: 2 },
  { method: "DELETE", path: `${C1}/messages/m1`, version: 2 },
  { method: "DELETE", path: `${C1}/messages/m1?following=true`, version: 2 },
  { method: "POST", path: `${C1}/revisions/1/restore`, version: 2 },
  {
    method: "PUT",
    path: "/api/connections",
    body: { id: "k1", kind: "openai", base_url: "http://127.0.0.1:9", name: "New" },
    version: 2,
  },
  { method: "DELETE", path: "/api/connections/k1/key", version: 2 },
  { method: "DELETE", path: "/api/connections/k1", version: 2 },
  { method: "PATCH", path: "/api/settings", body: { display_name: "New" }, version: 1 },
];

/** Everything these writes could change. */
async function everything() {
  const paths = ["/api/connections", "/api/settings", "/api/trash", `${C1}/revisions`];
  const answers = await Promise.all(paths.map(async (path) => await (await app.get(path)).json()));
  return [await readConversation(app), ...answers];
}

function send({ method, path, body }: Write, ifMatch?: string): Promise<Response> {
  return app.request(method, path, body, ifMatch === undefined ? {} : { headers: { "If-Match": ifMatch } });
}

test("the table contains every write that documents If-Match", async () => {
  const document = await (await app.get("/api/openapi.json")).json();
  const taking: string[] = [];
  for (
    const [path, operations] of Object.entries<Record<string, { parameters?: { name: string }[] }>>(document.paths)
  ) {
    for (const [method, { parameters = [] }] of Object.entries(operations)) {
      if (!/^\/api\/(conversations|connections|settings)/.test(path)) continue;
      if (parameters.some(({ name }) => name.toLowerCase() === "if-match")) {
        taking.push(
          `${method.toUpperCase()} ${path}`,
        );
      }
    }
  }
  const pattern = ({ method, path }: Write) =>
    `${method} ${
      path.split("?")[0]!.replace("/c1", "/{id}").replace("/m1", "/{mid}").replace("/1/", "/{n}/").replace(
        "/k1",
        "/{id}",
      )
    }`;
  expect(taking.sort()).toEqual([...new Set(WRITES.map(pattern))].sort());
});

test.each(WRITES)("$method $path is rejected for another version, and nothing changes", async (write) => {
  const before = await everything();
  for (const tag of [`"${write.version - 1}"`, `"${write.version + 1}"`, '"someone-elses"', `W/"99"`, '""']) {
    const response = await send(write, tag);
    expect([tag, response.status]).toEqual([tag, 412]);
    expect((await response.json()).error).toMatchObject({ code: "revision_mismatch" });
  }
  expect(await everything()).toEqual(before);
});

test.each(WRITES)("$method $path succeeds for the current version", async (write) => {
  const before = await everything();
  expect((await send(write, `"${write.version}"`)).status).toBeLessThan(300);
  await expect(everything().catch(() => "gone")).resolves.not.toEqual(before);
});

test.each(WRITES)("$method $path without the header, or with a star, overwrites", async (write) => {
  expect((await send(write, "*")).status).toBeLessThan(300);
  await app.delete("/api/trash"); // otherwise it has the ID of what the first one deleted
  await app.put("/api/conversations/c1", { title: "Again", messages: [say("m0"), say("m1"), say("m2")] });
  await app.put("/api/connections", { id: "k1", kind: "openai", base_url: "http://127.0.0.1:9", api_key: "key" });
  expect((await send(write)).status).toBeLessThan(300);
});

test("of two writes of the same version one succeeds and one is rejected, whichever comes first", async () => {
  const tag = { headers: { "If-Match": '"2"' } };
  for (let round = 0; round < 10; round++) {
    await app.delete(C1);
    await app.delete("/api/trash");
    await app.put(C1, { messages: [say("m0")] });
    await app.patch(C1, { title: `Round ${round}` });
    const answers = await Promise.all([
      app.patch(C1, { title: "One" }, tag),
      app.patch(`${C1}/messages/m0`, { content: "Two" }, tag),
      app.put(C1, { messages: [] }, tag),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
  }
});
