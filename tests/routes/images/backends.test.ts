import { afterEach, beforeEach, expect, test } from "vitest";
import { detectBackends } from "../../../services/image_generation/backend.ts";
import { FakeA1111 } from "../../helpers/fakes/fake_a1111.ts";
import { FakeComfy } from "../../helpers/fakes/fake_comfy.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
// Never the same time twice: what was saved within one millisecond has no order.
let nowMs = Date.now();
beforeEach(async () => {
  app = await openTestApp({ now: () => nowMs++ });
});
afterEach(() => app[Symbol.asyncDispose]());

const put = (body: Record<string, unknown>, init?: RequestInit) => app.put("/api/image/connections", body, init);
const list = async () => await (await app.get("/api/image/connections")).json();
const verdict = async (body: Record<string, unknown>) =>
  await (await app.post("/api/image/connections/test", body)).json();

test("a backend survives a restart as entered, without showing its key; the first one is active", async () => {
  const defaults = { negative_prompt: "blurry", width: 832, height: 1216, steps: 30, cfg_scale: 6.5, sampler: "euler" };
  const entered = { id: "home", name: "Home", kind: "comfyui", workflow_id: "mine", checkpoint: "tiny", defaults };
  const response = await put({ ...entered, base_url: "127.0.0.1:8188/", api_key: "sk-1234567" });
  expect(response.status).toBe(201);
  expect(response.headers.get("etag")).toBe('"1"');
  const times = { created_at: expect.any(String), updated_at: expect.any(String) };
  const shown = { ...entered, base_url: "http://127.0.0.1:8188", has_key: true, active: true, ...times };
  expect(await response.json()).toEqual(shown);
  await app.restart();
  expect(await list()).toEqual([shown]);
});

test("a second backend is inactive until it is activated, and removing the active one leaves none", async () => {
  await put({ id: "one", kind: "a1111", base_url: "http://127.0.0.1:7860" });
  await put({ id: "two", kind: "comfyui", base_url: "http://127.0.0.1:8188" });
  expect((await list()).map(({ id, active }: { id: string; active: boolean }) => [id, active])).toEqual([
    ["two", false],
    ["one", true],
  ]);
  expect(await (await app.post("/api/image/connections/two/activate")).json()).toMatchObject({ active: true });
  expect((await app.delete("/api/image/connections/two")).status).toBe(204);
  expect(await list()).toMatchObject([{ id: "one", active: false }]);
  expect((await app.post("/api/image/generate", { prompt: "x" })).status).toBe(503);
});

test("omitted fields of a saved backend keep their value; a new one requires kind and URL", async () => {
  const defaults = { width: 512, steps: 8 };
  const whole = { id: "one", kind: "a1111", base_url: "http://127.0.0.1:7860", checkpoint: "fox", defaults };
  await put({ ...whole, api_key: "u:pw" });
  expect(await (await put({ id: "one", name: "Mine" })).json())
    .toMatchObject({ ...whole, name: "Mine", has_key: true });
  const bare = await (await put({ id: "one", checkpoint: null, defaults: null, name: null })).json();
  expect(bare).toMatchObject({ name: "127.0.0.1:7860", kind: "a1111", defaults: {} });
  expect(bare).not.toHaveProperty("checkpoint");
  for (const [body, path] of [[{ base_url: whole.base_url }, "kind"], [{ id: "two", kind: "a1111" }, "base_url"]]) {
    const refused = await put(body as Record<string, unknown>);
    expect([refused.status, (await refused.json()).error.issues[0].path]).toEqual([400, path]);
  }
});

test("a conditional write of another version gets 412, and nothing is written", async () => {
  await put({ id: "one", kind: "a1111", base_url: "http://127.0.0.1:7860" });
  const refused = await put({ id: "one", kind: "a1111", base_url: "http://127.0.0.1:7861" }, {
    headers: { "if-match": '"7"' },
  });
  expect(refused.status).toBe(412);
  expect(await list()).toMatchObject([{ base_url: "http://127.0.0.1:7860" }]);
});

test.each([
  [{ kind: "novelai", base_url: "http://127.0.0.1" }, 400, "invalid_request"],
  [{ kind: "a1111" }, 400, "invalid_request"],
  [{ kind: "a1111", base_url: "ftp://127.0.0.1" }, 400, "invalid_request"],
  [{ kind: "a1111", base_url: "http://user:pw@127.0.0.1" }, 400, "invalid_request"],
  [{ kind: "comfyui", base_url: "http://169.254.169.254" }, 403, "address_not_allowed"],
  [{ kind: "comfyui", base_url: "http://[fe80::1]:8188" }, 403, "address_not_allowed"],
  [{ kind: "a1111", base_url: "http://metadata.google.internal" }, 403, "address_not_allowed"],
])("rejects %j, both for saving and for testing", { tags: ["E14"] }, async (body, status, code) => {
  for (const response of [await put(body), await app.post("/api/image/connections/test", body)]) {
    expect(response.status).toBe(status);
    expect((await response.json()).error.code).toBe(code);
  }
});

test("every request about an unknown backend gets 404", async () => {
  expect((await app.delete("/api/image/connections/x")).status).toBe(404);
  expect((await app.post("/api/image/connections/x/activate")).status).toBe(404);
  expect((await app.get("/api/image/connections/x/checkpoints")).status).toBe(404);
});

test("the checkpoints are the current ones of the server", async () => {
  await using a1111 = new FakeA1111();
  await using comfy = new FakeComfy();
  await put({ id: "a", kind: "a1111", base_url: a1111.url });
  await put({ id: "c", kind: "comfyui", base_url: comfy.url });
  expect(await (await app.get("/api/image/connections/a/checkpoints")).json()).toEqual([
    { name: "fox", title: "fox.safetensors [1a2b3c4d5e]" },
    { name: "heron", title: "heron.safetensors" },
  ]);
  comfy.switches.checkpoints = ["new.safetensors"];
  expect(await (await app.get("/api/image/connections/c/checkpoints")).json()).toEqual([
    { name: "new.safetensors", title: "new.safetensors" },
  ]);
});

test("a test says whether a backend can be used, and why not", async () => {
  await using a1111 = new FakeA1111();
  await using comfy = new FakeComfy({ dialect: "old" });
  expect(await verdict({ kind: "a1111", base_url: a1111.url })).toEqual({ reachable: true });
  expect(await verdict({ kind: "comfyui", base_url: comfy.url })).toEqual({ reachable: true });
  expect(await verdict({ kind: "comfyui", base_url: a1111.url })).toMatchObject({ reachable: false });
  expect((await verdict({ kind: "a1111", base_url: comfy.url })).error).toContain("doesn't have the API");
  a1111.switches.hasApi = false;
  expect((await verdict({ kind: "a1111", base_url: a1111.url })).error).toContain("--api");
  expect((await verdict({ kind: "a1111", base_url: "http://127.0.0.1:9" })).error).toContain("127.0.0.1:9");
});

test("a login is sent as Basic, another key as a bearer token", async () => {
  await using a1111 = new FakeA1111({ login: "owner:secret:word" });
  expect((await verdict({ kind: "a1111", base_url: a1111.url })).error).toContain("check its login");
  expect(await verdict({ kind: "a1111", base_url: a1111.url, api_key: "owner:secret:word" })).toEqual({
    reachable: true,
  });
  await using comfy = new FakeComfy();
  await put({ id: "c", kind: "comfyui", base_url: comfy.url, api_key: "sk-1234567" });
  expect((await app.post("/api/image/generate", { prompt: "x" })).status).toBe(200);
  for (const { headers } of comfy.requests) expect(headers.get("authorization")).toBe("Bearer sk-1234567");
});

test("a stored key is sent only to the origin it was entered for", { tags: ["U01"] }, async () => {
  await using first = new FakeComfy();
  await using second = new FakeComfy();
  await put({ id: "c", kind: "comfyui", base_url: first.url, api_key: "sk-1234567" });
  await verdict({ id: "c", kind: "comfyui", base_url: `${first.url}/` });
  await verdict({ id: "c", kind: "comfyui", base_url: second.url });
  expect(first.requests.at(-1)!.headers.get("authorization")).toBe("Bearer sk-1234567");
  expect(await (await put({ id: "c", kind: "comfyui", base_url: second.url })).json()).toMatchObject({
    has_key: false,
  });
  await app.get("/api/image/connections/c/checkpoints");
  for (const { headers } of second.requests) expect(headers.get("authorization")).toBeNull();
});

test("a redirect to another origin isn't followed", { tags: ["U02"] }, async () => {
  await using comfy = new FakeComfy();
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    ({ url }) => Response.redirect(comfy.url + new URL(url).pathname, 307),
  );
  const base_url = `http://127.0.0.1:${server.addr.port}`;
  const found = await verdict({ kind: "comfyui", base_url, api_key: "sk-1234567" });
  expect(found).toMatchObject({ reachable: false, error: expect.stringContaining("redirects") });
  expect(comfy.requests).toEqual([]);
});

test("a key that the server sends back is masked", { tags: ["U03"] }, async () => {
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    ({ headers }) => Response.json({ detail: `bad ${headers.get("authorization")} for secretword` }, { status: 500 }),
  );
  const base_url = `http://127.0.0.1:${server.addr.port}`;
  expect((await verdict({ kind: "comfyui", base_url, api_key: "sk-1234567" })).error).toContain("Bearer [key]");
  const { error } = await verdict({ kind: "a1111", base_url, api_key: "owner:secretword" });
  expect(error).toContain("[key]");
  expect(error).not.toContain("secretword");
});

test(
  "a server that stalls, or sends a page with status 200, is an error with a message",
  { tags: ["U05"] },
  async () => {
    let body: BodyInit | null = "<html>a page</html>";
    await using server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      () => new Response(body, { headers: { "content-type": "text/html" } }),
    );
    const backend = { id: "c", kind: "comfyui", base_url: `http://127.0.0.1:${server.addr.port}` };
    await put(backend);
    const page = await app.post("/api/image/generate", { prompt: "x" });
    expect([page.status, (await page.json()).error.message]).toEqual([
      502,
      expect.stringContaining("didn't return JSON"),
    ]);
    await app[Symbol.asyncDispose]();
    app = await openTestApp({ imageLimits: { pollMs: 20, responseMs: 300 } });
    await put(backend);
    body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const stalled = await app.post("/api/image/generate", { prompt: "x" });
    expect([stalled.status, (await stalled.json()).error.code]).toEqual([504, "upstream_timeout"]);
  },
);

test("keys of backends are never stored in plain text", async () => {
  await put({ id: "c", kind: "comfyui", base_url: "http://127.0.0.1:8188", api_key: "sk-very-secret-1234567" });
  await app.restart(async () => {
    for await (const { name, isFile } of Deno.readDir(app.dataDir)) {
      if (!isFile) continue;
      const text = new TextDecoder("latin1").decode(await Deno.readFile(`${app.dataDir}/${name}`));
      expect(text).not.toContain("sk-very-secret");
    }
  });
  expect(app.logLines.join("\n")).not.toContain("sk-very-secret");
});

test("discovery distinguishes both kinds by their responses, on any port", async () => {
  await using a1111 = new FakeA1111();
  await using off = new FakeA1111({ hasApi: false });
  await using locked = new FakeA1111({ login: "a:b" });
  await using empty = new FakeA1111({ models: [] });
  await using comfy = new FakeComfy();
  await using older = new FakeComfy({ dialect: "old" });
  await using other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => Response.json([]));
  await using page = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response("<html></html>", { headers: { "content-type": "text/html" } }),
  );
  const servers = [a1111, off, locked, empty, comfy, older, { port: other.addr.port }, { port: page.addr.port }];
  const ports = [...servers.map(({ port }) => ({ port })), { port: 9 }];
  const found = await detectBackends({ hosts: ["127.0.0.1"], ports, deadlineMs: 10_000 });
  expect(found).toEqual([
    { kind: "a1111", baseUrl: a1111.url },
    { kind: "a1111", baseUrl: off.url, hint: "api_off" },
    { kind: "a1111", baseUrl: locked.url, hint: "login" },
    { kind: "a1111", baseUrl: empty.url },
    { kind: "comfyui", baseUrl: comfy.url },
    { kind: "comfyui", baseUrl: older.url },
  ]);
});

test("the kind of a server is detected from its URL, without the stored key", { tags: ["U01"] }, async () => {
  const detect = async (base_url: string) => await (await app.post("/api/image/detect", { base_url })).json();
  await using a1111 = new FakeA1111();
  await using off = new FakeA1111({ hasApi: false });
  await using comfy = new FakeComfy();
  await using proxy = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async ({ url }) => {
    const { pathname } = new URL(url);
    if (!pathname.startsWith("/draw/")) return new Response(null, { status: 404 });
    return await fetch(comfy.url + pathname.slice("/draw".length));
  });
  await put({ id: "c", kind: "comfyui", base_url: comfy.url, api_key: "sk-1234567" });
  expect(await detect(a1111.url)).toEqual({ reachable: true, kind: "a1111" });
  expect(await detect(off.url)).toEqual({ reachable: true, kind: "a1111", hint: "api_off" });
  expect(await detect(`127.0.0.1:${comfy.port}/`)).toEqual({ reachable: true, kind: "comfyui" });
  expect(await detect(`http://127.0.0.1:${proxy.addr.port}/draw`)).toEqual({ reachable: true, kind: "comfyui" });
  expect(await detect(`http://127.0.0.1:${proxy.addr.port}`)).toEqual({ reachable: true });
  expect(await detect("http://127.0.0.1:9")).toEqual({ reachable: false });
  for (const { headers } of comfy.requests) expect(headers.get("authorization")).toBeNull();
});

test.each([
  ["http://169.254.169.254", 403],
  ["http://metadata.google.internal", 403],
  ["ftp://127.0.0.1", 400],
])("no kind is detected at %s", { tags: ["E14"] }, async (base_url, status) => {
  expect((await app.post("/api/image/detect", { base_url })).status).toBe(status);
});

test(
  "discover probes only the configured hosts, and no metadata or link-local one",
  { tags: ["E14"] },
  async () => {
    await using comfy = new FakeComfy();
    const resolve = (host: string) => Promise.resolve(host === "evil.test" ? ["169.254.169.254"] : ["127.0.0.1"]);
    const hosts = ["169.254.169.254", "[fe80::1]", "evil.test", "metadata.google.internal"];
    expect(await detectBackends({ hosts, ports: [comfy], resolve, deadlineMs: 10_000 })).toEqual([]);
    expect(comfy.requests).toEqual([]);
    const response = await app.post("/api/image/discover", { hosts: ["192.0.2.1"] });
    expect(response.status).toBe(200);
    expect(Array.isArray(await response.json())).toBe(true);
  },
);
