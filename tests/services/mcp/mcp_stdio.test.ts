import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { JsonObject } from "../../../services/json/type_guards.ts";
import type { Mcp } from "../../../services/mcp/mcp.ts";
import type { Tool } from "../../../services/tools/tool_registry.ts";
import { openMcpBench } from "../../helpers/app/mcp_fixture.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const FAKE = fileURLToPath(new URL("../../helpers/fakes/fake_mcp_stdio.ts", import.meta.url));
const signal = new AbortController().signal;
const LIMITS = { signal, timeoutMs: 60_000, maxBytes: 1024 * 1024 };

let app: TestApp;
let mcp: Mcp;
beforeEach(async () => {
  app = await openTestApp({ config: { toolsAllowPrograms: true, logLevel: "debug" } });
  mcp = await app.services.mcp();
});
afterEach(() => app[Symbol.asyncDispose]());

const put = (env: Record<string, string> = {}, start = "") =>
  mcp.put("fake", {
    name: "Fake",
    transport: "stdio",
    command: Deno.execPath(),
    args: ["run", "--no-config", "-A", FAKE, start],
    env: { NO_COLOR: "1", ...env },
  });

async function getTool(name: string): Promise<Tool> {
  const tool = await mcp.findTool("fake", name, signal);
  expect(tool).toBeDefined();
  return tool!;
}

const call = async (name: string, args: JsonObject = {}, limits = LIMITS) =>
  mcp.callTool(await getTool(name), args, limits);

function isAlive(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}

describe("a program", () => {
  test("gets only its own environment and PATH, and a separate folder", async () => {
    await put({ API_KEY: "k-123456" });
    const { parts } = await call("environment");
    const seen = JSON.parse((parts[0] as { text: string }).text);
    expect(Object.keys(seen.env).sort()).toEqual(["API_KEY", "NO_COLOR", "PATH", "PWD"]);
    expect(seen.folder).toMatch(/cache\/tool_servers\/fake$/);
  });

  test("ends with Parlor's services, and so do the programs it started", async () => {
    await put({}, "grandchild");
    const { parts } = await call("environment");
    const { pid } = JSON.parse((parts[0] as { text: string }).text);
    const children = await new Deno.Command("ps", { args: ["-o", "pid=", "-g", String(pid)] }).output();
    const pids = new TextDecoder().decode(children.stdout).trim().split(/\s+/).map(Number);
    expect(pids.length).toBeGreaterThan(1);
    await mcp.close();
    expect(isAlive(pid)).toBe(false);
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  test("is killed if it ignores the end of its input and SIGTERM", async () => {
    await put({}, "deaf");
    const { parts } = await call("environment");
    const { pid } = JSON.parse((parts[0] as { text: string }).text);
    await mcp.remove("fake");
    await mcp.close();
    expect(isAlive(pid)).toBe(false);
  });

  test("reports why it ended before the handshake, without its secrets", async () => {
    await put({ API_KEY: "k-123456" }, "crash");
    const { state, error } = await mcp.test("fake", signal);
    expect(state).toBe("failed");
    expect(error).toMatchObject({ code: "upstream_error", message: expect.stringContaining("it ended with code 3") });
    expect(error!.message).toContain("no key: [secret]");
    expect(app.logLines.join("")).not.toContain("k-123456");
  });

  test("that doesn't exist is named in the error", async () => {
    await mcp.put("none", { command: "no-such-program-here" });
    const { state, error } = await mcp.test("none", signal);
    expect([state, error?.code, error?.message]).toEqual([
      "failed",
      "not_available",
      `Can't start "no-such-program-here": the program isn't installed on this machine`,
    ]);
    const { tools, unavailable } = await mcp.listTools(signal);
    expect(tools).toEqual([]);
    expect(unavailable).toEqual([{ serverId: "none", serverName: "none", reason: error!.message }]);
  });

  test("never starts if the configuration doesn't allow programs", async () => {
    await app[Symbol.asyncDispose]();
    const config = { toolsAllowPrograms: true };
    app = await openTestApp({ config });
    mcp = await app.services.mcp();
    await mcp.put("old", { command: "true" });
    await app.restart(() => Promise.resolve(void (config.toolsAllowPrograms = false)));
    mcp = await app.services.mcp();
    await expect(put()).rejects.toMatchObject({ code: "programs_not_allowed" });
    expect(await mcp.listTools(signal)).toMatchObject({
      tools: [],
      unavailable: [{ reason: expect.stringMatching(/disabled/) }],
    });
    await expect(mcp.test("old", signal)).rejects.toMatchObject({ code: "programs_not_allowed" });
    expect((await app.put("/api/tools/servers/new", { command: "true" })).status).toBe(403);
  });
});

describe("a hostile program", () => {
  test.each([
    ["huge", "upstream_error", /more than 8 MiB/],
    ["endless", "upstream_error", /more than 8 MiB/],
    ["die", "upstream_error", /ended with code 9. It printed: out of memory/],
    ["cut", "upstream_error", /ended with code 0/],
    ["nonsense", "upstream_error", /isn't valid MCP/],
  ])("that responds with %s fails the call, and the next one works", async (name, code, message) => {
    await put();
    await expect(call(name)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await call("echo", { message: "back" })).toEqual({
      parts: [{ type: "text", text: "back" }],
      isError: false,
      truncated: false,
    });
  });

  test.each(["-32000", "-32098", "-32099"])("that reports the error %s answers the call with it", async (code) => {
    await put();
    expect(await call("busy", { message: code })).toEqual({
      parts: [{ type: "text", text: "Busy, try again later" }],
      isError: true,
      truncated: false,
    });
  });

  test("that repeats its key in a failed result gets it masked before the text is cut", async () => {
    await put({ API_KEY: "k-123456" });
    const { parts, isError } = await call("fail");
    expect(isError).toBe(true);
    expect(parts).toEqual([
      { type: "text", text: "refused with [secret]" },
      { type: "text", text: "resource [secret]" },
      { type: "link", uri: "https://api.example/[secret]", name: "link [secret]" },
    ]);
    const cut = await call("fail", {}, { ...LIMITS, maxBytes: "refused with k-12".length });
    expect(JSON.stringify(cut.parts)).not.toContain("k-12");
    expect((await call("fail", { message: "no error" })).parts[0]).toEqual({
      type: "text",
      text: "refused with k-123456",
    });
  });

  test("that doesn't respond is stopped after the time limit", async () => {
    await put();
    const slow = await getTool("slow");
    await expect(mcp.callTool(slow, {}, { ...LIMITS, timeoutMs: 50 })).rejects.toMatchObject({
      code: "upstream_timeout",
    });
    const leaving = new AbortController();
    const left = mcp.callTool(slow, {}, { ...LIMITS, signal: leaving.signal });
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
  });

  test("that prints other text between its messages is understood", async () => {
    await put();
    expect((await call("noise")).parts).toEqual([{ type: "text", text: "quiet" }]);
  });

  test("that sends more text than the limit of a call gets the text cut", { tags: ["F08"] }, async () => {
    await put();
    const echo = await getTool("echo");
    expect(await mcp.callTool(echo, { message: "é".repeat(50) }, { ...LIMITS, maxBytes: 11 })).toEqual({
      parts: [{ type: "text", text: "é".repeat(5) }],
      isError: false,
      truncated: true,
    });
  });

  test("that changes its tools loses those that no longer exist", async () => {
    await put();
    const huge = await getTool("huge");
    await call("swap");
    await expect.poll(async () => (await mcp.listTools(signal)).tools.map(({ name }) => name)).toEqual([
      "echo",
      "swapped",
    ]);
    await expect(mcp.callTool(huge, {}, LIMITS)).rejects.toMatchObject({ code: "not_found" });
    expect(await mcp.findTool("fake", "huge", signal)).toBeUndefined();
  });
});

test("lists tools with hints and permissions; a permission applies to one definition of the tool", async () => {
  await put();
  const echo = await getTool("echo");
  expect(echo).toMatchObject({ serverName: "Fake", permission: "ask", hints: { readOnly: true } });
  await mcp.setPermission(echo, "allow");
  expect((await getTool("echo")).permission).toBe("allow");
  await mcp.setPermission({ ...echo, fingerprint: "0".repeat(64) }, "allow");
  expect((await getTool("echo")).permission).toBe("ask");
});

test("restarts a server automatically after it died", async () => {
  const events: string[] = [];
  app.services.events.subscribe(({ kind, id }) => void events.push(`${kind} ${id}`));
  await put();
  await expect(call("die")).rejects.toMatchObject({ code: "upstream_error" });
  expect(mcp.get("fake").state).toBe("failed");
  await expect.poll(() => mcp.get("fake").state).toBe("ready");
  expect(new Set(events)).toEqual(new Set(["tool_server fake"]));
});

const putInBench = (mcp: Mcp, start = "") =>
  mcp.put("fake", { command: Deno.execPath(), args: ["run", "--no-config", "-A", FAKE, start] });

test("stops a program that nobody has used for a while, and still knows its tools", async () => {
  await using bench = await openMcpBench({ limits: { idleMs: 50 } });
  const { mcp } = bench;
  await putInBench(mcp);
  const tool = await mcp.findTool("fake", "environment", signal);
  const readPid = async () => {
    const { parts } = await mcp.callTool(tool!, {}, LIMITS);
    return JSON.parse((parts[0] as { text: string }).text).pid as number;
  };
  const pid = await readPid();
  await expect.poll(() => isAlive(pid)).toBe(false);
  expect(mcp.get("fake").state).toBe("ready");
  expect((await mcp.listTools(signal)).tools.map(({ name }) => name)).toContain("echo");
  expect(await readPid()).not.toBe(pid);
});

test("doesn't stop a program that takes longer to list its tools than its idle limit", async () => {
  await using bench = await openMcpBench({ limits: { idleMs: 500 } });
  await putInBench(bench.mcp, "late");
  expect(await bench.mcp.test("fake", signal)).toMatchObject({ state: "ready" });
});
