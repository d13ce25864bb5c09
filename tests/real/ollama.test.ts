/** Chat with a real Ollama server. Parlor runs as a process. Context sizes and refusals are checked, not the text. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { understand, until } from "../helpers/app/chat_client.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_OLLAMA_DIR", "ollama.sh");
const MODEL = "gemma3-270m";
/** The first call loads the model, on a machine that may be busy. */
const SLOW_MS = 600_000;

let number = 0;

describe.skipIf(INSTALLED === undefined)("with a real Ollama server", { timeout: SLOW_MS }, () => {
  let ollama: LoopbackTool;
  let parlor: ChildServer;
  let dataDir: string;
  let folder: string;

  beforeAll(async () => {
    // A folder of its own, so that it doesn't meet another server of the same installation.
    folder = await Deno.makeTempDir({ prefix: "parlor-ollama-" });
    for await (const { name } of Deno.readDir(INSTALLED!)) {
      if (name === "bin" || name.endsWith(".gguf")) await Deno.symlink(`${INSTALLED}/${name}`, `${folder}/${name}`);
    }
    ollama = await startTool("ollama.sh", folder);
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    parlor = await startChildServer({ dataDir });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.[Symbol.asyncDispose]();
    await ollama?.stop();
    for (const path of [folder, dataDir]) if (path) await Deno.remove(path, { recursive: true });
  });

  async function connect(fields: Record<string, unknown> = {}): Promise<void> {
    const connection = { id: "ollama", name: "Ollama", kind: "ollama", base_url: ollama.url, model: MODEL };
    await parlor.json("PUT", "/api/connections", { ...connection, context_size: null, ...fields });
    await parlor.json("POST", "/api/connections/ollama/activate");
  }

  /** Sends a message in a new chat and reads the whole stream. */
  async function ask(text: string, fields: Record<string, unknown> = {}) {
    const n = ++number;
    const ids = { conversation_id: `c${n}`, user_message_id: `u${n}`, assistant_message_id: `a${n}` };
    const body = { ...ids, messages: [{ role: "user", content: text }], context: "server", max_tokens: 8, ...fields };
    const response = await parlor.request("POST", "/api/chat", body);
    const said = await response.text();
    const frames = said.split("\n\n").filter((frame) => frame.includes("data: ")).map((frame) => ({
      event: /^event: (.*)$/m.exec(frame)?.[1],
      data: /^data: (.*)$/m.exec(frame)![1]!,
    }));
    return response.ok ? understand(frames) : { ...understand([]), error: JSON.parse(said).error };
  }

  /** Returns the context that the model is loaded with. */
  async function readLoadedSize(): Promise<number | undefined> {
    const { models } = await (await fetch(`${ollama.url}/api/ps`)).json();
    return models.find(({ name }: { name: string }) => name.startsWith(`${MODEL}:`))?.context_length;
  }

  test("the context that a reply needs is loaded, kept while it suffices, and announced when it grows", async () => {
    await connect();
    expect(await ask("Once upon a time")).toMatchObject({ isDone: true, notices: [] });
    expect(await readLoadedSize()).toBe(4_096);
    const larger = await ask("Once upon a time", { max_tokens: 5_000, stop: [" "] });
    expect(larger.notices).toEqual([
      { code: "model_reload", message: "Reloading the model with an 8k context", context_size: 8_192 },
    ]);
    expect(await readLoadedSize()).toBe(8_192);
    expect((await ask("Once upon a time")).notices).toEqual([]);
    expect(await readLoadedSize()).toBe(8_192);
  });

  test("the whole prompt reaches the model, also one that is longer than estimated", async () => {
    await connect();
    // Three tokens for each three characters: Parlor expects a quarter of that.
    const { usage, notices } = await ask("a1;".repeat(1_500), { max_tokens: 4 });
    expect(usage!.prompt_tokens).toBeGreaterThanOrEqual(4_500);
    expect(await readLoadedSize()).toBeGreaterThanOrEqual(8_192);
    expect(notices.length).toBeLessThanOrEqual(1);
  });

  test("a prompt that is longer than the limit is refused, not cut", async () => {
    await connect({ context_size: 4_096 });
    const { error, text } = await ask("a1;".repeat(2_000), { max_tokens: 4 });
    expect(error).toMatchObject({ upstream: { kind: "overflow", status: 400 } });
    expect(text).toBe("");
  });

  test("a model without thinking answers and says so; one without tools refuses", async () => {
    await connect();
    const { isDone } = await ask("Hello", { reasoning_effort: "high" });
    expect(isDone).toBe(true);
    const { messages } = await parlor.json<{ messages: Record<string, unknown>[] }>(
      "GET",
      `/api/conversations/c${number}`,
    );
    expect(messages.at(-1)!.left_out).toMatchObject([{ field: "reasoning_effort", status: 400 }]);
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];
    expect((await ask("Hello", { tools })).error!.message).toContain("does not support tools");
    expect(await ask("Hello", { tools, model: `${MODEL}-tools` })).toMatchObject({ isDone: true });
  });

  test("a model that isn't installed is named with the command that installs it", async () => {
    await connect();
    const { error } = await ask("Hello", { model: "nope" });
    expect(error).toMatchObject({ upstream: { kind: "not_found", status: 404 } });
    expect(error!.message).toContain("ollama pull nope");
  });

  test("calls a tool in a chat, waits for the decision, and gets its result", async () => {
    const search = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      () =>
        Response.json({
          results: [{ title: "Lighthouse", url: "https://sea.example/", content: "It stands on a cliff" }],
        }),
    );
    try {
      await connect({ model: `${MODEL}-tools` });
      const url = `http://127.0.0.1:${search.addr.port}`;
      await parlor.json("PUT", "/api/tools/web", { search_url: url, search: true, read_page: false });
      const parameters = {
        type: "object",
        properties: { query: { type: "string", maxLength: 20 } },
        required: ["query"],
      };
      // Such a small model makes no tool calls by itself.
      const schema = {
        type: "object",
        properties: { name: { type: "string", enum: ["web_search"] }, parameters },
        required: ["name", "parameters"],
      };
      const reading = ask("Search for a lighthouse", {
        conversation_id: "tools",
        assistant_message_id: "answer",
        max_tokens: 200,
        response_format: { type: "json_schema", json_schema: { name: "call", schema } },
      });
      const pending = async () =>
        (await parlor.json<{ pending_calls: { id: string; name: string }[] }[]>("GET", "/api/chat/replies"))[0]
          ?.pending_calls[0];
      await until(async () => (await pending()) !== undefined, "the model calls the tool", SLOW_MS / 2);
      const call = await pending();
      expect(call!.name).toBe("web_search");
      const decision = { decision: "allow", arguments: '{"query":"lighthouse"}' };
      await parlor.json("POST", `/api/chat/replies/answer/tool_calls/${call!.id}`, decision);
      const isNext = async () => ![undefined, call!.id].includes((await pending())?.id);
      await until(isNext, "the model, still forced, calls again with the result", SLOW_MS / 2);
      await parlor.json("POST", "/api/chat/replies/answer/stop");
      await reading;
      const { messages } = await parlor.json<{ messages: Record<string, unknown>[] }>(
        "GET",
        "/api/conversations/tools",
      );
      expect(messages.slice(1)).toMatchObject([
        { role: "assistant", tool_calls: [{ state: "done" }] },
        { role: "tool", content: expect.stringContaining("cliff") },
        { role: "assistant", tool_calls: [{ state: "denied" }] },
        { role: "tool" },
        { id: "answer", status: "stopped" },
      ]);
    } finally {
      await parlor.json("PUT", "/api/tools/web", { search_url: null });
      await search.shutdown();
    }
  });
});
