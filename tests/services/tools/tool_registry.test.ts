import { expect, test } from "vitest";
import { MAX_DEFINITION_BYTES, ToolRegistry } from "../../../services/tools/tool_registry.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { never } from "../llm/model_calls.ts";

const done = () => answerText("done");
const openRegistry = (...sources: FakeTools[]) =>
  new ToolRegistry(sources.map((source) => () => Promise.resolve(source)));

test("gives tools with the same name the name of their server, and each tool a unique name", async () => {
  const registry = openRegistry(
    new FakeTools("files").set("read", done).set("list files", done).set("docs_read", done),
    new FakeTools("docs").set("read", done),
    new FakeTools("docs!").set("read", done),
  );
  const { tools, definitions, leftOut } = await registry.listOffer(never());
  expect(tools.map(({ name, tool }) => [name, tool.serverId, tool.name])).toEqual([
    ["files_read", "files", "read"],
    ["files_list_files", "files", "list files"],
    ["docs_read", "files", "docs_read"],
    ["docs_read_2", "docs", "read"],
    ["docs__read", "docs!", "read"],
  ]);
  expect(definitions.map(({ function: named }) => (named as { name: string }).name)).toEqual(
    tools.map(({ name }) => name),
  );
  expect(leftOut).toEqual([]);
});

test("cuts names to 63 characters and keeps them apart", async () => {
  const long = "x".repeat(80);
  const { tools } = await openRegistry(new FakeTools("a").set(long, done), new FakeTools("a").set(long, done))
    .listOffer(never());
  expect(tools.map(({ name }) => name.length)).toEqual([63, 63]);
  expect(new Set(tools.map(({ name }) => name)).size).toBe(2);
});

test("calls the tool of the server that a name belongs to", async () => {
  const [files, docs] = [new FakeTools("files").set("read", done), new FakeTools("docs").set("read", done)];
  const registry = openRegistry(files, docs);
  const { tools } = await registry.listOffer(never());
  const { tool } = tools.find(({ name }) => name === "docs_read")!;
  await registry.callTool(tool, { q: "sea" }, { signal: never(), timeoutMs: 1000, maxBytes: 1000 });
  expect(docs.calls).toEqual([{ name: "read", args: { q: "sea" } }]);
  expect(files.calls).toEqual([]);
});

test("offers at most 64 KiB of definitions and names the rest", async () => {
  const source = new FakeTools();
  for (let n = 0; n < 10; n++) source.set(`tool_${n}`, done, { description: "é".repeat(5_000) });
  const { tools, definitions, leftOut } = await openRegistry(source).listOffer(never());
  const bytes = new TextEncoder().encode(definitions.map((one) => JSON.stringify(one)).join("")).length;
  expect(bytes).toBeLessThanOrEqual(MAX_DEFINITION_BYTES);
  expect(tools.map(({ name }) => name)).toEqual(["tool_0", "tool_1", "tool_2", "tool_3", "tool_4", "tool_5"]);
  expect(definitions).toHaveLength(6);
  expect(leftOut).toEqual(
    [6, 7, 8, 9].map((n) => ({ name: `tool_${n}`, reason: expect.stringContaining("larger than 64 KiB") })),
  );
});

test("neither offers nor counts tools that are denied, and names servers that can't be used", async () => {
  const source = new FakeTools()
    .set("huge", done, { description: "x".repeat(70_000), permission: "deny" })
    .set("small", done);
  source.unavailable = [{ serverId: "web", serverName: "Web", reason: "it doesn't answer" }];
  const registry = new ToolRegistry([() => Promise.resolve(source), () => Promise.reject(new Error("broken"))]);
  const { tools, leftOut } = await registry.listOffer(never());
  expect(tools.map(({ name }) => name)).toEqual(["small"]);
  expect(leftOut).toMatchObject([{ name: "Web", reason: "it doesn't answer" }, { name: "tools" }]);
});
