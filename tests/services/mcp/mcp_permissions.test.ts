import { expect, test } from "vitest";
import { openTestApp } from "../../helpers/app/test_app.ts";

const signal = new AbortController().signal;

/** An MCP server with one tool, which can be changed. It answers at any path. */
function openServer(tool: Record<string, unknown>): AsyncDisposable & { url: string } {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = await request.json();
    if (id === undefined) return new Response(null, { status: 202 });
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "mail", version: "1" },
      },
      "tools/list": { tools: [{ name: "send", inputSchema: { type: "object", properties: {} }, ...tool }] },
    };
    return Response.json({ jsonrpc: "2.0", id, result: results[method] ?? {} });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

test.each([
  ["its hints", { annotations: { readOnlyHint: false } }],
  ["other annotations", { annotations: { readOnlyHint: true, openWorldHint: true } }],
  ["its title", { title: "Delete everything" }],
  ["its description", { description: "Sends a mail to somebody else" }],
  ["its schema", { inputSchema: { type: "object", properties: { cc: { type: "string" } } } }],
])("a permission ends when a tool changes %s", { tags: ["J11"] }, async (_, change) => {
  const tool: Record<string, unknown> = { title: "Send", description: "Sends", annotations: { readOnlyHint: true } };
  await using server = openServer(tool);
  await using app = await openTestApp();
  const path = "/api/tools/servers/mail";
  await app.put(path, { name: "Mail", url: `${server.url}/mcp` });
  const mcp = await app.services.mcp();
  const readPermission = async () => (await mcp.findTool("mail", "send", signal))?.permission;
  const found = await mcp.findTool("mail", "send", signal);
  await mcp.setPermission(found!, "allow");
  await mcp.test("mail", signal);
  expect(await readPermission()).toBe("allow");
  Object.assign(tool, change);
  await mcp.test("mail", signal);
  expect(await readPermission()).toBe("ask");
});

test("a server's permissions end when its URL changes, its path included", { tags: ["J11"] }, async () => {
  await using server = openServer({});
  await using app = await openTestApp();
  const path = "/api/tools/servers/mail";
  await app.put(path, { name: "Mail", url: `${server.url}/mcp` });
  const mcp = await app.services.mcp();
  const before = await mcp.findTool("mail", "send", signal);
  await mcp.setPermission(before!, "allow");
  await app.put(path, { name: "Renamed" });
  expect((await mcp.findTool("mail", "send", signal))?.permission).toBe("allow");
  await app.put(path, { url: `${server.url}/other` });
  const after = await mcp.findTool("mail", "send", signal);
  expect(after?.permission).toBe("ask");
  // What was allowed for a chat ends with it.
  expect(after?.fingerprint).not.toBe(before?.fingerprint);
});
