import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ServerStatus } from "../../../services/mcp/mcp.ts";
import { runDoctorChecks } from "../../../services/diagnostics/doctor.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { freePort } from "../../real/helpers/free_port.ts";
import { openSilentListener } from "../../helpers/network/loopback_servers.ts";
import { type FakeMcpHttp, type FakeMcpOptions, openFakeMcpHttp } from "../../helpers/fakes/fake_mcp_http.ts";

const signal = new AbortController().signal;
const LIMITS = { signal, timeoutMs: 60_000, maxBytes: 1024 * 1024 };
const PATH = "/api/tools/servers/remote";

let app: TestApp;
let server: FakeMcpHttp;
beforeEach(async () => void (app = await openTestApp()));
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

async function call(name: string) {
  const mcp = await app.services.mcp();
  const tool = await mcp.findTool("remote", name, signal);
  return await mcp.callTool(tool!, {}, LIMITS);
}

describe("a server over HTTP", () => {
  beforeEach(async () => {
    server = openFakeMcpHttp();
    await app.put(PATH, { name: "Remote", transport: "http", url: server.url, headers: { "X-Key": "k-123456" } });
  });

  test("gets the owner's headers, and responds in one body or as a stream", async () => {
    expect((await call("json")).parts).toEqual([{ type: "text", text: "json" }]);
    expect((await call("stream")).parts).toEqual([{ type: "text", text: "stream" }]);
    expect(server.seen.every((headers) => headers.get("x-key") === "k-123456")).toBe(true);
  });

  test.each([
    ["huge", /more than 8 MiB/],
    ["flood", /more than 8 MiB/],
    ["cut", /closed the connection before the result was complete/],
    ["mute", /closed the connection before the result was complete/],
  ])("that responds with %s fails the call, and the next one works", { tags: ["F08"] }, async (name, message) => {
    await expect(call(name)).rejects.toMatchObject({ code: "upstream_error", message: expect.stringMatching(message) });
    expect((await call("json")).isError).toBe(false);
  });

  test("that forgot the session gets a new one, and then the call again", async () => {
    await call("json");
    expect((await call("expired")).parts).toEqual([{ type: "text", text: "expired" }]);
  });

  test("that is gone fails the call with its address", async () => {
    const mcp = await app.services.mcp();
    const tool = await mcp.findTool("remote", "json", signal);
    await server[Symbol.asyncDispose]();
    await expect(mcp.callTool(tool!, {}, LIMITS)).rejects.toMatchObject({
      code: "upstream_error",
      message: expect.stringContaining(new URL(server.url).host),
    });
    server = openFakeMcpHttp();
  });
});

describe("a server whose sign-in leads elsewhere", () => {
  const LINK_LOCAL = "http://169.254.170.2";
  const start = async (options: FakeMcpOptions, trusted_origins: string[] = []) => {
    server = openFakeMcpHttp({ isProtected: true, ...options });
    await app.put(PATH, { name: "Remote", transport: "http", url: server.url, trusted_origins });
    await expect.poll(async () => (await (await app.get(PATH)).json()).state).toBe("needs_auth");
    return await (await app.post(`${PATH}/sign-in`)).json();
  };
  const refusal = (origin: string) => ({
    error: {
      code: "upstream_error",
      message: `The tool server "Remote" leads to "${origin}", which isn't allowed or doesn't answer. ` +
        "If it's a server of yours, add it to the tool server's other addresses",
    },
  });

  test.each(["registration_endpoint", "authorization_endpoint"])(
    "gets no request and no page for its %s on another private origin, and the owner reads which",
    { tags: ["J08"] },
    async (field) => {
      await using other = openSilentListener();
      const own = `http://127.0.0.1:${app.listener.port}`;
      for (const origin of [`http://127.0.0.1:${other.port}`, `http://localhost:${other.port}`, own, LINK_LOCAL]) {
        expect(await start({ metadata: { [field]: `${origin}/x` } })).toMatchObject(refusal(origin));
        await server[Symbol.asyncDispose]();
      }
      expect(other.connections).toBe(0);
    },
  );

  test("gets no request to its authorization server on a private origin", { tags: ["J08"] }, async () => {
    await using other = openSilentListener();
    const origin = `http://127.0.0.1:${other.port}`;
    expect(await start({ authorizationServer: origin })).toMatchObject(refusal(origin));
    expect(other.connections).toBe(0);
  });

  test("gets no code at a token endpoint on a private origin", { tags: ["J08"] }, async () => {
    await using other = openSilentListener();
    const { auth_url: page } = await start({ metadata: { token_endpoint: `http://127.0.0.1:${other.port}/token` } });
    const back = new URL((await fetch(page, { redirect: "manual" })).headers.get("location")!);
    await (await app.get(back.pathname + back.search, { redirect: "manual" })).body?.cancel();
    expect(await (await app.get(PATH)).json()).toMatchObject(refusal(`http://127.0.0.1:${other.port}`));
    expect(other.connections).toBe(0);
  });

  test("may use the authorization server that the owner allowed", { tags: ["J08"] }, async () => {
    await using other = openFakeMcpHttp();
    const { origin } = new URL(other.url);
    const { auth_url: page } = await start({ authorizationServer: origin }, [`${origin}/anything`]);
    expect(new URL(page).origin).toBe(origin);
    expect(other.grants).toEqual({ register: 1 });
    expect(await (await app.get(PATH)).json()).toMatchObject({ trusted_origins: [origin] });
    // They belong to the server's own origin, like its headers.
    await app.put(PATH, { url: "http://127.0.0.1:9/mcp" });
    expect(await (await app.get(PATH)).json()).not.toHaveProperty("trusted_origins");
    expect((await app.put(PATH, { trusted_origins: ["http://169.254.170.2"] })).status).toBe(400);
  });
});

describe("a server that asks for a sign-in", () => {
  const read = async () => await (await app.get(PATH)).json();
  const reach = async (state: ServerStatus["state"]) => {
    await expect.poll(async () => (await read()).state).toBe(state);
    return await read();
  };
  const signIn = async () => {
    const { auth_url: page } = await (await app.post(`${PATH}/sign-in`)).json();
    const { headers } = await fetch(page, { redirect: "manual" });
    return new URL(headers.get("location")!);
  };
  const follow = (back: URL) => app.get(back.pathname + back.search, { redirect: "manual" });

  beforeEach(async () => {
    server = openFakeMcpHttp({ isProtected: true });
    await app.put(PATH, { name: "Remote", transport: "http", url: server.url });
  });

  test("works after signing in, keeps its tokens encrypted, and renews them by itself", async () => {
    expect(await reach("needs_auth")).toMatchObject({ signed_in: false, tools: [] });
    const back = await signIn();
    expect(back.origin + back.pathname).toBe(`${app.url}/api/tools/callback`);
    expect((await read()).auth_url).toContain("/authorize?");
    const answer = await follow(back);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/settings/tools?server=remote"]);
    expect(await reach("ready")).toMatchObject({ signed_in: true });
    expect((await call("json")).isError).toBe(false);
    expect((await follow(back)).status).toBe(403);

    server.revoke();
    expect((await call("json")).isError).toBe(false);
    expect(server.grants).toEqual({ register: 1, authorization_code: 1, refresh_token: 1 });

    const token = server.seen.at(-1)!.get("authorization")!.replace("Bearer ", "");
    expect(await (await app.get("/api/tools/servers")).text()).not.toContain(token);
    expect(app.logLines.join("")).not.toContain(token);
    await app.restart();
    await reach("ready");
    expect(server.grants.authorization_code).toBe(1);
  });

  test("masks a token that the server repeats in an error, including a renewed one", async () => {
    await reach("needs_auth");
    await follow(await signIn());
    await reach("ready");
    const readError = async () => {
      const output = await call("leak").then((found) => JSON.stringify(found.parts), (error) => String(error.message));
      expect(output).not.toContain(server.seen.at(-1)!.get("authorization")!.replace("Bearer ", ""));
      return output;
    };
    expect(await readError()).toContain("refused with [secret]");
    server.revoke();
    expect(await readError()).toContain("refused with [secret]");
  });

  test("requires another sign-in when the tokens can't be renewed, and after signing out", async () => {
    await reach("needs_auth");
    await follow(await signIn());
    await reach("ready");
    server.revoke({ withRefreshTokens: true });
    await expect(call("json")).rejects.toMatchObject({ message: expect.stringContaining("requires a sign-in") });
    await reach("needs_auth");
    await follow(await signIn());
    await reach("ready");
    expect((await app.delete(`${PATH}/sign-in`)).status).toBe(204);
    expect(await reach("needs_auth")).toMatchObject({ signed_in: false });
    expect(server.grants.register).toBe(1);
  });

  test("rejects a callback of another authorization server, and shows the owner's refusal", async () => {
    await reach("needs_auth");
    const mixedUp = await signIn();
    mixedUp.searchParams.set("iss", "https://evil.example");
    await follow(mixedUp);
    expect((await read()).error.message).toContain("another authorization server");
    const refused = await signIn();
    refused.searchParams.delete("code");
    refused.searchParams.set("error", "access_denied");
    await follow(refused);
    expect((await read()).error.message).toContain("access_denied");
    expect(server.grants.authorization_code).toBeUndefined();
  });

  test("masks the code of a sign-in that the authorization server repeats in its error", async () => {
    await reach("needs_auth");
    const back = await signIn();
    back.searchParams.set("code", "code-123456");
    await follow(back);
    const { message } = (await read()).error;
    expect(message).toContain("wrong: [secret]");
    expect(message).not.toContain("code-123456");
  });

  test("doesn't use a sign-in for another origin", async () => {
    await reach("needs_auth");
    await follow(await signIn());
    await reach("ready");
    await using other = openFakeMcpHttp({ isProtected: true });
    await app.put(PATH, { url: other.url });
    expect(await reach("needs_auth")).toMatchObject({ signed_in: false });
    expect(other.seen.every((headers) => !headers.has("authorization"))).toBe(true);
  });
});

test("parlor doctor starts each enabled server and reports its state", async () => {
  server = openFakeMcpHttp();
  await app.put("/api/tools/servers/good", { name: "Good", transport: "http", url: server.url });
  await app.put("/api/tools/servers/gone", { name: "Gone", transport: "http", url: `http://127.0.0.1:${freePort()}` });
  await app.put("/api/tools/servers/off", { transport: "http", url: server.url, enabled: false });
  await app.restart();
  const config = { ...app.services.config, dataDir: app.dataDir, port: app.port };
  const found = await runDoctorChecks({ readConfig: () => config, backupPassphrase: undefined, maxBytes: 1 });
  expect(found.filter(({ code }) => code.startsWith("tool_server")).map(({ level, params }) => [level, params.name]))
    .toEqual([["ok", "Good"], ["problem", "Gone"]]);
});
