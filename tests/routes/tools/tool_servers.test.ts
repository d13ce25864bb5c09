import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { codeOf, fetchAs } from "../../helpers/network/fetch_as.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { freePort } from "../../real/helpers/free_port.ts";

let app: TestApp;
beforeEach(async () => void (app = await openTestApp({ config: { toolsAllowPrograms: true } })));
afterEach(() => app[Symbol.asyncDispose]());

const SERVERS = "/api/tools/servers";
/** Nothing listens there. */
const http = { name: "Remote", transport: "http", url: "http://127.0.0.1:9/mcp", enabled: false };

async function listServers() {
  return await (await app.get(SERVERS)).json();
}

describe("PUT /api/tools/servers/{id}", () => {
  test("creates a server, keeps what is left out, and checks the version", async () => {
    const created = await app.put(`${SERVERS}/remote`, { ...http, headers: { "X-Key": "k-123456" } });
    expect([created.status, created.headers.get("etag")]).toEqual([201, '"1"']);
    expect(await created.json()).toMatchObject({
      id: "remote",
      name: "Remote",
      url: "http://127.0.0.1:9/mcp",
      header_names: ["X-Key"],
      env_names: [],
      state: "off",
      tools: [],
    });
    const renamed = await app.put(`${SERVERS}/remote`, { name: "Other" }, { headers: { "If-Match": '"1"' } });
    expect([renamed.status, (await renamed.json()).header_names]).toEqual([200, ["X-Key"]]);
    expect((await app.get(`${SERVERS}/remote`)).headers.get("etag")).toBe(renamed.headers.get("etag"));
    expect((await app.put(`${SERVERS}/remote`, { name: "Late" }, { headers: { "If-Match": '"1"' } })).status).toBe(412);
    expect(JSON.stringify(await listServers())).not.toContain("k-123456");
  });

  test("drops the headers and the client's secret with a new origin", async () => {
    const secrets = { headers: { "X-Key": "k-123456" }, client_id: "me", client_secret: "s-123456" };
    await app.put(`${SERVERS}/remote`, { ...http, ...secrets });
    const moved = await (await app.put(`${SERVERS}/remote`, { url: "http://127.0.0.1:9/other" })).json();
    expect([moved.header_names, moved.has_client_secret]).toEqual([["X-Key"], true]);
    const away = await (await app.put(`${SERVERS}/remote`, { url: "http://127.0.0.1:10/mcp" })).json();
    expect([away.header_names, away.has_client_secret, away.client_id]).toEqual([[], false, "me"]);
  });

  test("keeps the environment of the same command; null clears it", async () => {
    const program = { command: "/bin/true", args: ["a"], env: { KEY: "k-123456", OTHER: "o" }, enabled: false };
    await app.put(`${SERVERS}/files`, program);
    const put = async (body: Record<string, unknown>) =>
      (await (await app.put(`${SERVERS}/files`, body)).json()).env_names;
    expect(await put({ args: ["b"] })).toEqual(["KEY", "OTHER"]);
    expect(await put({ env: { OTHER: null } })).toEqual(["KEY"]);
    expect(await put({ command: "/bin/false" })).toEqual([]);
    expect(await put({ env: { KEY: "again" } })).toEqual(["KEY"]);
    expect(await put({ env: null })).toEqual([]);
  });

  test.each([
    ["the ID of the built-in tools", "web", http, "id"],
    ["a missing URL", "x", { transport: "http" }, "url"],
    ["a missing command", "x", { transport: "stdio" }, "command"],
    ["a header that can't be sent", "x", { ...http, headers: { Host: "evil" } }, "headers"],
  ])("refuses %s", async (_, id, body, path) => {
    const refused = await app.put(`${SERVERS}/${id}`, body);
    expect([refused.status, (await refused.json()).error.issues[0].path]).toEqual([400, path]);
  });

  test("refuses addresses of cloud metadata", async () => {
    const refused = await app.put(`${SERVERS}/x`, { transport: "http", url: "http://169.254.169.254/mcp" });
    expect([refused.status, (await refused.json()).error.code]).toEqual([403, "address_not_allowed"]);
  });
});

test("a program is refused where the configuration doesn't allow them, also by import and test", async () => {
  await app.put(`${SERVERS}/files`, { command: "/bin/true", enabled: false });
  await app[Symbol.asyncDispose]();
  app = await openTestApp();
  const refused = await app.put(`${SERVERS}/files`, { command: "/bin/true" });
  expect([refused.status, (await refused.json()).error.code]).toEqual([403, "programs_not_allowed"]);
  const servers = { files: { command: "npx" } };
  const imported = await app.post(`${SERVERS}/import`, { mcpServers: servers });
  expect([imported.status, (await imported.json()).error.code]).toEqual([403, "programs_not_allowed"]);
  const mixed = await app.post(`${SERVERS}/import`, {
    mcpServers: { ...servers, remote: { url: http.url, disabled: true } },
  });
  expect(await mixed.json()).toMatchObject({
    servers: [{ id: "remote", enabled: false }],
    skipped: [{ name: "files", code: "programs_not_allowed" }],
  });
});

test("DELETE removes a server with its permissions; events name it", async () => {
  const seen: unknown[] = [];
  app.services.events.subscribe((event) => void seen.push(event));
  await app.put(`${SERVERS}/remote`, http);
  const { servers } = await app.services.mcp();
  await servers.setPermission("remote", "echo", { permission: "allow", fingerprint: "f" });
  expect((await app.delete(`${SERVERS}/remote`)).status).toBe(204);
  expect((await app.delete(`${SERVERS}/remote`)).status).toBe(404);
  expect((await app.get(`${SERVERS}/remote`)).status).toBe(404);
  await app.put(`${SERVERS}/remote`, http);
  expect(servers.findPermission("remote", "echo")).toBeUndefined();
  expect(seen).toEqual(Array(3).fill({ kind: "tool_server", id: "remote" }));
});

test("a server that can't be reached is failed and says why, after a restart as well", async () => {
  await app.put(`${SERVERS}/remote`, { ...http, url: `http://127.0.0.1:${freePort()}/mcp`, enabled: true });
  await app.restart();
  const tested = await (await app.post(`${SERVERS}/remote/test`)).json();
  expect(tested).toMatchObject({ state: "failed", error: { code: "upstream_error" } });
  expect(tested.error.message).toContain("connection refused");
  expect((await app.patch(`${SERVERS}/remote/tools/echo`, { permission: "allow" })).status).toBe(502);
});

test("the callback of a sign-in that wasn't started here is refused, also from another site", async () => {
  const headers = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document" };
  const refused = await fetchAs(app, { path: "/api/tools/callback?state=none&code=1", headers });
  expect([refused.status, codeOf(refused)]).toEqual([403, "forbidden"]);
  const other = await fetchAs(app, { path: SERVERS, headers });
  expect(codeOf(other)).toBe("cross_site");
});

describe("POST /api/tools/servers/import", () => {
  const post = async (body: Record<string, unknown>) => await (await app.post(`${SERVERS}/import`, body)).json();

  test.each([
    ["Claude Desktop", {
      mcpServers: { "My files": { command: "/bin/true", args: ["/srv"], env: { KEY: "v" }, disabled: true } },
    }],
    ["VS Code", {
      servers: { "My files": { type: "stdio", command: "/bin/true", args: ["/srv"], env: { KEY: "v" } } },
    }],
    ["VS Code's settings", {
      mcp: { servers: { "My files": { command: "/bin/true", args: ["/srv"], env: { KEY: "v" } } } },
    }],
    ["Zed", { context_servers: { "My files": { command: { path: "/bin/true", args: ["/srv"], env: { KEY: "v" } } } } }],
    ["a bare list", { "My files": { command: "/bin/true", args: ["/srv"], env: { KEY: "v" } } }],
  ])("reads the shape of %s", async (_, body) => {
    const { servers, skipped } = await post(body);
    expect(servers).toMatchObject([
      {
        id: "my-files",
        name: "My files",
        transport: "stdio",
        command: "/bin/true",
        args: ["/srv"],
        env_names: ["KEY"],
      },
    ]);
    expect(skipped).toEqual([]);
  });

  test("a value with a placeholder is left out, and the server arrives off", async () => {
    const { servers } = await post({
      servers: {
        gh: {
          type: "http",
          url: "http://127.0.0.1:9/mcp",
          headers: { Authorization: "Bearer ${input:token}", "X-A": "1" },
        },
      },
    });
    expect(servers).toMatchObject([{ id: "gh", enabled: false, header_names: ["X-A"] }]);
  });

  test("names what isn't added, and adds nothing twice", async () => {
    const list = {
      old: { type: "sse", url: "http://127.0.0.1:9/sse" },
      empty: {},
      bad: { url: "ftp://x" },
      web: { url: "http://127.0.0.1:9/mcp", disabled: true },
    };
    const { servers, skipped } = await post({ mcpServers: list });
    expect(servers.map(({ id }: { id: string }) => id)).toEqual(["web-2"]);
    expect(Object.fromEntries(skipped.map(({ name, code }: Record<string, string>) => [name, code]))).toEqual({
      old: "unsupported",
      empty: "invalid",
      bad: "invalid",
    });
    expect((await post({ mcpServers: { web: list.web } })).skipped).toMatchObject([{ name: "web", code: "present" }]);
    expect(await post({ other: 1 })).toMatchObject({ error: { code: "invalid_request" } });
  });
});
