/** When servers are asked, what is kept, and that it's used instead of the table. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { isOwnNetwork } from "../../../../services/llm/contract/server_probes.ts";
import { ask, gather, until } from "../../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";

interface Contract {
  model: string;
  version?: string;
  findings: { item: string; found?: boolean | number; expected?: boolean; reason?: string }[];
}

let app: TestApp;
let llm: FakeLlm;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.now();
  app = await openTestApp({ now: () => nowMs, probes: { limitMs: 600_000 } });
  llm = await openFakeLlm({ personality: "llama.cpp", models: ["m"] });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

async function connect(more: Record<string, unknown> = {}): Promise<void> {
  const saved = await app.put("/api/connections", { id: "mine", base_url: llm.url, ...more });
  expect(saved.ok).toBe(true);
  expect((await app.post("/api/connections/mine/activate")).ok).toBe(true);
}

async function findConnection(): Promise<{ contracts?: Contract[]; dialect: Record<string, unknown> }> {
  const list: ({ id: string } & Awaited<ReturnType<typeof findConnection>>)[] =
    await (await app.get("/api/connections"))
      .json();
  return list.find(({ id }) => id === "mine")!;
}

async function findValues(): Promise<Record<string, unknown>> {
  const { contracts: [contract] = [] } = await findConnection();
  return Object.fromEntries((contract?.findings ?? []).map(({ item, found, reason }) => [item, found ?? reason]));
}

async function waitFor(item: string, value: unknown): Promise<void> {
  await until(async () => (await findValues())[item] === value, `${item} is ${value}`);
}

const differences = () =>
  app.logLines.map((line) => JSON.parse(line)).filter(({ message, msg }) =>
    String(message ?? msg).startsWith("A server does something else")
  );

test("a saved server is asked in the background, what differs is logged once, and both last over a restart", async () => {
  llm.load = {};
  llm.switches.no_tools = "on";
  await connect();
  await waitFor("tools", false);
  expect(await findValues()).toMatchObject({ context_size: 2048, slots: 4, stop: true, cancels: true });
  expect((await findConnection()).contracts).toMatchObject([{ model: "m", version: "b11434" }]);
  expect((await findConnection()).dialect).toMatchObject({ name: "llama.cpp", tools: false });
  expect(differences()).toMatchObject([{
    item: "tools",
    expected: true,
    found: false,
    server: "llama.cpp",
    model: "m",
  }]);
  const count = llm.chats.length;
  await app.restart();
  expect(await findValues()).toMatchObject({ tools: false });
  // It hasn't changed.
  const before = llm.requests.length;
  expect((await app.get("/api/models")).ok).toBe(true);
  await until(() => llm.requests.slice(before).some(({ path }) => path === "/props"), "the server was looked at");
  expect((await app.get("/api/connections")).ok).toBe(true);
  expect(llm.chats.length).toBe(count);
  expect(differences().length).toBe(1);
});

test("a server with another context is asked again; while a slot keeps a chat, only what costs no call", async () => {
  llm.load = {};
  await connect();
  await waitFor("cancels", true);
  const count = llm.chats.length;
  llm.contextSize = 1024;
  llm.load = { kept: 4 };
  nowMs += 61_000;
  expect((await app.get("/api/models")).ok).toBe(true);
  await waitFor("context_size", 1024);
  expect(await findValues()).toMatchObject({ stop: "holds_chat", tools: "holds_chat", slots: 4 });
  expect(llm.chats.length).toBe(count);
  // The owner's test asks all the same.
  const tested = await (await app.post("/api/connections/test", { id: "mine", base_url: llm.url })).json();
  expect(tested.contract.findings).toContainEqual({ item: "stop", found: true, expected: true });
  expect(await findValues()).toMatchObject({ stop: true, tools: true, context_size: 1024 });
});

test("a server that works again after a failure is looked at", async () => {
  await connect();
  await waitFor("context_size", 2048);
  llm.isLoading = true;
  await gather(await ask(app, 1));
  llm.isLoading = false;
  llm.contextSize = 4096;
  await gather(await ask(app, 2));
  await waitFor("context_size", 4096);
});

test("a chat uses what was found: no tools, no system message, progress of an unknown server", async () => {
  llm.switches.no_tools = "on";
  const { refuse } = llm.personality;
  llm.personality = {
    ...llm.personality,
    headers: {},
    models: (ids) => ({ data: ids.map((id) => ({ id })) }),
    async refuse(request, answer, server) {
      if (!request.body.includes('"role":"system"')) return await refuse!(request, answer, server);
      await answer.json(400, { error: { message: "System role not supported" } });
      return true;
    },
  };
  await app.patch("/api/settings", { auto_title: false, auto_summary: false });
  await connect();
  // Its own calls come before those that are counted.
  await until(async () => (await findConnection()).contracts?.[0] !== undefined, "the server was asked");
  const tested = await app.post("/api/connections/test", { id: "mine", base_url: llm.url });
  expect((await tested.json()).contract.findings).toContainEqual({
    item: "system_message",
    found: false,
    expected: true,
  });
  const count = llm.chats.length;
  await app.put("/api/conversations/c1", { system_prompt: "Be brief." });
  await gather(await ask(app, 1, { context: "server" }));
  // At the first call, not after a refusal.
  expect(llm.chats.length).toBe(count + 1);
  const { json } = llm.chats.at(-1)!;
  expect(json).toMatchObject({ return_progress: true });
  expect((json!.messages as { role: string }[]).every(({ role }) => role !== "system")).toBe(true);
  expect((await findConnection()).dialect).toMatchObject({ tools: false });
});

test("a server elsewhere is asked only for the owner's test", async () => {
  await connect({ server: { override: "openai" } });
  expect((await app.get("/api/models")).ok).toBe(true);
  // The page looks quietly whether a server is back.
  await app.post("/api/connections/test", { id: "mine", base_url: llm.url, quick: true });
  expect(llm.chats).toEqual([]);
  const tested = await (await app.post("/api/connections/test", {
    id: "mine",
    base_url: llm.url,
    server: { override: "openai" },
  })).json();
  expect(tested.contract.findings).toContainEqual({ item: "stop", found: true, expected: true });
  expect(llm.chats.length).toBeGreaterThan(0);
});

test("own networks are known by their addresses and names", () => {
  const own = [
    ...["localhost", "127.0.0.1", "[::1]", "192.168.1.7", "10.0.0.2", "[fd00::1]", "100.101.102.103", "llama"],
    ...["pc.local", "box.lan", "nas.home.arpa", "host.docker.internal", "gpu.tail1234.ts.net"],
  ];
  const others = ["api.openai.com", "8.8.8.8", "[2606:4700::1111]", "llm.example.org", "local.example"];
  expect([...own, ...others].filter(isOwnNetwork)).toEqual(own);
});
