import { expect, test } from "vitest";
import { createUpstreamClient } from "../../../services/llm/upstream_client.ts";
import { ask, never, target } from "./model_calls.ts";

const tool = (name: string, description = "") => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties: {} } },
});

/** A server that refuses the tools whose description says "bad", and records the names of the tools of each request. */
function openServer() {
  const requests: string[][] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const { tools = [], tool_choice } = await request.json();
    requests.push(tools.map(({ function: named }: ReturnType<typeof tool>) => named.name));
    if (tools.length === 0 && tool_choice !== undefined) {
      return Response.json({ error: { message: "'tool_choice' is only allowed when 'tools' are" } }, { status: 400 });
    }
    const bad = tools.findIndex(({ function: named }: ReturnType<typeof tool>) => named.description === "bad");
    const param = `tools[${bad}].function.parameters`;
    if (bad >= 0) return Response.json({ error: { message: "Invalid schema", param } }, { status: 400 });
    return Response.json({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }] });
  });
  return { requests, url: `http://127.0.0.1:${server.addr.port}/v1`, close: () => server.shutdown() };
}

test("leaves out only the tools that a server refuses, says so, and offers a corrected one again", async () => {
  const server = openServer();
  const client = createUpstreamClient({ log: () => {} });
  const call = async (...tools: unknown[]) => {
    const stream = await client.openChatStream(target(server.url), ask("hi", { tools, tool_choice: "auto" }), never());
    for await (const _ of stream.batches());
    return stream.sent?.leftOut.map(({ field, status }) => [field, status]);
  };
  try {
    const left = [["tools: b", 400], ["tools: d", 400]];
    expect(await call(tool("a"), tool("b", "bad"), tool("c"), tool("d", "bad"))).toEqual(left);
    expect(server.requests).toEqual([["a", "b", "c", "d"], ["a", "c", "d"], ["a", "c"]]);
    expect(await call(tool("a"), tool("b", "bad"), tool("c"), tool("d", "bad"))).toEqual(left);
    expect(server.requests.slice(3)).toEqual([["a", "c"]]);
    expect(await call(tool("a"), tool("b", "good"))).toEqual([]);
    expect(server.requests.slice(4)).toEqual([["a", "b"]]);
    expect(await call(tool("b", "bad"))).toEqual([["tools: b", 400]]);
    expect(server.requests.slice(5)).toEqual([[]]);
  } finally {
    client.close();
    await server.close();
  }
});
