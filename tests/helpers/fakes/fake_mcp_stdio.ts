/**
 * An MCP server over stdio that does what servers shouldn't: run as a program of its own, without the SDK.
 *
 * @example deno run --no-config -A fake_mcp_stdio.ts [start]
 * start: "crash" ends before the handshake; "deaf" ignores the end of its input and SIGTERM; "grandchild" starts a program
 * of its own; "late" lists its tools after 1.5 s.
 */
import { writeSync } from "node:fs";

const MIB = 1024 * 1024;
const start = Deno.args[0] ?? "";
let tools = [
  ...["busy", "cut", "die", "echo", "endless", "environment", "fail", "huge", "noise", "nonsense", "slow", "swap"],
];

if (start === "crash") {
  console.error(`no key: ${Deno.env.get("API_KEY")}`);
  Deno.exit(3);
}
if (start === "deaf") Deno.addSignalListener("SIGTERM", () => {});
if (start === "grandchild") {
  new Deno.Command("sleep", { args: ["600"], stdin: "null", stdout: "null", stderr: "null" }).spawn();
}

const encoder = new TextEncoder();
const write = (text: string) => {
  let bytes = encoder.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(1, bytes));
};
const send = (message: unknown) => write(`${JSON.stringify(message)}\n`);
const answer = (id: unknown, result: unknown) => send({ jsonrpc: "2.0", id, result });
const text = (id: unknown, value: string) => answer(id, { content: [{ type: "text", text: value }] });

function listTools() {
  return tools.map((name) => ({
    name,
    description: `Does ${name}`,
    inputSchema: { type: "object", properties: { message: { type: "string" } } },
    annotations: { readOnlyHint: name === "echo" },
  }));
}

function call(id: unknown, name: string, args: { message?: string }) {
  if (name === "echo") text(id, args.message ?? "");
  else if (name === "environment") {
    text(id, JSON.stringify({ env: Deno.env.toObject(), folder: Deno.cwd(), pid: Deno.pid }));
  } else if (name === "huge") text(id, "x".repeat(50 * MIB));
  else if (name === "endless") {
    write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
    for (;;) write("y".repeat(64 * 1024));
  } else if (name === "die") {
    console.error("out of memory");
    Deno.exit(9);
  } else if (name === "cut") {
    write(`{"jsonrpc":"2.0","id":${id},"resu`);
    Deno.exit(0);
  } else if (name === "noise") {
    write("Listening on port 3000\n{not json}\n[1,2,3]\n\n");
    send({ jsonrpc: "2.0", id: 987_654, result: {} });
    send({ jsonrpc: "2.0", method: "notifications/unknown" });
    text(id, "quiet");
  } else if (name === "nonsense") answer(id, 42);
  else if (name === "swap") {
    tools = ["echo", "swapped"];
    send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    text(id, "swapped");
  } else if (name === "busy") {
    send({ jsonrpc: "2.0", id, error: { code: Number(args.message), message: "Busy, try again later" } });
  } else if (name === "fail") {
    const key = Deno.env.get("API_KEY");
    const resource = { uri: `https://api.example/${key}`, text: `resource ${key}` };
    answer(id, {
      content: [
        { type: "text", text: `refused with ${key}` },
        { type: "resource", resource },
        { type: "resource_link", uri: resource.uri, name: `link ${key}` },
      ],
      isError: args.message !== "no error",
    });
  } else if (name !== "slow") {
    send({ jsonrpc: "2.0", id, error: { code: -32602, message: `Unknown tool: ${name}` } });
  }
}

let rest = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize") {
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "fake", version: "1" },
        instructions: JSON.stringify(params.capabilities),
      });
    } else if (method === "tools/list") {
      setTimeout(() => answer(id, { tools: listTools() }), start === "late" ? 1_500 : 0);
    } else if (method === "tools/call") call(id, params.name, params.arguments ?? {});
    else if (id !== undefined) answer(id, {});
  }
}
if (start === "deaf") setInterval(() => {}, 1_000_000);
