import { expect, test } from "vitest";
import { createParts, type Part } from "../../routes/parts.ts";
import { newRouter } from "../../routes/http/router.ts";
import { fetchAs } from "../helpers/app/fetch_as.ts";
import { openTestApp } from "../helpers/app/test_app.ts";

const nobody = { peerAddress: "127.0.0.1", listener: "main" as const, closing: new AbortController().signal };

/** Parts that answer with their name, and how often each was loaded. */
function named(list: Record<string, string[]>) {
  const loads: string[] = [];
  const parts = Object.entries(list).map(([name, paths]): Part => ({
    paths,
    load() {
      loads.push(name);
      const router = newRouter();
      router.all("*", (c) => c.text(name));
      return Promise.resolve([router]);
    },
  }));
  const made = createParts(parts, ([router]) => async (request) => await router!.fetch(request));
  const nameOf = async (path: string) => {
    const answering = await made.answering(path);
    return answering === undefined
      ? undefined
      : await (await answering(new Request(`http://localhost${path}`), nobody)).text();
  };
  return { loads, made, nameOf };
}

test("the longest path decides, a part is loaded once, and only when it is asked for", async () => {
  const { loads, nameOf } = named({
    chats: ["/api/chats"],
    export: ["/api/export", "/api/chats/{id}/export"],
    models: ["/api/models", "/api/health"],
    local: ["/api/models/local"],
  });
  expect(loads).toEqual([]);
  expect(await Promise.all(["/api/chats", "/api/chats/c1", "/api/chats/c1/exports"].map(nameOf)))
    .toEqual(["chats", "chats", "chats"]);
  expect(loads).toEqual(["chats"]);
  expect(await Promise.all(["/api/chats/c1/export", "/api/export"].map(nameOf))).toEqual(["export", "export"]);
  expect(await Promise.all(["/api/models", "/api/models/local/run", "/api/models/locals"].map(nameOf)))
    .toEqual(["models", "local", "models"]);
  expect(await Promise.all(["/api/chat", "/api", "/", "/api/chatsy/c1"].map(nameOf)))
    .toEqual([undefined, undefined, undefined, undefined]);
  expect(loads).toEqual(["chats", "export", "models", "local"]);
});

test("a part that cannot be loaded is tried again", async () => {
  let isThere = false;
  const load = () => isThere ? Promise.resolve([newRouter()]) : Promise.reject(new Error("not yet"));
  const parts = createParts([{ paths: ["/api/x"], load }], () => () => Promise.resolve(new Response("here")));
  await expect(parts.answering("/api/x")).rejects.toThrow("not yet");
  isThere = true;
  expect(await (await (await parts.answering("/api/x"))!(new Request("http://localhost/api/x"), nobody)).text())
    .toBe("here");
});

test("every route of the API lies in the part that its path leads to", async () => {
  await using app = await openTestApp();
  const { definitions } = (await app.app.router()).openAPIRegistry;
  const routes = definitions.flatMap((definition) => definition.type === "route" ? [definition.route] : []);
  expect(routes.length).toBeGreaterThan(100);
  for (const { method, path } of routes) {
    if (!path.startsWith("/api/")) continue;
    const answer = await fetchAs(app, { method: "PURGE", path: path.replace(/\{[^}]+\}/g, "x1") });
    expect([path, answer.status]).toEqual([path, 405]);
    expect(String(answer.headers.get("allow")).split(", "), path).toContain(method.toUpperCase());
  }
});

test("what fails in opening a part is told behind the chain, and is no end", async () => {
  await using app = await openTestApp();
  await app.restart(); // at the first start the room is open at once
  await Deno.remove(`${app.dataDir}/characters`, { recursive: true });
  await Deno.writeTextFile(`${app.dataDir}/characters`, "no folder");
  const failed = await app.get("/api/characters");
  expect([failed.status, (await failed.json()).error]).toMatchObject([500, { code: "internal" }]);
  const stranger = await fetchAs(app, { path: "/api/characters", host: "evil.test" });
  expect(stranger.status).toBe(403);
  await Deno.remove(`${app.dataDir}/characters`);
  expect((await app.get("/api/characters")).status).toBe(200);
});
